"""Sliding windows: compute in each iteration only what the one before has not.

A Func stored outside the loop that computes it keeps what earlier iterations stored.  Where its
region moves forward with a serial loop v, in one dimension,

    first(v)   ->   select(v == v_min, first(v), max(first(v), last(v - 1) + 1))

See: Halide's SlidingWindow.
"""

from typing import TypeAlias

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Compare, Const, Expr, Select, Var
from tensorlang.ir.facts import Facts, prove, prove_le
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, If, Let, LoopKind
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute
from tensorlang.ir.widening import Region

Around: TypeAlias = Let | For | If
ONE = Const(1, index)


def slide(
    regions: list[Region],
    dims: frozenset[int],
    rings: frozenset[int],
    around: tuple[Around, ...],
    outside: Facts,
    facts: Facts,
) -> list[Region]:
    """The regions with what earlier iterations of the loops around computed left out.

    Args:
        dims: the dimensions in which a part can be computed alone.
        rings: the dimensions whose storage is a ring.
        around: what stands between the storage and the computation, outermost first.
        outside: what is known outside the storage; facts: what is known at the computation.
    """
    always = _without_guards(around, outside)
    for at, loop in enumerate(around):
        if isinstance(loop, For):
            regions = _slide_along(loop, around[at + 1 :], regions, dims, rings, always, facts)
    return regions


def _slide_along(
    loop: For,
    inside: tuple[Around, ...],
    regions: list[Region],
    dims: frozenset[int],
    rings: frozenset[int],
    always: Facts,
    facts: Facts,
) -> list[Region]:
    if loop.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
        return regions
    values = _values(inside)
    over = [_substituted(region, values) for region in regions]
    moving = [k for k, ends in enumerate(over) if any(loop.var in e.free for e in ends)]
    if len(moving) != 1 or not _runs_without_gaps(loop, inside, values, always):
        return regions
    (dim,) = moving
    # A ring that moves on inside an iteration of this loop has lost what the last one stored.
    within = {stmt.var for stmt in inside if isinstance(stmt, For)}
    if dim not in dims or any(within & e.free for k in rings for e in over[k]):
        return regions
    first, last = _computed(*over[dim], facts)
    step = {loop.var: Var(loop.var) + ONE}
    if not all(prove_le(e, substitute(e, step), facts) for e in (first, last)):
        return regions
    low, extent, start, end = regions[dim]
    done = substitute(last, {loop.var: Var(loop.var) - ONE})
    is_first = Var(loop.var) == loop.min
    at_first, later = facts.assume(is_first), facts.assume(Var(loop.var) > loop.min)
    rest = simplify(maximum(first, done + ONE), later)
    shift = simplify(rest - first, later)
    # The same value, said shortly.
    is_short = isinstance(shift, Const) and first is over[dim][2]
    rest = simplify(start + shift, later) if is_short else rest
    new = Select(is_first, simplify(start, at_first), rest)
    return [(low, extent, new, end) if k == dim else r for k, r in enumerate(regions)]


def _substituted(region: Region, values: dict[str, Expr]) -> Region:
    low, extent, first, last = (substitute(e, values) for e in region)
    return low, extent, first, last


def _computed(low: Expr, extent: Expr, first: Expr, last: Expr, facts: Facts) -> tuple[Expr, Expr]:
    """From where and to where one iteration computes: what its loops run over, and guards leave."""
    high = low + extent - ONE
    return (
        first if prove_le(low, first, facts) else maximum(first, low),
        last if prove_le(last, high, facts) else minimum(last, high),
    )


def _values(inside: tuple[Around, ...]) -> dict[str, Expr]:
    """What the Lets bind, over the loop's variable and names from further out."""
    values: dict[str, Expr] = {}
    for stmt in inside:
        if isinstance(stmt, Let):
            values[stmt.var] = substitute(stmt.value, values)
    return values


def _without_guards(around: tuple[Around, ...], facts: Facts) -> Facts:
    """What holds in every iteration, also in those that a guard leaves out."""
    for stmt in around:
        if isinstance(stmt, Let):
            facts = facts.with_value(stmt.var, stmt.value)
        elif isinstance(stmt, For):
            facts = facts.with_range(stmt.var, stmt.min, stmt.extent)
    return facts


def _runs_without_gaps(
    loop: For, inside: tuple[Around, ...], values: dict[str, Expr], facts: Facts
) -> bool:
    """Whether an iteration that runs has had every iteration before it run, too.

    No loop further in may depend on this one, and a guard must turn false once and for all.
    """
    step = {loop.var: Var(loop.var) + ONE}
    for stmt in inside:
        if isinstance(stmt, For):
            ends = (substitute(e, values) for e in (stmt.min, stmt.extent))
            if any(loop.var in e.free for e in ends):
                return False
        if not isinstance(stmt, If):
            continue
        for condition in conjuncts_of(stmt.condition):
            here = substitute(condition, values)
            if loop.var not in here.free or prove(condition, facts):
                continue
            if not _turns_false_once(here, step, facts):
                return False
    return True


def _turns_false_once(condition: Expr, step: dict[str, Expr], facts: Facts) -> bool:
    """a < b or a <= b whose slack b - a shrinks as the loop goes on."""
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return False
    slack = condition.b - condition.a
    return slack.dtype is index and prove_le(substitute(slack, step), slack, facts)
