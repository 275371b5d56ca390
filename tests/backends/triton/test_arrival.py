"""merge="last": the last program of a tile adds up what the others have left in memory."""

import pytest
import torch

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f16, f32

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")
DEPTH, PARTS = 64, 4


def matmul() -> Pipeline:
    k = RDom("k", K)
    A, B, C, D = Input("A", f16, [M, K]), Input("B", f16, [N, K]), Func("C"), Func("D")
    C[i, j] = tl.sum(f32(A[i, k]) * f32(B[j, k]), over=k)
    D[i, j] = tl.maximum(C[i, j], 0.0)
    return Pipeline("matmul", inputs=[A, B], outputs={D: [M, N]})


def split_k(pipeline: Pipeline, merge: str = "last", tiles_of_copy: int = 16) -> Schedule:
    """K in parts of 16, a program each; `tiles_of_copy`: rows of a tile of partial results."""
    s = Schedule(pipeline)
    s["D"].tile(i, j, "io", "jo", "ii", "ji", 16, 16).fuse("io", "jo", "t").gpu_blocks("t")
    s["D"].vectorize("ii").vectorize("ji")
    s["C"].compute_at("D", "t").vectorize(i).vectorize(j)
    s["C"].update(0).split("k", "part", "kp", 16)
    parts = s["C"].update(0).rfactor("part", "u", merge=merge)
    s["C"].update(0).reorder("part", i, j).vectorize(i).vectorize(j)
    copy = s[parts].in_("C")
    s[copy].tile(i, j, "io", "jo", "ii", "ji", tiles_of_copy, 16).reorder("io", "jo", "u")
    s[copy].fuse("io", "jo", "t").gpu_blocks("t", "u").compute_root()
    s[copy].vectorize("ii").vectorize("ji")
    s[parts].compute_at(copy, "u").reorder("u", i, j).vectorize(i).vectorize(j)
    s[parts].update(0).reorder("u", i, j, "kp").vectorize(i).vectorize(j).vectorize("kp")
    return s


def arrays(m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b = torch.randn(m, k).half(), torch.randn(n, k).half()
    return a, b, (a.float() @ b.float().T).relu()


@pytest.mark.parametrize("shape", [(5, 40, 64), (32, 16, 100), (17, 33, 1), (1, 1, 0), (0, 3, 16)])
def test_one_kernel_gives_what_two_give(shape: tuple[int, int, int]) -> None:
    a, b, wanted = arrays(*shape)
    kernel = matmul().compile(split_k(matmul()), target="triton")
    for _ in range(2):  # the counters are left at zero
        torch.testing.assert_close(kernel(a, b), wanted, rtol=1e-4, atol=1e-4)


def test_the_last_to_arrive_merges_in_the_same_launch(golden) -> None:
    kernel = matmul().compile(split_k(matmul()), target="triton")
    # The other kernel is for a K of 0, where no program has a partial result.
    assert kernel.source.count("@triton.jit") == 2
    assert kernel.notes == ()
    golden(kernel.source)


def test_tiles_that_differ_are_merged_by_a_kernel_and_a_note_says_so() -> None:
    kernel = matmul().compile(split_k(matmul(), tiles_of_copy=32), target="triton")
    assert kernel.source.count("@triton.jit") == 2
    [note] = [n for n in kernel.notes if "merged by a kernel" in n]
    assert "its grid differs from that of the merging kernel" in note
    a, b, wanted = arrays(33, 18, 50)
    torch.testing.assert_close(kernel(a, b), wanted, rtol=1e-4, atol=1e-4)


def test_a_tile_that_needs_another_tile_is_merged_by_a_kernel() -> None:
    k = RDom("k", K)
    x, total, y = Input("x", f32, [N, K]), Func("total"), Func("y")
    total[i] = tl.sum(x[i, k], over=k)
    y[i] = total[N - 1 - i]
    pipeline = Pipeline("flipped", inputs=[x], outputs={y: [N]})
    s = Schedule(pipeline)
    s["y"].split(i, "io", "ii", 16).gpu_blocks("io").vectorize("ii")
    s["total"].update(0).split("k", "part", "kp", 16)
    parts = s["total"].update(0).rfactor("part", "u", merge="last")
    s["total"].compute_at("y", "io").vectorize(i)
    s["total"].update(0).reorder("part", i).vectorize(i)
    s[parts].compute_root().split(i, "io", "ii", 16).reorder("io", "u", "ii")
    s[parts].gpu_blocks("io", "u").vectorize("ii")
    update = s[parts].update(0).split(i, "io", "ii", 16).reorder("io", "u", "ii", "kp")
    update.gpu_blocks("io", "u").vectorize("ii").vectorize("kp")
    kernel = pipeline.compile(s, target="triton")
    given = torch.randn(40, 50)
    torch.testing.assert_close(kernel(given), given.sum(1).flip(0), rtol=1e-4, atol=1e-4)
    assert any("merged by a kernel" in note for note in kernel.notes)


def test_it_compiles_for_a_gpu_and_waits_for_what_others_wrote() -> None:
    text = matmul().compile(split_k(matmul()), target=tl.Target("triton", arch="sm_90")).ptx
    assert "atom.global.gpu.acq_rel.add" in text or "atom.acq_rel.gpu.global.add" in text
    assert "ld.global.cg" in text


@pytest.mark.gpu
def test_streams_and_graphs_count_on_counters_of_their_own() -> None:
    kernel = matmul().compile(split_k(matmul()), target="triton")
    given = [tuple(t.cuda() for t in arrays(48, 80, 256)) for _ in range(4)]
    streams = [torch.cuda.Stream() for _ in given]
    for a, b, _ in given:
        kernel(a, b)
    torch.cuda.synchronize()
    for _ in range(20):
        made = []
        for stream, (a, b, _) in zip(streams, given, strict=True):
            with torch.cuda.stream(stream):
                made.append(kernel(a, b))
        torch.cuda.synchronize()
        for d, (*_, wanted) in zip(made, given, strict=True):
            torch.testing.assert_close(d, wanted, rtol=1e-4, atol=1e-4)
    graphs = [kernel.graph(a, b) for a, b, _ in given]
    for _ in range(20):
        for stream, graph in zip(streams, graphs, strict=True):
            with torch.cuda.stream(stream):
                graph()
        torch.cuda.synchronize()
        for graph, (*_, wanted) in zip(graphs, given, strict=True):
            torch.testing.assert_close(graph.outputs, wanted, rtol=1e-4, atol=1e-4)


def test_sizes_that_fit_need_no_mask_in_either_part() -> None:
    a, b, wanted = arrays(32, 48, 64)
    kernel = matmul().compile(split_k(matmul()), target="triton")
    torch.testing.assert_close(kernel(a, b), wanted, rtol=1e-4, atol=1e-4)
    launchers = kernel._executable.routers["matmul_D"].launchers
    [text] = [x.text.text for held, x in launchers.items() if held]
    assert "tl.atomic_add" in text
    assert "mask" not in text
