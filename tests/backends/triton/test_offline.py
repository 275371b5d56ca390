"""Kernels compile for an architecture with no GPU present, and to the instructions they should."""

import re

import pytest

from tensorlang.backends.triton.offline import Compiled, compile_offline
from tensorlang.errors import TargetError
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
    "name", ["SCALE", "ROW_SUMS", "BLUR_AT_TILE", "CUMSUM", "ARGMAX", "HISTOGRAM"]
)
def test_other_programs_compile(name: str) -> None:
    assert all(k.cubin for k in kernels(getattr(programs, name)).values())


def test_divisions_are_rounded_and_nothing_is_fused() -> None:
    [kernel] = kernels(programs.SCALE).values()
    assert "fma.rn.f32" not in kernel.ptx
    [kernel] = kernels(programs.SOFTMAX).values()
    assert "div.full" not in kernel.ptx


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(TargetError, match="gfx942"):
        kernels(programs.SCALE, "gfx942")
