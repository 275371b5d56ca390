"""Schedules from formulas for Triton: what they look like, and that they compute the same."""

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    autoschedule,
    exp,
    f16,
    f32,
    max,
    maximum,
    rsqrt,
    sum,
)  # fmt: skip
from tensorlang.autoschedule.triton_matmul import choose_tile
from tensorlang.target import Target
from tensorlang.testing import assert_equivalent

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")
SM_90 = Target("triton", arch="sm_90")


def linear_relu() -> Pipeline:
    a, b, bias = Input("A", f16, [M, K]), Input("B", f16, [K, N]), Input("bias", f16, [N])
    k, c, d = RDom("k", K), Func("C"), Func("D")
    c[i, j] = sum(f32(a[i, k]) * f32(b[k, j]), over=k)
    d[i, j] = f16(maximum(c[i, j] + f32(bias[j]), 0))
    return Pipeline("linear_relu", inputs=[a, b, bias], outputs={d: [M, N]})


def softmax() -> Pipeline:
    x, r, q = Input("X", f32, [M, N]), RDom("r", N), RDom("q", N)
    top, p, total, out = Func("top"), Func("p"), Func("total"), Func("S")
    top[i] = max(x[i, r], over=r)
    p[i, j] = exp(x[i, j] - top[i])
    total[i] = sum(p[i, q], over=q)
    out[i, j] = p[i, j] / total[i]
    return Pipeline("softmax", inputs=[x], outputs={out: [M, N]})


