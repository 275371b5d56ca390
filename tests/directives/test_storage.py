"""store_at with sliding windows, fold_storage, store_in, align_storage."""

from collections import Counter

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ScheduleError, Size, Target, Var, f32
from tensorlang.backends.interpreter import compile_program
from tensorlang.testing import assert_equivalent

H, W = Size("H"), Size("W")
x, y = Var("x"), Var("y")


def blur() -> Pipeline:
    a, bx, by = Input("A", f32, [H + 2, W + 2]), Func("blur_x"), Func("blur_y")
    bx[y, x] = a[y, x] + a[y, x + 1] + a[y, x + 2]
    by[y, x] = bx[y, x] + bx[y + 1, x] + bx[y + 2, x]
    return Pipeline("blur", inputs=[a], outputs={by: [H, W]})


def stores(p: Pipeline, s: Schedule, h: int = 16, w: int = 5) -> Counter[str]:
    """How many elements of each buffer the interpreter stores."""
    counts: Counter[str] = Counter()

    def count(access: object) -> None:
        if access.kind == "store":  # type: ignore[attr-defined]
            counts[access.buffer] += 1  # type: ignore[attr-defined]

    run = compile_program(p.lower(s), Target("interpreter"), trace=count)
    a = np.zeros((h + 2, w + 2), np.float32)
    run.run({"H": h, "W": w}, {}, (a,), (np.empty((h, w), np.float32),))
    return counts


def test_a_window_slides_along_the_serial_loop_inside_its_storage():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_root()
    assert_equivalent(p, s, target="interpreter")
    # Every row once: H + 2 of them, where computing at y alone takes 3 H.
    assert stores(p, s)["blur_x"] == 18 * 5
    t = Schedule(p)
    t["blur_x"].compute_at("blur_y", y)
    assert stores(p, t)["blur_x"] == 3 * 16 * 5


def test_each_parallel_strip_warms_its_window_up_on_its_own():
    p = blur()
    s = Schedule(p)
    s["blur_y"].split(y, "yo", "yi", 8).parallel("yo")
    s["blur_x"].compute_at("blur_y", "yi").store_at("blur_y", "yo")
    assert_equivalent(p, s, target="interpreter")
    assert stores(p, s)["blur_x"] == 2 * (8 + 2) * 5


def test_a_window_slides_along_an_outer_loop_for_each_inner_iteration():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", x).store_root()
    assert_equivalent(p, s, target="interpreter")
    assert stores(p, s)["blur_x"] == 18 * 5


def test_a_window_does_not_slide_over_an_iteration_that_is_left_out():
    a, f, g, r = Input("A", f32, [H + 2]), Func("f"), Func("g"), RDom("r", H)
    r = r.where(r != 3)
    f[y] = a[y] * 2
    g[y] = f32(0)
    g[r] = f[r] + f[r + 1] + f[r + 2]
    p = Pipeline("p", inputs=[a], outputs={g: [H]})
    s = Schedule(p)
    s[f].compute_at(g, r).store_root()
    values = np.arange(10, dtype=np.float32)
    expected = 6 * np.arange(8) + 6
    expected[3] = 0
    assert np.array_equal(p.compile(s, target="interpreter")(values), expected)


def test_folding_keeps_a_ring():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_root().fold_storage(y, 3)
    assert "fold (3, 0)" in str(p.lower(s))
    assert_equivalent(p, s, target="interpreter")


def test_a_ring_too_small_for_one_iteration_is_refused():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_at("blur_y", y).store_root().fold_storage(y, 2)
    with pytest.raises(ScheduleError, match="fold-too-small"):
        p.lower(s)


def test_storage_shared_by_parallel_iterations_is_refused():
    p = blur()
    s = Schedule(p)
    s["blur_y"].parallel(y)
    s["blur_x"].compute_at("blur_y", y).store_root()
    with pytest.raises(ScheduleError, match="shared-storage"):
        p.lower(s)


def test_memory_and_alignment_reach_the_buffer():
    p = blur()
    s = Schedule(p)
    s["blur_x"].compute_root().store_in("heap").align_storage(x, 16)
    text = str(p.lower(s))
    assert "in heap" in text
    assert "align1=16" in text
    assert Schedule.parse(str(s), p) == s
    assert_equivalent(p, s, target="interpreter")


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["blur_y"].store_in("heap"), "output-storage"),
        (lambda s: s["blur_x"].store_in("attic"), "unknown-memory"),
        (lambda s: s["blur_x"].fold_storage("q", 3), "unknown-dim"),
        (lambda s: s["blur_x"].fold_storage("y", 0), "factor-not-positive"),
        (lambda s: s["blur_x"].align_storage("y", -1), "factor-not-positive"),
    ],
)
def test_illegal_storage_is_refused(apply, code):
    with pytest.raises(ScheduleError) as caught:
        apply(Schedule(blur()))
    assert caught.value.code == code
