"""bound, bound_extent, align_bounds: the region that the loops of a Func run over."""

import numpy as np
import pytest

from tensorlang import Func, Input, Param, Pipeline, RDom, Schedule, ShapeError, Size, Var, f32, i32
from tensorlang.testing import assert_equivalent

H, W, C = Size("H"), Size("W"), Size("C")
y, x, c = Var("y"), Var("x"), Var("c")
TARGETS = ("reference", "interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


def blur() -> Pipeline:
    a, bx, by = Input("A", f32, [H + 2, W + 2]), Func("blur_x"), Func("blur_y")
    bx[y, x] = a[y, x] + a[y, x + 1] + a[y, x + 2]
    by[y, x] = bx[y, x] + bx[y + 1, x] + bx[y + 2, x]
    return Pipeline("blur", inputs=[a], outputs={by: [H, W]})


def tinted() -> Pipeline:
    a, out = Input("A", f32, [H, C]), Func("out")
    out[y, c] = a[y, c] * 2
    return Pipeline("tinted", inputs=[a], outputs={out: [H, C]})


@pytest.mark.parametrize("target", TARGETS)
def test_an_output_of_a_bounded_extent_is_unrolled_without_a_guard(target):
    p = tinted()
    s = Schedule(p)
    s["out"].bound(c, 0, 3).unroll(c)
    text = str(p.lower(s))
    assert text.count("out[out.y, ") == 3
    assert "if " not in text
    assert_equivalent(p, s, target)


def test_a_call_that_does_not_meet_the_bound_is_refused_before_anything_runs():
    p = tinted()
    s = Schedule(p)
    s["out"].bound(c, 0, 3).unroll(c)
    kernel = p.compile(s, target="interpreter")
    out = np.full((2, 4), 7, np.float32)
    with pytest.raises(ShapeError, match="bound-not-met"):
        kernel(np.zeros((2, 4), np.float32), out=out)
    assert (out == 7).all()


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_needed_lies_within_the_bound_of_a_func_between(target):
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().bound(x, -2, 32).vectorize(x)
    assert "blur_x: f32[H + 2, -2 : +32]" in str(p.lower(s))
    assert_equivalent(p, s, target)
    kernel = p.compile(s, target)
    if target != "reference":
        with pytest.raises(ShapeError, match="needed from 0 to 30, where its schedule says -2 to"):
            kernel(np.zeros((9, 33), np.float32))


def test_no_bound_enlarges_what_is_read_of_an_input():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().bound(x, -64, 256).align_bounds(y, 16)
    # The interpreter refuses every access outside an Input.
    assert_equivalent(p, s, "interpreter")


@pytest.mark.parametrize("target", TARGETS)
def test_bound_extent_begins_where_the_need_begins(target):
    p = blur()
    s = Schedule(p)
    s["blur_y"].split(y, "yo", "yi", 4).gpu_blocks("yo").vectorize("yi").vectorize(x)
    s["blur_x"].compute_at("blur_y", "yo").bound_extent(y, 16).vectorize(y).vectorize(x)
    assert "blur_x.y.min : +16," in str(p.lower(s))
    assert_equivalent(p, s, target)


@pytest.mark.parametrize("target", TARGETS)
def test_align_bounds_widens_to_whole_steps(target):
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().align_bounds(x, 8, 3).split(x, "xo", "xi", 8).vectorize("xi")
    text = str(p.lower(s))
    assert "-5 : +" in text
    assert_equivalent(p, s, target)


def test_a_tile_of_constant_extent_stays_constant_when_it_is_aligned():
    p = blur()
    s = Schedule(p)
    s["blur_y"].split(y, "yo", "yi", 6)
    s["blur_x"].compute_at("blur_y", "yo").align_bounds(y, 4).vectorize(y)
    # 8 rows from yo*6, which is 2 modulo 4 at odd yo: 11 rows, so 12.
    assert "blur_x.y.min : +12" in str(p.lower(s))
    assert_equivalent(p, s, "interpreter")


def test_a_window_still_slides_in_an_aligned_region():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_root().align_bounds(x, 4).align_bounds(y, 2)
    assert_equivalent(p, s, "interpreter")


def test_the_extent_of_an_iteration_is_not_that_of_storage_outside_its_loop():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_root().bound_extent(y, 3).vectorize(y)
    assert_equivalent(p, s, "interpreter")


def test_the_last_bound_of_a_dimension_counts():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().bound(x, 0, 8).bound(x, 0, 64)
    assert_equivalent(p, s, "interpreter")


def test_ends_are_expressions_of_sizes_and_params():
    a, n, f, out = Input("A", f32, [W]), Param("n", i32), Func("f"), Func("out")
    f[x] = a[x] + 1
    out[x] = f[x] * n
    p = Pipeline("p", inputs=[a], outputs={out: [W]})
    s = Schedule(p)
    s[f].compute_root().bound(x, -n, 2 * n)
    assert str(s) == "s[f].compute_root().bound(x, -n, 2*n)"
    assert Schedule.parse(str(s), p) == s
    assert_equivalent(p, s, "interpreter", params={"n": 13})
    with pytest.raises(ShapeError, match="bound-not-met"):
        p.compile(s, "interpreter")(np.zeros(4, np.float32), n=3)


def test_storage_further_out_holds_more_than_the_extent_of_one_iteration():
    p = blur()
    s = Schedule(p)
    s["blur_x"].bound_extent(y, 3).compute_at("blur_y", y).store_root()
    assert_equivalent(p, s, "interpreter")


def test_the_text_of_a_bound_reads_back():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().bound(x, 0, 32).bound_extent(y, H + 2).align_bounds(x, 4)
    s["blur_x"].align_bounds(y, 8, 3)
    text = str(s)
    assert "bound_extent(y, H + 2).align_bounds(x, 4)" in text
    assert "align_bounds(y, 8, remainder=3)" in text
    assert Schedule.parse(text, p) == s


@pytest.mark.parametrize("reach", [0, 2])
@pytest.mark.parametrize("factor", [1, 2])
def test_past_the_end_of_an_aligned_output_nothing_is_needed_of_what_is_computed_there(
    reach: int, factor: int
):
    a, f, out, total = Input("A", f32, [W + reach]), Func("f"), Func("out"), Func("total")
    r = RDom("r", reach + 1)
    f[x] = a[x]
    f[x] = f[x] + 1
    total[x] = f32(0)
    total[x] += f[x + r]
    out[x] = total[x] - f[x + reach]
    p = Pipeline("p", inputs=[a], outputs={out: [W]})
    s = Schedule(p)
    s[out].align_bounds(x, 3).split(x, "xo", "xi", factor)
    s[f].compute_at(out, "xo")
    s[total].compute_at(out, "xo")
    assert_equivalent(p, s, "interpreter", [np.ones(4 + reach, np.float32)])
