"""Loops over tiles that end where a mask leaves nothing of a tile."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.lane_guards import Scope, extreme, slacks_of
from tensorlang.ir.linear import to_expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import (
    Allocate,
    For,
    If,
    LoopKind,
    Program,
    Stmt,
    Store,
    children_of,
    map_children,
)
from tensorlang.ir.walk import loads_of
from tensorlang.lower.data_extremes import DataExtremes


def skip_masked(program: Program) -> Program:
    """for v in [a, b): { lanes i, j: if j <= i: s }   ->   for v in [x, y): the same

    where outside [x, y) the guard holds for no lane.  Every store that outlives an iteration has to
    stand under such a guard; only those that join two lanes count, as that of a causal mask does.
    Of data in a guard the extremes over the lanes are found before the loop.
    Requires: simplified, trimmed.
    """
    body = _skip(program.body, frozenset(array.name for array in program.inputs))
    return program if body is program.body else replace(program, body=simplify_stmt(body))


def _skip(stmt: Stmt, inputs: frozenset[str]) -> Stmt:
    stmt = map_children(stmt, lambda child: _skip(child, inputs))
    if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        return _shortened(stmt, DataExtremes(stmt.var, inputs, {}, ("least", "most")))
    return stmt


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop, and what its guards ask of data."""

    stmt: For
    data: DataExtremes


@dataclass(frozen=True, slots=True)
class _Range:
    """Where some lane of a store may be under all its guards: from each low on, before each end."""

    lows: tuple[Expr, ...]
    ends: tuple[Expr, ...]


def _shortened(loop: For, data: DataExtremes) -> Stmt:
    ranges = list(_ranges(loop.body, _Loop(loop, data), Scope(), (), frozenset()))
    if not ranges:
        return loop
    low, end = loop.min, loop.min + loop.extent
    if all(r.lows for r in ranges):
        low = maximum(low, reduce(minimum, _distinct(reduce(maximum, r.lows) for r in ranges)))
    if all(r.ends for r in ranges):
        end = minimum(end, reduce(maximum, _distinct(reduce(minimum, r.ends) for r in ranges)))
    if low is loop.min and end is loop.min + loop.extent:
        return loop
    made = replace(loop, min=simplify(low), extent=simplify(end - low))
    return data.around(made, {load.buffer for load in loads_of(made.min, made.extent)})


def _distinct(exprs: Iterator[Expr]) -> Iterator[Expr]:
    return iter(dict.fromkeys(map(simplify, exprs)))


def _ranges(
    stmt: Stmt, loop: _Loop, scope: Scope, guards: tuple[_Range, ...], own: frozenset[str]
) -> Iterator[_Range]:
    """Of each store to what is kept outside the loop: the range that its guards leave.

    Args: own: the buffers of one iteration.
    """
    match stmt:
        case Store() if stmt.buffer not in own:
            yield _Range(
                tuple(low for guard in guards for low in guard.lows),
                tuple(end for guard in guards for end in guard.ends),
            )
        case Allocate():
            own = own | {stmt.buffer.name}
        case If():
            found = (_range_of(c, loop, scope) for c in conjuncts_of(stmt.condition))
            guards = (*guards, *found)
        case _:
            pass
    inside = scope.inside(stmt)
    for child in children_of(stmt):
        yield from _ranges(child, loop, inside, guards, own)


def _range_of(condition: Expr, loop: _Loop, scope: Scope) -> _Range:
    """The iterations in which a condition holds for some lane, as far as it bounds them."""
    lows: list[Expr] = []
    ends: list[Expr] = []
    var = loop.stmt.var
    for slack in slacks_of(condition, scope, loop.data.inputs) or ():
        joined: set[str] = set()
        known_of_data = loop.data.extreme(slack, scope, joined, largest=True)
        best = known_of_data and extreme(known_of_data, scope, joined, largest=True)
        if best is None or len(joined & scope.lanes) < 2:
            continue
        step, rest = best.terms.get(Var(var), 0), best.without(Var(var))
        if any(var in atom.free for atom in rest.terms):
            continue
        if step:
            loop.data.clamp(best, loop.stmt)
        if step > 0:
            lows.append(-(to_expr(rest) // step))
        elif step < 0:
            ends.append(to_expr(rest) // -step + 1)
    return _Range(tuple(lows), tuple(ends))