def layer_norm() -> Pipeline:
    x, w, r = Input("X", f32, [M, N]), Input("W", f32, [N]), RDom("r", N)
    mean, var, y = Func("mean"), Func("var"), Func("Y")
    mean[i] = sum(x[i, r], over=r) / f32(N)
    var[i] = sum((x[i, r] - mean[i]) ** 2, over=r) / f32(N)
    y[i, j] = (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * w[j]
    return Pipeline("layer_norm", inputs=[x, w], outputs={y: [M, N]})


def blur() -> Pipeline:
    a, f, g = Input("A", f32, [M + 2, N + 2]), Func("f"), Func("g")
    f[i, j] = (a[i, j] + a[i, j + 1] + a[i, j + 2]) / 3
    g[i, j] = (f[i, j] + f[i + 1, j] + f[i + 2, j]) / 3
    return Pipeline("blur", inputs=[a], outputs={g: [M, N]})


def row_sum() -> Pipeline:
    x, r, f = Input("X", f32, [M, N]), RDom("r", N), Func("f")
    f[i] = sum(x[i, r], over=r)
    return Pipeline("row_sum", inputs=[x], outputs={f: [M]})


def column_sum() -> Pipeline:
    x, r, f = Input("X", f32, [M, N]), RDom("r", M), Func("f")
    f[j] = sum(x[r, j], over=r)
    return Pipeline("column_sum", inputs=[x], outputs={f: [N]})


PIPELINES = (linear_relu, softmax, layer_norm, blur, row_sum, column_sum)


@pytest.mark.parametrize("make", PIPELINES, ids=lambda f: f.__name__)
def test_the_schedule_reads_well_and_computes_the_same(make, golden):
    p = make()
    s = autoschedule(p, SM_90)
    golden(str(s) + "\n")
    assert Schedule.parse(str(s), p) == s
    small = autoschedule(p, SM_90, dict.fromkeys(("M", "N", "K"), 40))
    assert_equivalent(p, small, target="interpreter")


@pytest.mark.parametrize("make", [softmax, row_sum, column_sum], ids=lambda f: f.__name__)
def test_rows_and_columns_are_one_kernel(make):
    p = make()
    source = p.compile(autoschedule(p, SM_90), "triton").source
    assert source.count("@triton.jit") == 1


def test_the_tile_fits_the_grid_to_the_chip():
    large = choose_tile(4096, 4096, SM_90)
    assert (large.rows, large.columns) == (128, 256)
    small = choose_tile(256, 256, SM_90)
    assert small.rows * small.columns <= 64 * 64


def test_a_long_row_is_taken_in_pieces():
    p = softmax()
    s = autoschedule(p, SM_90, {"M": 8, "N": 131072})
    assert "split(q, q_o, q_i, 8192)" in str(s)


def test_few_rows_split_k_over_the_chip_and_merge_in_the_launch() -> None:
    k, a, b = RDom("k", K), Input("A", f16, [M, K]), Input("B", f16, [N, K])
    c, d = Func("C"), Func("D")
    c[i, j] = sum(f32(a[i, k]) * f32(b[j, k]), over=k)
    d[i, j] = f16(maximum(c[i, j], 0))
    pipeline = Pipeline("few", inputs=[a, b], outputs={d: [M, N]})
    schedule = autoschedule(pipeline, SM_90, {"M": 16, "N": 4096, "K": 4096})
    kernel = pipeline.compile(schedule, SM_90)
    assert kernel.notes == ()
    assert kernel.source.count("tl.atomic_add") == 1
    assert "tl.dot(B, A, C_u)" in kernel.source
    wide = autoschedule(pipeline, SM_90, {"M": 16, "N": 28672, "K": 4096})
    assert "rfactor" not in str(wide)
    small = autoschedule(pipeline, SM_90, {"M": 5, "N": 130, "K": 1100})
    drawn = np.random.default_rng(7)
    given = [drawn.standard_normal(shape).astype(np.float16) for shape in ((5, 1100), (130, 1100))]
    assert_equivalent(pipeline, small, "triton", given)


def test_short_dimensions_between_rows_and_columns_are_unrolled_and_read_once() -> None:
    x, y, p = Input("X", f32, [M, N, 2, 8]), Func("Y"), Var("p")
    d = Var("d")
    y[i, j, p, d] = x[i, j, 0, d] - x[i, j, 1, d] * f32(p)
    pipeline = Pipeline("halves", inputs=[x], outputs={y: [M, N, 2, 8]})
    schedule = autoschedule(pipeline, SM_90)
    assert "unroll(p)" in str(schedule)
    assert pipeline.compile(schedule, SM_90).source.count("tl.load(") == 2
    given = np.random.default_rng(7).standard_normal((3, 5, 2, 8)).astype(np.float32)
    assert_equivalent(pipeline, schedule, "triton", [given])


def gated(rows: int, depth: int) -> Pipeline:
    """y = norm(x); (U y) * (V y), and W y where W has other rows."""
    x, r = Input("X", f16, [depth]), RDom("r", depth)
    level, y = Func("level"), Func("y")
    level[()] = sum(f32(x[r]) * f32(x[r]), over=r)
    y[j] = f16(f32(x[j]) * rsqrt(level[()] + 1e-5))
    made: list[Func] = []
    inputs = [x]
    for name in "UVW":
        n = rows // 2 if name == "W" else rows
        w, k, p, f = (
            Input(name, f16, [n, depth]),
            RDom(f"k{name}", depth),
            Func(f"p{name}"),
            Func(name.lower()),
        )
        p[i] = sum(f32(w[i, k]) * f32(y[k]), over=k)
        f[i] = f16(p[i])
        inputs.append(w)
        made.append(f)
    u, v, w = made
    out, other = Func("out"), Func("other")
    out[i] = u[i] * v[i]
    other[i] = w[rows // 2 - 1 - i]
    outputs = {out: [rows], other: [rows // 2]}
    return Pipeline("gated", inputs=inputs, outputs=outputs)


def test_products_of_a_vector_share_a_launch_and_find_its_level_again() -> None:
    pipeline = gated(6, 512)
    schedule = autoschedule(pipeline, SM_90)
    kernel = pipeline.compile(schedule, SM_90)
    # The gate and the other product are one launch, though they have different rows.
    assert kernel.source.count("@triton.jit") == 2
    assert kernel.source.count("host.empty") == 1
    assert kernel.notes == ()
    random = np.random.default_rng(7)
    shapes = [(512,), (6, 512), (6, 512), (3, 512)]
    given = [random.standard_normal(shape).astype(np.float16) for shape in shapes]
    assert_equivalent(pipeline, schedule, "triton", given)


def test_a_row_and_a_number_are_one_program_each() -> None:
    x, r, q = Input("X", f32, [48]), RDom("r", 48), RDom("q", 48)
    level, y, z = Func("level"), Func("Y"), Func("Z")
    level[()] = sum(x[r] * x[r], over=r)
    y[i] = x[i] * rsqrt(level[()])
    z[()] = sum(x[q], over=q)
    pipeline = Pipeline("row", inputs=[x], outputs={y: [48], z: []})
    schedule = autoschedule(pipeline, SM_90)
    assert "vectorize(r)" in str(schedule)
    assert "vectorize(q)" in str(schedule)
    given = np.random.default_rng(7).standard_normal(48).astype(np.float32)
    assert_equivalent(pipeline, schedule, "triton", [given])


def test_columns_are_summed_in_parts_along_their_lanes() -> None:
    x, w, r, one = Input("X", f16, [M, N]), Input("W", f16, [M]), RDom("r", M), Func("total")
    g = Func("G")
    one[j] = sum(f32(x[r, j]) * f32(w[r]), over=r)
    g[j] = f16(one[j])
    pipeline = Pipeline("columns", inputs=[x, w], outputs={g: [N]})
    schedule = autoschedule(pipeline, SM_90, {"M": 2048, "N": 4096})
    assert "rfactor(part, u)" in str(schedule)
    assert pipeline.compile(schedule, SM_90).notes == ()
    random = np.random.default_rng(7)
    given = [random.standard_normal(shape).astype(np.float16) for shape in ((70, 300), (70,))]
    assert_equivalent(pipeline, schedule, "triton", given)
    few = autoschedule(pipeline, SM_90, {"M": 8, "N": 4096})
    assert "rfactor" not in str(few)


def test_outputs_of_one_shape_are_computed_side_by_side() -> None:
    x, y, f, g = Input("X", f32, [M, N]), Input("Y", f32, [M, N]), Func("f"), Func("g")
    f[i, j] = x[i, j] * y[i, j]
    g[i, j] = x[i, j] + 1
    pipeline = Pipeline("both", inputs=[x, y], outputs={f: [M, N], g: [M, N]})
    schedule = autoschedule(pipeline, SM_90)
    source = pipeline.compile(schedule, SM_90).source
    assert source.count("@triton.jit") == 1
    assert source.count("tl.load(") == 2
    random = np.random.default_rng(7)
    given = [random.standard_normal((5, 70)).astype(np.float32) for _ in "XY"]
    assert_equivalent(pipeline, schedule, "triton", given)


def test_an_output_that_another_is_made_of_is_read_from_no_memory() -> None:
    """As what a gradient keeps of an activation."""
    x, y, f, g = Input("X", f32, [M, N]), Input("Y", f32, [N]), Func("f"), Func("g")
    f[i, j] = x[i, j] + y[j]
    g[i, j] = exp(f[i, j]) * f[i, j]
    pipeline = Pipeline("kept", inputs=[x, y], outputs={f: [M, N], g: [M, N]})
    schedule = autoschedule(pipeline, SM_90)
    source = pipeline.compile(schedule, SM_90).source
    assert source.count("@triton.jit") == 1
    assert source.count("tl.load(") == 2
    random = np.random.default_rng(7)
    given = [random.standard_normal(shape).astype(np.float32) for shape in ((5, 70), (70,))]
    assert_equivalent(pipeline, schedule, "triton", given)


def norm_and_what_it_keeps(rows: Size, columns: Size) -> Pipeline:
    """h = x + residual; its layer_norm; the mean and the level of each row."""
    x, y, w = Input("X", f32, [rows, columns]), Input("Y", f32, [rows, columns]), Func("W")
    h, mean, level, out = Func("h"), Func("mean"), Func("level"), Func("out")
    total, square = Func("total"), Func("square")
    r, q, n = RDom("r", columns), RDom("q", columns), f32(columns)
    w[j] = f32(j)
    h[i, j] = x[i, j] + y[i, j]
    total[i] = sum(h[i, r], over=r)
    mean[i] = total[i] / n
    square[i] = sum((h[i, q] - mean[i]) * (h[i, q] - mean[i]), over=q)
    level[i] = rsqrt(square[i] / n + 1e-5)
    out[i, j] = (h[i, j] - mean[i]) * level[i] * w[j]
    outputs = {h: [rows, columns], mean: [rows], out: [rows, columns], level: [rows]}
    return Pipeline("norm", inputs=[x, y], outputs=outputs)


def test_a_sum_its_norm_and_the_statistics_are_one_kernel_that_reads_once() -> None:
    pipeline = norm_and_what_it_keeps(M, N)
    schedule = autoschedule(pipeline, SM_90, {"M": 2048, "N": 4096})
    source = pipeline.compile(schedule, SM_90).source
    assert source.count("@triton.jit") == 1
    assert source.count("tl.load(") == 2
    assert source.count("tl.store(") == 4
    assert Schedule.parse(str(schedule), pipeline) == schedule
    random = np.random.default_rng(7)
    given = [random.standard_normal((5, 70)).astype(np.float32) for _ in "XY"]
    assert_equivalent(pipeline, schedule, "triton", given)


def test_rows_that_registers_do_not_hold_are_kernels_of_their_own() -> None:
    pipeline = norm_and_what_it_keeps(M, N)
    long = autoschedule(pipeline, SM_90, {"M": 64, "N": 32768})
    assert "clone_in" not in str(long)


def test_an_output_that_is_read_at_another_row_is_found_again_there() -> None:
    x, h, s, out, r = Input("X", f32, [M, N]), Func("h"), Func("s"), Func("out"), RDom("r", N)
    h[i, j] = x[i, j] * 2
    s[i] = sum(h[M - 1 - i, r], over=r)
    out[i, j] = h[i, j] + s[i]
    pipeline = Pipeline("turned", inputs=[x], outputs={h: [M, N], out: [M, N]})
    schedule = autoschedule(pipeline, SM_90, {"M": 64, "N": 64})
    given = [np.random.default_rng(7).standard_normal((5, 70)).astype(np.float32)]
    assert_equivalent(pipeline, schedule, "triton", given)


def test_two_products_of_the_same_rows_are_one_loop() -> None:
    a, (u, v) = Input("A", f16, [M, 64]), (Input(n, f16, [N, 64]) for n in "UV")
    p, q, o = Func("p"), Func("q"), Func("o")
    k, m = RDom("k", 64), RDom("m", 64)
    p[i, j] = sum(f32(a[i, k]) * f32(u[j, k]), over=k)
    q[i, j] = sum(f32(a[i, m]) * f32(v[j, m]), over=m)
    o[i, j] = f16(maximum(p[i, j], 0) * q[i, j])
    pipeline = Pipeline("gate", inputs=[a, u, v], outputs={o: [M, N]})
    schedule = autoschedule(pipeline, SM_90, {"M": 2048, "N": 14336})
    source = pipeline.compile(schedule, SM_90).source
    assert source.count("@triton.jit") == 1
    assert source.count("tl.dot(") == 2
    small = autoschedule(pipeline, SM_90, {"M": 40, "N": 40})
    random = np.random.default_rng(7)
    given = [random.standard_normal((n, 64)).astype(np.float16) for n in (20, 40, 40)]
    assert_equivalent(pipeline, small, "triton", given)
