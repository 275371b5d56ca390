"""Kernels compile for an architecture with no GPU present, and to the instructions they should."""

import re

import pytest

from tensorlang.backends.triton.offline import Compiled, compile_offline
from tests.backends.triton import programs
from tests.backends.triton.running import compiled


def kernels(text: str, arch: str = "sm_90") -> dict[str, Compiled]:
    return dict(compile_offline(compiled(text), arch))


def test_linear_relu_uses_the_matrix_unit_and_wide_copies_and_spills_nothing() -> None:
    [kernel] = kernels(programs.with_tiles(programs.LINEAR_RELU, 128, 64)).values()
    assert "wgmma.mma_async" in kernel.ptx
    copies = re.findall(r"cp\.async\.\S+ \[[^]]*\], \[[^]]*\], (0x\w+)", kernel.ptx)
    assert copies
    assert set(copies) == {"0x10"}
    assert kernel.spilled == 0
    assert 0 < kernel.registers <= 255


def test_a_matmul_into_its_output_stays_pipelined() -> None:
    update = kernels(programs.MATMUL_NT)["matmul_C_update0"]
    assert "cp.async" in update.ptx
    assert "mma" in update.ptx


def test_softmax_loads_vectors() -> None:
    [kernel] = kernels(programs.SOFTMAX).values()
    assert "ld.global.v4" in kernel.ptx or "ld.global.v2.b64" in kernel.ptx
    assert kernel.spilled == 0


@pytest.mark.parametrize(
    "name", ["SCALE", "ROW_SUMS", "BLUR_AT_TILE", "CUMSUM", "ARGMAX", "HISTOGRAM", "NOISE"]
)
def test_other_programs_compile(name: str) -> None:
    assert all(k.cubin for k in kernels(getattr(programs, name)).values())


def test_divisions_are_rounded_and_nothing_is_fused() -> None:
    [kernel] = kernels(programs.SCALE).values()
    assert "fma.rn.f32" not in kernel.ptx
    [kernel] = kernels(programs.SOFTMAX).values()
    assert "div.full" not in kernel.ptx


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100", "gfx942"])
@pytest.mark.parametrize("name", ["SCALE", "SOFTMAX", "LINEAR_RELU"])
def test_kernels_compile_for_other_architectures(name: str, arch: str) -> None:
    [kernel] = kernels(getattr(programs, name), arch).values()
    assert kernel.cubin.startswith(b"\x7fELF")
    assert 0 < kernel.registers <= 256
    assert kernel.spilled == 0
    if name == "LINEAR_RELU":
        matrix = {"sm_80": "mma.sync", "sm_90": "mma.sync", "sm_100": "tcgen05", "gfx942": "mfma"}
        assert any(unit in kernel.ptx for unit in (matrix[arch], "mma.sync"))


def test_an_architecture_of_amd_has_assembly() -> None:
    [kernel] = kernels(programs.LINEAR_RELU, "gfx942").values()
    assert "v_mfma_f32_32x32x8" in kernel.ptx
