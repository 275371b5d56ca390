"""A ring has room for all that one iteration needs, wherever the Func is computed."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, ScheduleError, Size, Var, f32
from tests.lower.between import around, run, text

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def rows() -> Pipeline:
    """g[i] needs three rows of f."""
    a, f, g = Input("A", f32, [M + 2, N]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[i, j] = f[i, j] + f[i + 2, j]
    return Pipeline("rows", inputs=[a], outputs={g: [M, N]})


def folded(factor: int, dim: str = "i", at: str = "i") -> Schedule:
    s = Schedule(rows())
    s["f"].compute_at("g", at).store_root().fold_storage(dim, factor)
    return s


@pytest.mark.parametrize("factor", [3, 4, 7])
def test_a_ring_that_is_large_enough_is_the_storage(factor: int) -> None:
    s = folded(factor)
    before, after = around(rows(), s, "fold_storage")
    assert "fold" not in text(before)
    assert f"fold ({factor}, 0)" in text(after)
    a = np.arange(14, dtype=np.float32).reshape(7, 2)
    (out,) = run(rows(), rows().lower(s), a)
    assert np.array_equal(out, 2 * (a[:-2] + a[2:]))


def test_a_ring_smaller_than_an_iteration_is_refused_with_what_it_needs() -> None:
    with pytest.raises(ScheduleError, match="fold-too-small") as caught:
        rows().lower(folded(2))
    assert "needs 3 of them" in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.path == __file__


def test_what_depends_on_a_size_is_not_known_to_fit() -> None:
    with pytest.raises(ScheduleError, match="fold-too-small") as caught:
        rows().lower(folded(64, dim="j"))
    assert "which is not known to be at most 64" in str(caught.value)


def test_an_extent_that_a_tile_bounds_fits() -> None:
    s = Schedule(rows())
    s["g"].split(j, "jo", "ji", 8)
    s["g"].reorder("jo", i, "ji")
    s["f"].compute_at("g", "jo").store_root().fold_storage("j", 8)
    rows().lower(s)


def test_without_rings_nothing_is_looked_at() -> None:
    before, after = around(rows(), Schedule(rows()), "fold_storage")
    assert after is before
