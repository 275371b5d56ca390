"""specialize: another schedule of a stage where a condition on Sizes and Params holds."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    ShapeError,
    Size,
    Var,
    f32,
    i32,
    sum,
)
from tensorlang.testing import assert_equivalent

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")
TARGETS = ("interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


def matmul() -> Pipeline:
    a, b = Input("A", f32, [M, K]), Input("B", f32, [K, N])
    k, c, d = RDom("k", K), Func("C"), Func("D")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    d[i, j] = c[i, j] + 1
    return Pipeline("matmul", inputs=[a, b], outputs={d: [M, N]})


def row() -> Pipeline:
    a, out = Input("A", f32, [N]), Func("out")
    out[i] = a[i] * 2
    return Pipeline("row", inputs=[a], outputs={out: [N]})


def tiled_where_it_divides() -> tuple[Pipeline, Schedule]:
    p = matmul()
    s = Schedule(p)
    fast = s["D"].specialize((M % 8 == 0) & (N % 8 == 0))
    fast.tile(i, j, "io", "jo", "ii", "ji", 8, 8).gpu_blocks("io", "jo")
    fast.vectorize("ii").vectorize("ji")
    s["D"].specialize(N == 1).rename(j, "jo").gpu_blocks(i, "jo")
    s["D"].rename(j, "jo").gpu_blocks(i, "jo")
    s["C"].compute_at("D", "jo").vectorize(i).vectorize(j)
    s["C"].update(0).reorder("k", i, j).vectorize(i).vectorize(j)
    return p, s


def test_what_a_variant_does_shows_in_the_loops(golden):
    _, s = tiled_where_it_divides()
    golden(f"{s}\n\n{s.loop_nest()}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(8, 16, 5), (3, 1, 4), (7, 9, 3), (0, 8, 3)])
def test_every_variant_computes_the_same(target, shape):
    p, s = tiled_where_it_divides()
    m, n, k = shape
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(x).astype(np.float32) for x in ((m, k), (k, n))]
    assert_equivalent(p, s, target, arrays)


def test_a_factor_that_divides_leaves_no_tail():
    p = row()
    s = Schedule(p)
    s["out"].specialize(N % 128 == 0).split(i, "io", "ii", 128).vectorize("ii")
    text = str(p.lower(s))
    fast, _, slow = text.partition("if N%128 != 0")
    assert "out.io in [0, N//128)" in fast
    assert fast.count("if ") == 1
    assert "for out.i in [0, N)" in slow


def test_a_factor_of_the_one_that_divides_leaves_no_tail_either():
    p = row()
    s = Schedule(p)
    s["out"].specialize(N % 128 == 0).split(i, "io", "ii", 32).vectorize("ii")
    assert "if out" not in str(p.lower(s))
    assert_equivalent(p, s, "interpreter", [np.arange(256, dtype=np.float32)])


def test_a_size_that_is_one_number_becomes_it():
    p = row()
    s = Schedule(p)
    s["out"].specialize(N == 4).unroll(i)
    assert str(p.lower(s)).count("out[") == 4 + 1
    assert_equivalent(p, s, "interpreter", [np.arange(4, dtype=np.float32)])


def test_conditions_nest_and_the_same_one_leads_to_the_same_variant():
    p = row()
    s = Schedule(p)
    s["out"].specialize(N >= 8).split(i, "io", "ii", 8)
    s["out"].vectorize(i)
    s["out"].specialize(N >= 8).specialize(N % 8 == 0).unroll("ii")
    assert str(s).splitlines() == [
        "s[out].specialize(8 <= N).split(i, io, ii, 8)",
        "s[out].vectorize(i)",
        "s[out].specialize(8 <= N).specialize(N%8 == 0).unroll(ii)",
    ]
    assert Schedule.parse(str(s), p) == s
    assert str(s.copy()) == str(s)
    for n in (3, 8, 9, 16):
        assert_equivalent(p, s, "interpreter", [np.arange(n, dtype=np.float32)])


@pytest.mark.parametrize("target", TARGETS)
def test_a_call_that_no_variant_is_for_fails_before_anything_runs(target):
    p = row()
    s = Schedule(p)
    eights = s["out"].specialize(N % 8 == 0)
    eights.split(i, "io", "ii", 8).vectorize("ii")
    eights.specialize(N >= 16)
    eights.specialize_fail('at least {16} of "them"')
    s["out"].specialize(N == 3)
    s["out"].specialize_fail("eights, or three")
    assert Schedule.parse(str(s), p) == s
    assert "Var" not in s.to_python().replace('i = Var("i")\nio = Var("io")\nii = Var("ii")\n', "")
    # Nothing else is left of the stage.
    assert str(p.lower(s)).count("for out.") == 2
    kernel = p.compile(s, target)
    for n in (3, 16):
        assert_equivalent(p, s, target, [np.arange(n, dtype=np.float32)])
    for n, message in ((4, "eights, or three"), (8, 'at least {16} of "them"')):
        with pytest.raises(ShapeError) as caught:
            kernel(np.zeros(n, np.float32))
        assert caught.value.code == "no-variant"
        assert message in str(caught.value)


def test_a_call_is_told_the_conditions_as_they_were_written():
    a, gain, out = Input("A", f32, [N]), tl.Param("gain", f32), Func("out")
    out[i] = a[i] * gain
    p = Pipeline("scaled", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    s[out].specialize(gain == 1.0)
    s[out].specialize_fail("other gains")
    with pytest.raises(ShapeError, match=r"for gain == 1\.0, and fails otherwise"):
        p.compile(s, target="interpreter")(np.zeros(3, np.float32), gain=2.0)


def test_a_text_says_conditions_as_python_does():
    module = tl.parse("""
        algorithm row(A: f32[N], gain: f32, flip: bool) -> out[N] {
          out[i] = select(flip, 0 - A[i], A[i])*gain
        }
        schedule fast for row {
          s[out].specialize((gain == 1.0) & ~flip).vectorize(i)
          s[out].specialize(N % 4 == 0).split(i, io, ii, 4).unroll(ii)
        }""")
    p, s = module.pipelines["row"], module.schedules["fast"]
    assert tl.parse(str(module)).schedules["fast"] == s
    text = str(p.lower(s)).partition("if ~")[0]
    assert "gain" not in text.partition("vectorized")[2]
    assert "select" not in text
    for gain, flip in ((1.0, False), (1.0, True), (2.0, False)):
        params = {"gain": gain, "flip": flip}
        assert_equivalent(p, s, "interpreter", [np.arange(8, dtype=np.float32)], params=params)


@pytest.mark.parametrize("target", TARGETS)
def test_an_integer_param_chooses_a_variant(target):
    a, n, out = Input("A", f32, [N]), Param("n", i32), Func("out")
    out[i] = a[i] * n
    p = Pipeline("scaled", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    s["out"].specialize(n % 2 == 0).split(i, "io", "ii", 4).gpu_blocks("io").vectorize("ii")
    s["out"].gpu_blocks(i)
    for value in (2, 3):
        assert_equivalent(p, s, target, params={"n": value})


@pytest.mark.parametrize("target", TARGETS)
def test_a_lifted_reduction_is_computed_in_every_variant(target):
    a, k, out = Input("A", f32, [M, K]), RDom("k", K), Func("out")
    out[i] = sum(a[i, k], over=k) / 2
    p = Pipeline("means", inputs=[a], outputs={out: [M]})
    s = Schedule(p)
    s["out"].specialize(M % 4 == 0).split(i, "io", "ii", 4)
    assert_equivalent(p, s, target)


def test_a_window_slides_in_each_variant():
    a, f, out = Input("A", f32, [N + 2]), Func("f"), Func("out")
    f[i] = a[i] * 2
    out[i] = f[i] + f[i + 2]
    p = Pipeline("window", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    s["out"].specialize(N % 4 == 0)
    s["f"].compute_at("out", i).store_root().fold_storage(i, 4)
    for n in (4, 5):
        assert_equivalent(p, s, "interpreter", [np.arange(n + 2, dtype=np.float32)])
