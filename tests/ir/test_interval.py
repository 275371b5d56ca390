"""Intervals contain every value, are exact for linear forms, and come out in closed form."""

from itertools import product as combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorlang.ir.expr import Cast, Expr, Load, Size, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.functions import clamp, maximum, minimum, promise, select
from tensorlang.ir.interval import Interval, bounds_of, intersect, sharpen, union, within
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import i32, i64, index, u8
from tests.ir.evaluation import BrokenPromiseError, value_of
from tests.ir.index_exprs import Point, conditions, index_exprs, number, points

i, j, k, t, x, io, ii = (Var(n) for n in ("i", "j", "k", "t", "x", "io", "ii"))
M, N = Size("M"), Size("N")


def between(lo: object, hi: object) -> Interval:
    a, b = (None if e is None else e if isinstance(e, Expr) else number(e) for e in (lo, hi))  # type: ignore[arg-type]
    return Interval(a, b)


TILE = {"ii": between(0, 127), "r": between(0, 2)}
WHOLE = {"x": between(0, N - 1)}
LANES = {"x": between(io * 128, io * 128 + 127)}
TRIANGLE = {"i": between(0, N - 1), "j": between(0, i)}
TAKEN = Cast(index, Load("taken", (x,), 0, i32))

EXACT = [
    (io * 128 + ii - 1 + Var("r"), TILE, io * 128 - 1, io * 128 + 128),
    ((x + 1) - x, WHOLE, 1, 1),
    (i + j, TRIANGLE, 0, 2 * N - 2),
    (i - j, TRIANGLE, 0, N - 1),
    (j - i, TRIANGLE, 1 - N, 0),
    (3 * x - 2, WHOLE, -2, 3 * N - 5),
    (-x, WHOLE, 1 - N, 0),
    (x // 2, LANES, io * 64, io * 64 + 63),
    (x % 128, LANES, 0, 127),
    (x % 64, LANES, 0, 63),
    ((x + 64) % 256, {"x": between(0, 127)}, 64, 191),
    (x // 128, LANES, io, io),
    (t // N, {"t": between(0, M * N - 1)}, 0, M - 1),
    (t % N, {"t": between(0, M * N - 1)}, 0, N - 1),
    (x * N + k, {"x": between(0, M - 1), "k": between(0, N - 1)}, 0, M * N - 1),
    (clamp(x - 1, 0, N - 1), WHOLE, 0, maximum(N - 2, 0)),
    (minimum(x, 7), WHOLE, 0, minimum(N - 1, 7)),
    (minimum(x + 3, N - 1) - x, {"x": between(0, 9)}, minimum(N - 10, 3), minimum(N - 1, 3)),
    (select(x < 4, x, 3), WHOLE, 0, 3),
    (select(x < 4, x, 0), WHOLE, 0, minimum(N - 1, 3)),
    (select(x < 0, -x, x), {"x": between(-5, 5)}, 0, 5),
    (promise(TAKEN, 0, N - 1), WHOLE, 0, N - 1),
    (Cast(index, Load("bytes", (x,), 0, u8)), WHOLE, 0, 255),
    (
        Cast(index, clamp(Load("taken", (x,), 0, i32), 0, Cast(i64, M - 1))),
        WHOLE,
        minimum(M - 1, 0),
        minimum(M - 1, 2**31 - 1),
    ),
    (select((TAKEN >= 0) & (TAKEN < M), TAKEN, 0), WHOLE, 0, None),
    (io * 128 + ii, {"ii": between(0, minimum(128, M - io * 128) - 1)}, io * 128, None),
    (x, {}, x, x),
    (x, {"x": between(None, 3)}, None, 3),
    (x * x, {"x": between(0, 5)}, 0, 25),
]


@pytest.mark.parametrize(("e", "ranges", "lo", "hi"), EXACT)
def test_bounds(e: Expr, ranges: dict[str, Interval], lo: object, hi: object):
    found = bounds_of(e, ranges)
    expected = between(lo, hi)
    assert found.lo is (None if expected.lo is None else simplify(expected.lo))
    if hi is not None:
        assert found.hi is (None if expected.hi is None else simplify(expected.hi))


def test_guarded_data_is_bounded_by_its_guard():
    guarded = select((TAKEN >= 0) & (TAKEN < M), TAKEN, 0)
    facts = Facts.none.assume(M >= 1)
    assert bounds_of(guarded, WHOLE, facts).hi is simplify(M - 1)


def test_a_guard_bounds_a_form_of_several_names():
    guards = Facts.none.assume((2 * k <= i) & (i < 2 * k + N))
    found = bounds_of(i - 2 * k + 1, {"i": between(0, M - 1), "k": between(0, 2)}, guards)
    assert found.lo is number(1)
    assert found.hi is simplify(minimum(M, N))


def test_tile_extent_is_constant_where_origins_differ_by_constants():
    a = bounds_of(x - 1, LANES)
    b = bounds_of(x + 1, LANES)
    both = union(a, b)
    assert both.lo is not None
    assert both.hi is not None
    assert simplify(both.hi - both.lo + 1) is number(130)


def test_union_and_intersection_keep_an_end_that_is_provably_the_one():
    a, b = between(0, N - 1), between(-1, N)
    assert union(a, b).hi is simplify(N)
    assert intersect(a, b).lo is number(0)
    assert union(a, between(None, 0)).lo is None
    assert intersect(a, between(None, None)).hi is simplify(N - 1)
    either = union(between(M, M), between(N, N))
    assert either.lo is simplify(minimum(M, N))


SHARPENED = [
    (j <= i, {"i": between(0, N - 1), "j": between(0, M - 1)}, {"j": (0, minimum(i, M - 1))}),
    (j <= i, {"i": between(0, N - 1), "j": between(0, N - 1)}, {"i": (0, N - 1)}),
    (x < M, {"x": between(0, 127)}, {"x": (0, minimum(M - 1, 127))}),
    (x < 64, {"x": between(0, 127)}, {"x": (0, 63)}),
    (x < 200, {"x": between(0, 127)}, {"x": (0, 127)}),
    (2 * x >= 5, {"x": between(0, 127)}, {"x": (3, 127)}),
    (x == 3, {"x": between(0, 127)}, {"x": (3, 3)}),
    ((x >= 1) & (x < N - 1), {"x": between(0, N - 1)}, {"x": (1, N - 2)}),
    (~(x >= 4), {"x": between(0, 9)}, {"x": (0, 3)}),
    (~((x < 2) | (x >= 4)), {"x": between(0, 9)}, {"x": (2, 3)}),
    (x < N, {"x": between(None, None)}, {"x": (None, N - 1)}),
    (minimum(x, 9) >= 4, {"x": between(0, N)}, {"x": (4, N)}),
    (maximum(x, M) < N, {"x": between(0, None)}, {"x": (0, N - 1)}),
    ((x < 3) | (x < 5), {"x": between(0, 9)}, {"x": (0, 4)}),
]


def test_an_equality_bounds_both_names():
    ranges = {"i": between(0, N + 2), "j": between(0, N + 2)}
    sharper = sharpen(ranges, i == j + 1)
    assert bounds_of(i.as_expr(), sharper).lo is number(1)
    assert bounds_of(j.as_expr(), sharper).hi is simplify(N + 1)


@pytest.mark.parametrize(("left_out", "lo", "hi"), [(0, 1, 9), (9, 0, 8), (4, 0, 9)])
def test_a_number_left_out_at_an_end_moves_the_end(left_out: int, lo: int, hi: int):
    ranges = {"x": between(0, 9)}
    found = sharpen(ranges, ~(x == left_out), within(ranges))["x"]
    assert found.lo is number(lo)
    assert found.hi is number(hi)


@pytest.mark.parametrize(("condition", "ranges", "expected"), SHARPENED)
def test_sharpen(condition: Expr, ranges: dict[str, Interval], expected: dict[str, tuple]):
    sharper = sharpen(ranges, condition)
    for name, (lo, hi) in expected.items():
        end = between(lo, hi)
        for found, wanted in ((sharper[name].lo, end.lo), (sharper[name].hi, end.hi)):
            assert found is (None if wanted is None else simplify(wanted))


lows = st.sampled_from([number(0), number(0), number(1), number(-2), M - 2])
extents = st.sampled_from([number(8), number(4), M, N, M * N, (M + 7) // 8, minimum(N, 8)])


@st.composite
def boxes(draw: st.DrawFn) -> dict[str, Interval]:
    """Ranges of i, j and k, each of which may begin or end at an earlier one."""
    ranges: dict[str, Interval] = {}
    before: list[Expr] = []
    for name in draw(st.lists(st.sampled_from((i, j, k)), unique=True)):
        low = draw(st.sampled_from([*before, draw(lows)]))
        high = draw(st.sampled_from([*before, low + draw(extents) - 1]))
        ranges[name.name] = Interval(low, high)
        before.append(name)
    return ranges


def inside(ranges: dict[str, Interval], point: Point) -> bool:
    return all(
        value_of(r.lo, point) <= point[name] <= value_of(r.hi, point)  # type: ignore[arg-type]
        for name, r in ranges.items()
    )


many_points = st.lists(points, min_size=30, max_size=30)


@settings(max_examples=300)
@given(index_exprs, boxes(), conditions, many_points)
def test_every_value_is_inside(
    e: Expr, ranges: dict[str, Interval], condition: Expr, where: list[Point]
):
    bounds = bounds_of(e, ranges)
    guarded = bounds_of(e, sharpen(ranges, condition))
    seen = False
    for point in where:
        if not inside(ranges, point):
            continue
        try:
            value, holds = value_of(e, point), value_of(condition, point)
        except BrokenPromiseError:
            continue
        seen = True
        for found in (bounds, guarded) if holds else (bounds,):
            assert found.lo is None or value_of(found.lo, point) <= value, (found, point)
            assert found.hi is None or value <= value_of(found.hi, point), (found, point)
    assume(seen)


@given(index_exprs, boxes())
def test_ends_mention_no_varying_name(e: Expr, ranges: dict[str, Interval]):
    bounds = bounds_of(e, ranges)
    for end in (bounds.lo, bounds.hi):
        assert end is None or end.free.isdisjoint(ranges)


coefficients = st.integers(-4, 4)


@given(st.tuples(coefficients, coefficients, coefficients, st.integers(-9, 9)), st.data())
def test_linear_forms_over_constant_ranges_are_exact(form: tuple[int, ...], data: st.DataObject):
    a, b, c, d = form
    low = data.draw(st.tuples(*[st.integers(-3, 3)] * 3))
    size = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    spans = [range(lo, lo + n) for lo, n in zip(low, size, strict=True)]
    values = [a * p + b * q + c * r + d for p, q, r in combinations(*spans)]
    ranges = {n: between(s[0], s[-1]) for n, s in zip("ijk", spans, strict=True)}
    found = bounds_of(a * i + b * j + c * k + d, ranges)
    assert found.lo is number(min(values))
    assert found.hi is number(max(values))


@given(st.tuples(coefficients, coefficients), st.integers(1, 6))
def test_linear_forms_over_a_triangle_are_exact(form: tuple[int, int], size: int):
    a, b = form
    found = bounds_of(a * i + b * j, TRIANGLE)
    values = [a * p + b * q for p in range(size) for q in range(p + 1)]
    if a * b >= 0 or a == -b:
        assert value_of(found.lo, {"N": size}) == min(values)  # type: ignore[arg-type]
        assert value_of(found.hi, {"N": size}) == max(values)  # type: ignore[arg-type]


def test_ranges_that_depend_on_each_other_in_a_circle_are_unbounded():
    ranges = {"i": between(j, 8), "j": between(i, 8)}
    assert bounds_of(i, ranges).lo is None


def test_sharing_costs_nothing():
    e: Expr = i
    for n in range(20):
        e = minimum(select(j < n, e + 1, e), e * 2)
    bounds = bounds_of(e, {"i": between(0, N - 1), "j": between(0, 9)})
    assert bounds.lo is number(0)


def test_of_a_multiple_the_lowest_quotient_is_rounded_up():
    x = Var("x")
    whole = Facts.none.assume((x + 1) % 2 == 0)
    found = bounds_of((x + 1) // 2, {"x": Interval(number(0), number(8))}, whole)
    assert found.lo is number(1)
    assert found.hi is number(4)


def test_what_parity_makes_needless_still_bounds():
    even = i % 2 == 0
    facts = Facts.none.with_range("i", number(0), number(8)).assume(even)
    ranges = sharpen({"i": between(0, 7)}, even, facts)
    assert bounds_of(minimum(i + 1, 7), ranges, facts).hi is number(7)
