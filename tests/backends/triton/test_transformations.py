"""What experts write by hand, as loop transformations: the text of each, and that it is right."""

from collections.abc import Callable

import pytest
import torch

import tensorlang as tl
from benchmarks import schedules
from benchmarks.schedules import Tile
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, bf16, f16, f32

i, j = Var("i"), Var("j")
N = Size("N")
DEPTH = 64
TILE = Tile(16, 32, 16, warps=4, stages=2, group=2)


def matmul(schedule: Callable[[Pipeline], Schedule], *, transposed: bool = False):
    return schedules.matmul(f16, transposed=transposed), schedule


def split_k(merge: str) -> Callable[[Pipeline], Schedule]:
    """K in parts, a program each; what merges them is `merge`."""

    def schedule(pipeline: Pipeline) -> Schedule:
        s = Schedule(pipeline)
        s["D"].tile(i, j, "io", "jo", "ii", "ji", 16, 32).fuse("io", "jo", "t").gpu_blocks("t")
        s["D"].vectorize("ii").vectorize("ji")
        s["C"].update(0).split("k", "part", "kp", 32)
        parts = s["C"].update(0).rfactor("part", "u", merge=merge)
        s["C"].compute_at("D", "t").vectorize(i).vectorize(j)
        s["C"].update(0).reorder("part", i, j).vectorize(i).vectorize(j)
        copy = s[parts].in_("C")
        s[copy].tile(i, j, "io", "jo", "ii", "ji", 16, 32).reorder("io", "jo", "u")
        s[copy].fuse("io", "jo", "t").gpu_blocks("t", "u").compute_root()
        s[copy].vectorize("ii").vectorize("ji")
        s[parts].compute_at(copy, "u").reorder("u", i, j).vectorize(i).vectorize(j)
        s[parts].update(0).reorder("u", i, j, "kp").vectorize(i).vectorize(j).vectorize("kp")
        return s

    return schedule


# What it is called in the field -> a pipeline, and the schedule that makes it.
MATMULS = {
    "l2_swizzle": lambda: matmul(lambda p: schedules.one_tile_a_program(p, TILE)),
    "persistent_with_an_epilogue_in_halves": lambda: matmul(
        lambda p: schedules.persistent(p, TILE, sms=3)
    ),
    "split_k_by_a_kernel": lambda: matmul(split_k("kernel")),
    "split_k_in_the_last_program": lambda: matmul(split_k("last")),
    "weights_as_the_operand_of_64_rows": lambda: matmul(
        lambda p: schedules.weights_first(p, TILE, parts=2, depth=DEPTH), transposed=True
    ),
    "odd_strides_padded": lambda: matmul(lambda p: schedules.padded(p, TILE, sms=3)),
}


@pytest.mark.parametrize("name", MATMULS)
def test_matmuls(name, golden) -> None:
    pipeline, make = MATMULS[name]()
    kernel = pipeline.compile(make(pipeline), "triton")
    golden(kernel.source)
    m, n = 33, 41
    transposed = "64_rows" in name
    a = torch.randn(m, DEPTH).half()
    b = torch.randn(*((n, DEPTH) if transposed else (DEPTH, n))).half()
    wanted = a.float() @ (b.T if transposed else b).float()
    torch.testing.assert_close(kernel(a, b).float(), wanted, rtol=2e-3, atol=2e-2)


def test_split_k_by_atomics(golden) -> None:
    k, x, total = RDom("k", Size("K")), Input("x", f32, [N, Size("K")]), Func("total")
    total[i] = tl.sum(x[i, k], over=k)
    pipeline = Pipeline("sums", inputs=[x], outputs={total: [N]})
    s = Schedule(pipeline)
    s[total].update(0).split("k", "part", "kp", 32)
    parts = s[total].update(0).rfactor("part", "u", merge="atomic")
    s[total].update(0).reorder("part", i).gpu_blocks("part").vectorize(i)
    s[parts].compute_at(total, "part").reorder("u", i).vectorize(i)
    s[parts].update(0).reorder("u", i, "kp").vectorize(i).vectorize("kp")
    s[total].vectorize(i)
    kernel = pipeline.compile(s, "triton")
    golden(kernel.source)
    given = torch.randn(20, 100)
    torch.testing.assert_close(kernel(given), given.sum(1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("passes", ["one_pass", "two_passes"])
def test_row_reductions(passes, golden) -> None:
    pipeline = schedules.softmax(bf16)
    if passes == "one_pass":
        schedule = schedules.row_a_program(pipeline, 4)
    else:
        schedule = schedules.row_in_passes(pipeline, chunk=32, warps=4, programs=3)
    kernel = pipeline.compile(schedule, "triton")
    golden(kernel.source)
    x = torch.randn(5, 100).bfloat16()
    torch.testing.assert_close(kernel(x), x.softmax(1), rtol=2e-2, atol=1e-3)


def test_each_pass_over_a_long_row_reads_a_slice_once(golden) -> None:
    """Whole slices, and a last one with masks: two loops each, which read for the max and the sum
    together.
    """
    pipeline = schedules.softmax(bf16)
    schedule = schedules.row_in_passes(pipeline, chunk=1024, warps=4, programs=3)
    kernel = pipeline.compile(schedule, "triton")
    golden(kernel.source)
    assert kernel.source.count("tl.load(") == 4
    x = torch.randn(4, 2500).bfloat16()
    torch.testing.assert_close(kernel(x), x.softmax(1), rtol=2e-2, atol=1e-3)


def test_a_norm_before_a_gemv_and_a_gate_after_it(golden) -> None:
    """y = silu(G x) * (U x), x = w * t / rms(t): the decode step of an MLP in one kernel."""
    k = RDom("k", DEPTH)
    t, w = Input("t", f16, [DEPTH]), Input("w", f16, [DEPTH])
    G, U = Input("G", f16, [N, DEPTH]), Input("U", f16, [N, DEPTH])
    squares, x, gate, up, y = map(Func, ("squares", "x", "gate", "up", "y"))
    e = Var("e")
    squares[()] = tl.sum(f32(t[k]) * f32(t[k]), over=k)
    x[e] = f32(t[e]) * tl.rsqrt(squares[()] / DEPTH + 1e-5) * f32(w[e])
    gate[i] = tl.sum(f32(G[i, k]) * x[k], over=k)
    up[i] = tl.sum(f32(U[i, k]) * x[k], over=k)
    y[i] = f16(gate[i] * tl.sigmoid(gate[i]) * up[i])
    pipeline = Pipeline("gated", inputs=[t, w, G, U], outputs={y: [N]})
    s = Schedule(pipeline)
    s[y].split(i, "io", "ii", 8).gpu_blocks("io").gpu_warps(4).vectorize("ii")
    s[squares].compute_at(y, "io").update(0).vectorize("k")
    for func in (gate, up):
        s[func].compute_at(y, "io").vectorize(i)
        s[func].update(0).vectorize(i).vectorize("k")
    kernel = pipeline.compile(s, "triton")
    golden(kernel.source)
    given = [torch.randn(*shape).half() for shape in ((DEPTH,), (DEPTH,), (21, DEPTH), (21, DEPTH))]
    one, two, three, four = (a.float() for a in given)
    normed = one * torch.rsqrt((one * one).mean() + 1e-5) * two
    wanted = torch.nn.functional.silu(three @ normed) * (four @ normed)
    torch.testing.assert_close(kernel(*given).float(), wanted, rtol=2e-3, atol=2e-2)
