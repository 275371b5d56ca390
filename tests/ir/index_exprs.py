"""Hypothesis strategies: index expressions, facts about their names, points where these hold."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from tensorlang.ir.expr import (
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Promise,
    Select,
    Size,
    Unary,
    Var,
)
from tensorlang.ir.facts import Facts
from tensorlang.ir.functions import clamp, minimum
from tensorlang.ir.types import index, u8
from tests.ir.evaluation import BrokenPromiseError, value_of

i, j, k = Var("i"), Var("j"), Var("k")
M, N = Size("M"), Size("N")
NAMES = (i, j, k, M, N)

Point = Mapping[str, int]


def number(value: int) -> Const:
    return Const(value, index)


numbers = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -8]).map(number)
loads = st.sampled_from(NAMES).map(lambda name: Cast(index, Load("A", (name,), 0, u8)))
leaves = st.one_of(st.sampled_from(NAMES), st.sampled_from(NAMES), numbers, loads)
factors = st.sampled_from([2, 3, 4, 8, -1, -2, -4]).map(number)
divisors = st.sampled_from([1, 2, 3, 4, 8, 8, 16, 0, -2, -4]).map(number)


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.builds(
        Binary, st.sampled_from(["add", "sub", "add", "sub", "mul", "min", "max"]), inner, inner
    )
    scaled = st.builds(Binary, st.just("mul"), inner, factors)
    divided = st.builds(Binary, st.sampled_from(["floordiv", "mod"]), inner, divisors)
    by_name = st.builds(
        Binary,
        st.sampled_from(["floordiv", "mod"]),
        inner,
        st.one_of(st.sampled_from((M, N)), inner),
    )
    chosen = st.builds(Select, comparisons_of(inner), inner, inner)
    clamped = inner.map(lambda e: clamp(e, 0, N - 1))
    promised = inner.map(lambda e: Promise(e, e - 2, e + N))
    negated = inner.map(lambda e: Unary("neg", e))
    return st.one_of(
        binary, binary, scaled, divided, divided, by_name, chosen, clamped, promised, negated
    )


def comparisons_of(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(Compare, st.sampled_from(["lt", "le", "eq", "ne"]), inner, inner)


index_exprs: st.SearchStrategy[Expr] = st.recursive(leaves, _grow, max_leaves=10)

conditions: st.SearchStrategy[Expr] = st.recursive(
    comparisons_of(st.recursive(leaves, _grow, max_leaves=4)),
    lambda inner: st.one_of(
        st.builds(Binary, st.sampled_from(["and", "or"]), inner, inner),
        inner.map(lambda c: Unary("not", c)),
    ),
    max_leaves=3,
)


@dataclass(frozen=True)
class Scene:
    """Facts, the conditions that say the same, and a few points where all of them hold."""

    facts: Facts
    conditions: tuple[Expr, ...]
    points: tuple[Point, ...]

    def values(self, e: Expr) -> list[tuple[Point, object]]:
        """What `e` is worth at each point where its promises hold."""
        found = []
        for point in self.points:
            try:
                found.append((point, value_of(e, point)))
            except BrokenPromiseError:
                continue
        return found


points = st.fixed_dictionaries(
    {
        **{name.name: st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 17]) for name in (M, N)},
        **{name.name: st.integers(-4, 16) for name in (i, j, k)},
    }
)

_extents = st.sampled_from(
    [number(8), number(4), M, N, M * N, (M + 7) // 8, (M + 3) // 4 * N, minimum(M, 8), N - 1, i + 1]
)
_minima = st.sampled_from([number(0), number(0), number(1), number(-3), i])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """What loops around a place and one condition say of i, j and k."""
    facts, said = Facts.none, list[Expr]()
    for name in draw(st.lists(st.sampled_from((i, j, k)), unique=True)):
        low, extent = draw(_minima), draw(_extents)
        if name.name in low.free | extent.free:
            continue
        facts = facts.with_range(name.name, low, extent)
        said += [Compare("le", low, name), Compare("lt", name, low + extent)]
    if draw(st.booleans()):
        condition = draw(conditions)
        facts = facts.assume(condition)
        said.append(condition)
    found = [p for p in draw(st.lists(points, min_size=20, max_size=20)) if _holds(said, p)]
    assume(found)
    return Scene(facts, tuple(said), tuple(found[:5]))


def _holds(said: list[Expr], point: Point) -> bool:
    try:
        return all(value_of(condition, point) for condition in said)
    except BrokenPromiseError:
        return False
