"""Where the largest or smallest of one dimension of (outer, reduced, inner) are, in order.

Each comes after the one before it: later in value, or equal and later in place.  NaN is largest.
"""

from collections.abc import Mapping
from math import inf

from tensorlang.domain import RDom, RVar
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Size, Var, as_expr
from tensorlang.ir.functions import clamp, isnan, select
from tensorlang.ir.types import DType, bool_, i64, index
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import max, min
from tensorlang.schedule import Schedule

A, B, N = (Size(name) for name in "ABN")
a, b, t = (Var(name) for name in "abt")
# The most that are worth reductions of their own: the code grows with them.
MOST_APART = 16


def topk(x: DType, *, count: int, largest: bool, apart: bool = False) -> Pipeline:
    """at[a, t, b] = where the t-th largest (or smallest) of x[a, :, b] is, for t < count

    Args: apart: whether each is found by reductions of its own, which run in lanes.
    """
    X, at = Input("x", x, [A, N, B]), Func("at")
    if apart:
        places = _apart(X, count, largest)
        found = places[-1]
        for number, place in reversed([*enumerate(places[:-1])]):
            found = select(t == number, place, found)
        at[a, t, b] = found
    else:
        at[a, t, b] = _in_turn(X, count, largest)
    return Pipeline("topk", inputs=[X], outputs={at: [A, count, B]})


def _apart(x: Input, count: int, largest: bool) -> list[Expr]:
    """Two reductions each: the best value of what is left, and the first place that has it.

    Of the smallest, places of NaN count as N further on.
    """
    places: list[Expr] = []
    for number in range(count):
        best, place = Func(f"best_{number}"), Func(f"place_{number}")
        r, s = RDom(f"r_{number}", N), RDom(f"s_{number}", N)
        term, other = x[a, r, b], x[a, s, b]
        left, there = (_after(x, places, k, largest) for k in (r, s))
        nan_is_last = x.dtype.is_float and not largest
        counts = left & ~isnan(term) if nan_is_last else left
        fold = max if largest else min
        best[a, b] = fold(select(counts, term, _worst(x.dtype, largest)), over=r)
        same, beyond = other == best[a, b], as_expr(i64(N))
        if nan_is_last:
            beyond = select(there & isnan(other), i64(s) + i64(N), i64(N) * 2)
        elif x.dtype.is_float:
            same = same | (isnan(other) & isnan(best[a, b]))
        place[a, b] = min(select(there & same, i64(s), beyond), over=s, initial=i64(N) * 2)
        found = place[a, b]
        places.append(select(found < i64(N), found, found - i64(N)) if nan_is_last else found)
    return places


def _worst(dtype: DType, largest: bool) -> Expr:
    if dtype.is_float:
        return dtype(-inf if largest else inf)
    return dtype(dtype.lowest if largest else dtype.highest)


def _after(x: Input, places: list[Expr], k: RDom, largest: bool) -> Expr:
    """Whether what is at k comes after the last that was found."""
    if not places:
        return as_expr(True, bool_)
    return _follows(x, as_expr(k), places[-1], largest)


def _follows(x: Input, k: Expr | RVar, place: Expr, largest: bool) -> Expr:
    value, last = x[a, k, b], x[a, _inside(place), b]
    tie = ~_precedes(value, last, largest) & (i64(k) > place)
    return _precedes(last, value, largest) | tie


def _precedes(p: Expr, q: Expr, largest: bool) -> Expr:
    first, second = (p, q) if largest else (q, p)
    larger = second < first
    return larger | (isnan(first) & ~isnan(second)) if p.dtype.is_float else larger


def _inside(at: Expr) -> Expr:
    return clamp(index(at), 0, N - 1)


def _in_turn(x: Input, count: int, largest: bool) -> Expr:
    """One scan that for each of them goes through all, however many they are."""
    found, steps = Func("found"), RDom("r", count, N)
    step, place = steps
    value = x[a, place, b]
    found[a, t, b] = i64(N)
    after = _follows(x, place, found[a, step - 1, b], largest)
    current = found[a, step, b]
    better = (current == i64(N)) | _precedes(value, x[a, _inside(current), b], largest)
    free = select(step == 0, as_expr(True, bool_), after)
    found[a, step, b] = select(free & better, i64(place), current)
    return found[a, t, b]


# The longest row that a program holds, and what it takes at a time of a longer one.
_LONGEST_ROW, _SLICE = 1 << 14, 1 << 12


def rows_of_topk(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton a row a program: blocks of (a, b) { best_0, place_0, best_1, ...; at[a, :, b] }

    None on C and where they are found in turn: a formula is as good.
    """
    reductions = [f for f in pipeline.algorithm.funcs if not f.is_pure]
    if target != "triton" or any(f.name == "found" for f in reductions):
        return None
    length = sizes.get("N", _LONGEST_ROW)
    schedule = Schedule(pipeline)
    stage = schedule["at"].reorder("a", "b", "t").gpu_blocks("a", "b").vectorize("t")
    stage.gpu_warps(1 if length <= 512 else 4 if length <= 4096 else 8)
    for f in reductions:
        domain = f.definitions[1].domain
        assert domain is not None
        (r,) = domain.names
        update = schedule[f.name].compute_at("at", "b").update(0)
        if length > _LONGEST_ROW:
            update.split(r, "slice", "lane", _SLICE).reorder("a", "b", "slice", "lane")
            update.vectorize("lane")
        else:
            update.vectorize(r)
    return schedule
