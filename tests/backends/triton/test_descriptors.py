"""Tiles move through tensor descriptors where the schedule asks for it and the arrays allow it."""

import re

import pytest
import torch

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Target, Var, bf16, f32
from tensorlang.kernel import Kernel
from tests.backends.triton.running import DEVICES

M, N, K = Size("M"), Size("N"), Size("K")
i, j, k = Var("i"), Var("j"), RDom("k", K)


def matmul(*, transposed: bool) -> Pipeline:
    """D = A B in bf16, or A B^T."""
    a, b = Input("A", bf16, [M, K]), Input("B", bf16, [N, K] if transposed else [K, N])
    c, d = Func("C"), Func("D")
    c[i, j] = tl.sum(f32(a[i, k]) * f32(b[j, k] if transposed else b[k, j]), over=k)
    d[i, j] = bf16(c[i, j])
    return Pipeline("matmul", inputs=[a, b], outputs={d: [M, N]})


def persistent(
    pipeline: Pipeline, rows: int, columns: int, depth: int, programs: int, parts: int = 1
) -> Schedule:
    """Tiles of rows x columns in groups of 8 rows, taken in turn by so many programs, by TMA.

    Args: parts: of the columns, which the epilogue takes one after another.
    """
    s = Schedule(pipeline)
    s["D"].tile("i", "j", "io", "jo", "ii", "ji", rows, columns)
    s["D"].split("io", "group", "ig", 8, tail="ragged").reorder("group", "jo", "ig", "ii", "ji")
    s["D"].fuse("jo", "ig", "in_group").fuse("group", "in_group", "tile")
    s["D"].split("tile", "turn", "program", programs).reorder("program", "turn", "ii", "ji")
    s["D"].gpu_blocks("program").gpu_warps(8).split("ji", "part", "jp", columns // parts)
    s["D"].unroll("part").reorder("part", "ii", "jp").vectorize("ii").vectorize("jp")
    s["C"].compute_at("D", "turn").vectorize("i").vectorize("j")
    s["C"].update(0).split("k", "ko", "ki", depth).reorder("ko", "i", "j", "ki")
    s["C"].update(0).vectorize("i").vectorize("j").vectorize("ki").pipeline("ko", 3)
    s["A"].load_with("descriptor")
    s["B"].load_with("descriptor")
    s["D"].store_with("descriptor")
    return s


def small(*, transposed: bool) -> Kernel:
    pipeline = matmul(transposed=transposed)
    return pipeline.compile(persistent(pipeline, 32, 32, 16, 3), target="triton")


def check(kernel: Kernel, a: torch.Tensor, b: torch.Tensor, *, transposed: bool = False) -> None:
    """The kernel's product is A B; it is given B, or B^T if it takes that."""
    found = kernel(a, b.T.contiguous() if transposed else b)
    wanted = a.double() @ b.double()
    torch.testing.assert_close(found.double(), wanted, rtol=2**-8, atol=2**-8)


@pytest.mark.parametrize("transposed", [False, True], ids=["nn", "nt"])
def test_a_persistent_matmul_reads_as_an_expert_writes_it(golden, transposed: bool) -> None:
    pipeline = matmul(transposed=transposed)
    target = Target("triton", arch="sm_90")
    kernel = pipeline.compile(persistent(pipeline, 128, 256, 64, 132), target=target)
    golden(kernel.source)
    assert kernel.notes == ()


def test_it_compiles_to_bulk_copies_and_spills_nothing() -> None:
    pipeline = matmul(transposed=False)
    target = Target("triton", arch="sm_90")
    kernel = pipeline.compile(persistent(pipeline, 128, 256, 64, 132), target=target)
    [compiled] = kernel.binaries.values()
    assert "wgmma.mma_async" in compiled.ptx
    assert re.search(r"cp\.async\.bulk\.tensor\.2d\.shared::\w+\.global", compiled.ptx)
    assert re.search(r"cp\.async\.bulk\.tensor\.2d\.global\.shared", compiled.ptx)
    assert "st.global" not in compiled.ptx
    assert compiled.spilled == 0


def test_an_epilogue_in_halves_takes_the_tile_apart_in_registers(golden) -> None:
    pipeline = matmul(transposed=False)
    target = Target("triton", arch="sm_90")
    kernel = pipeline.compile(persistent(pipeline, 128, 256, 64, 132, parts=2), target=target)
    golden(kernel.source)
    [compiled] = kernel.binaries.values()
    assert compiled.spilled == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parts", [2, 4])
def test_an_epilogue_in_parts_is_the_same(parts: int, device: str) -> None:
    pipeline = matmul(transposed=False)
    schedule = persistent(pipeline, 32, 64, 16, 3, parts)
    kernel = pipeline.compile(schedule, target="triton")
    for m, n in ((64, 64), (33, 72)):
        a, b = (torch.randn(*shape, device=device).bfloat16() for shape in ((m, 40), (40, n)))
        check(kernel, a, b)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("transposed", [False, True], ids=["nn", "nt"])
def test_sizes_that_fit_no_box_are_filled_with_zeros(transposed: bool, device: str) -> None:
    kernel = small(transposed=transposed)
    for m, n, depth in ((64, 64, 64), (65, 72, 40), (128, 40, 24), (33, 48, 56)):
        a = torch.randn(m, depth, device=device).bfloat16()
        b = torch.randn(depth, n, device=device).bfloat16()
        check(kernel, a, b, transposed=transposed)
    assert kernel.notes == ()


@pytest.mark.parametrize("device", DEVICES)
def test_an_array_that_does_not_fit_is_reached_by_pointers_in_that_call(device: str) -> None:
    kernel = small(transposed=False)
    good = torch.randn(64, 64, device=device).bfloat16()
    odd = torch.randn(64, 33, device=device).bfloat16()
    check(kernel, good, good)
    assert kernel.notes == ()
    check(kernel, good, odd)  # rows of 66 bytes
    assert any("'B' by pointers" in note and "(33, 1)" in note for note in kernel.notes)
    shifted = torch.randn(64 * 64 + 8, device=device).bfloat16()[1 : 64 * 64 + 1].view(64, 64)
    check(kernel, shifted, good)
    check(kernel, good[:, ::2], good[:32])  # no stride of 1
    check(kernel, good[:5, :8], good[:8])  # less than a box
    assert any("(5, 8) is less than a box" in note for note in kernel.notes)
    check(kernel, good[:, :0], good[:0])
    check(kernel, good, good)


@pytest.mark.parametrize("device", DEVICES)
def test_columns_after_columns_in_memory_fit_too(device: str) -> None:
    kernel = small(transposed=False)
    a, b = (torch.randn(64, 64, device=device).bfloat16().T for _ in range(2))
    check(kernel, a, b)
    assert kernel.notes == ()


def scaled(offset: int, **schedule: bool) -> Kernel:
    """y[i, j] = 2 x[i, j + offset], where that is inside x, in tiles of 8 x 16."""
    x, y = Input("x", f32, [M, N]), Func("y")
    y[i, j] = tl.select(j + offset < N, x[i, tl.clamp(j + offset, 0, N - 1)], 0) * 2
    if offset == 0:
        y = Func("y")
        y[i, j] = x[i, j] * 2
    pipeline = Pipeline("scaled", inputs=[x], outputs={y: [M, N]})
    s = Schedule(pipeline)
    s["y"].tile("i", "j", "io", "jo", "ii", "ji", 8, 16).gpu_blocks("io", "jo")
    s["y"].vectorize("ii").vectorize("ji")
    s["x"].load_with("descriptor")
    s["y"].store_with("descriptor")
    return pipeline.compile(s, target="triton")


def test_a_gather_is_by_pointers_and_says_so() -> None:
    kernel = scaled(1)
    assert any(note.startswith("'x' is loaded by pointers") for note in kernel.notes)
    x = torch.randn(20, 36)
    assert torch.equal(kernel(x)[:, :-1], 2 * x[:, 1:])


def test_a_plain_tile_goes_in_and_out_through_boxes() -> None:
    kernel = scaled(0)
    assert "x_box.load([" in kernel.source
    assert "y_box.store([" in kernel.source
    x = torch.randn(21, 36)
    assert torch.equal(kernel(x), 2 * x)


def test_batches_are_boxes_of_one() -> None:
    x, y, b = Input("x", f32, [K, M, N]), Func("y"), Var("b")
    y[b, i, j] = x[b, i, j] + 1
    pipeline = Pipeline("batched", inputs=[x], outputs={y: [K, M, N]})
    s = Schedule(pipeline)
    s["y"].tile("i", "j", "io", "jo", "ii", "ji", 8, 16).gpu_blocks("b", "io", "jo")
    s["y"].vectorize("ii").vectorize("ji")
    s["x"].load_with("descriptor")
    s["y"].store_with("descriptor")
    kernel = pipeline.compile(s, target="triton")
    assert "boxes of (1, 8, 16)" in kernel.source
    array = torch.randn(3, 9, 20)
    assert torch.equal(kernel(array), array + 1)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_of_odd_length_are_padded_while_they_are_copied(device: str) -> None:
    pipeline = matmul(transposed=False)
    s = Schedule(pipeline)
    s["D"].tile("i", "j", "io", "jo", "ii", "ji", 32, 32).gpu_blocks("io", "jo")
    s["D"].vectorize("ii").vectorize("ji")
    s["C"].compute_at("D", "jo").vectorize("i").vectorize("j")
    s["C"].update(0).split("k", "ko", "ki", 16).reorder("ko", "i", "j", "ki")
    s["C"].update(0).vectorize("i").vectorize("j").vectorize("ki")
    for operand in ("A", "B"):
        copy = s[s[operand].in_("C")].compute_root().gpu_blocks("_0").vectorize("_1")
        copy.align_storage("_1", 16).load_with("descriptor")
    kernel = pipeline.compile(s, target="triton")
    assert "pad={1: 16}" in kernel.source
    assert "A_in_C_box.load([" in kernel.source
    for m, n, depth in ((37, 41, 35), (37, 41, 35), (64, 64, 32)):
        a, b = (torch.randn(*shape, device=device).bfloat16() for shape in ((m, depth), (depth, n)))
        check(kernel, a, b)
    assert kernel.notes == ()
