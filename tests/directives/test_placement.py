"""compute_inline, compute_root, compute_at, store_at, store_root: where a Func is made and kept."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Var, f32, sum
from tensorlang.testing import assert_equivalent

H, W = Size("H"), Size("W")
x, y = Var("x"), Var("y")


def blur() -> Pipeline:
    a, bx, by = Input("A", f32, [H + 2, W + 2]), Func("blur_x"), Func("blur_y")
    bx[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) / 3
    by[y, x] = (bx[y, x] + bx[y + 1, x] + bx[y + 2, x]) / 3
    return Pipeline("blur", inputs=[a], outputs={by: [H, W]})


def inline(s: Schedule) -> None:
    s["blur_x"].compute_inline()


def root(s: Schedule) -> None:
    s["blur_x"].compute_root()


def at_a_row(s: Schedule) -> None:
    s["blur_x"].compute_at("blur_y", y)


def at_a_tile(s: Schedule) -> None:
    s["blur_y"].tile(y, x, "yo", "xo", "yi", "xi", 4, 8)
    s["blur_x"].compute_at("blur_y", "xo")


def sliding(s: Schedule) -> None:
    s["blur_x"].compute_at("blur_y", y).store_root()


def kept_at_a_strip(s: Schedule) -> None:
    s["blur_y"].split(y, "yo", "yi", 4)
    s["blur_x"].compute_at("blur_y", "yi").store_at("blur_y", "yo")


PLACES = [inline, root, at_a_row, at_a_tile, sliding, kept_at_a_strip]


@pytest.mark.parametrize("place", PLACES, ids=lambda f: f.__name__)
def test_every_place_gives_the_same_values(place, golden):
    p = blur()
    s = Schedule(p)
    place(s)
    golden(s.loop_nest() + "\n")
    assert Schedule.parse(str(s), p) == s
    assert_equivalent(p, s, target="interpreter")


def test_a_func_at_a_loop_covers_what_one_iteration_needs():
    p = blur()
    s = Schedule(p)
    at_a_tile(s)
    assert "allocate blur_x[6, 8]" in s.loop_nest()


def test_a_reduction_in_an_expression_is_computed_at_its_home():
    a, r, f = Input("A", f32, [H, W]), RDom("r", W), Func("f")
    f[y, x] = a[y, x] / sum(a[y, r], over=r)
    p = Pipeline("shares", inputs=[a], outputs={f: [H, W]})
    s = Schedule(p)
    assert "allocate f_sum[1]" in s.loop_nest()
    assert_equivalent(p, s, target="interpreter")


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["blur_y"].compute_inline(), "output-not-root"),
        (lambda s: s["blur_y"].compute_at("blur_x", "x"), "output-not-root"),
        (lambda s: s["blur_x"].compute_at("blur_z", "x"), "unknown-func"),
        (lambda s: s["blur_x"].compute_at("blur_x", "x"), "unknown-func"),
        (lambda s: s["blur_x"].compute_at("blur_y", "q"), "unknown-loop"),
    ],
)
def test_illegal_places_are_refused(apply, code):
    s = Schedule(blur())
    with pytest.raises(ScheduleError) as caught:
        apply(s)
    assert caught.value.code == code


def test_a_consumer_outside_the_loop_is_named():
    a, f, g, h = Input("A", f32, [W]), Func("f"), Func("g"), Func("h")
    f[x] = a[x] * 2
    g[x] = f[x] + 1
    h[x] = g[x] + f[x]
    p = Pipeline("chain", inputs=[a], outputs={h: [W]})
    s = Schedule(p)
    s[g].compute_root()
    s[f].compute_at(h, x)
    with pytest.raises(ScheduleError, match="consumer-outside"):
        p.lower(s)


def test_storage_inside_the_loop_that_computes_is_refused():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_at("blur_y", x)
    with pytest.raises(ScheduleError, match="store-inside-compute"):
        p.lower(s)


def test_inlined_again_a_func_has_no_storage():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root()
    assert "allocate blur_x" in str(p.lower(s))
    s["blur_x"].compute_inline()
    assert "allocate" not in str(p.lower(s))
