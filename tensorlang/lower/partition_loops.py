"""Loops over tiles split where a mask begins to matter: no mask arithmetic in between."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Expr, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.lane_guards import Scope, conditions_of, extreme, slacks_of
from tensorlang.ir.linear import Linear, to_expr
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import (
    For,
    If,
    Let,
    LoopKind,
    Program,
    Stmt,
    Store,
    block,
    map_children,
    walk,
)
from tensorlang.ir.walk import loads_of, substitute
from tensorlang.lower.data_extremes import DataExtremes

# A loop with more stores in it than this is not written again.
_MOST_STORES = 64
# A lane of so many elements is as large as a tile.
_LONG_LANE = 1024
_GRID = (LoopKind.GPU_BLOCK, LoopKind.PARALLEL)


def partition_loops(program: Program) -> Program:
    """for v in [a, b): { lanes i, j: if j <= i: s }   ->   for v in [a, x): the same
    for v in [x, y): { lanes i, j: s }    for v in [y, b): the same

    Only where a guard joins two lanes, as that of a causal mask does, or a long one: it is as large
    as the tile.  Then all guards of the loop that hold for every lane in [x, y) go.  The order of
    the iterations stays, and with it every value.  Of data in a guard, as that of packed sequences
    has, the extremes over the lanes are found before the loop.
    Requires: simplified, trimmed.  Not its job: tails of a short lane, which backends specialise.
    """
    inputs = frozenset(array.name for array in program.inputs)
    body = _partition(program.body, inputs, {})
    return program if body is program.body else replace(program, body=simplify_stmt(body))


def _partition(stmt: Stmt, inputs: frozenset[str], outer: Mapping[str, Expr]) -> Stmt:
    """The innermost loops that can be split; not again those around them.

    Args: inputs: the arrays that nothing writes.   outer: the values of the names around.
    """
    known = outer
    if isinstance(stmt, Let):
        known = {**outer, stmt.var: substitute(stmt.value, outer)}
    made = map_children(stmt, lambda child: _partition(child, inputs, known))
    if made is stmt and isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        return _pieces(stmt, DataExtremes(stmt.var, inputs, outer))
    return made


@dataclass(frozen=True, slots=True)
class _Guard:
    """A condition that holds for every lane where 0 <= form of each; whether it is of a tile."""

    forms: tuple[Linear, ...]
    is_large: bool

    def says(self, other: "_Guard") -> bool:
        """Whether the two are one condition on the loop."""
        pairs = zip(self.forms, other.forms, strict=False)
        same_count = len(self.forms) == len(other.forms)
        return same_count and all(to_expr(a) is to_expr(b) for a, b in pairs)


def _pieces(loop: For, data: DataExtremes) -> Stmt:
    guards = _guards_of(loop, data) if _is_copied(loop) else {}
    if not any(guard.is_large for guard in guards.values()):
        return loop
    lows, ends = _limits(loop, guards, data)
    begin, stop = Var(f"{loop.var}.inner"), Var(f"{loop.var}.outer")
    end = loop.min + loop.extent
    first = minimum(reduce(maximum, lows, loop.min), end)
    last = maximum(reduce(minimum, ends, end), begin if lows else loop.min)
    start, finish = begin if lows else loop.min, stop if ends else end
    free = _without(loop.body, frozenset(guards))
    parts: list[Stmt] = [replace(loop, min=start, extent=finish - start, body=free)]
    if lows:
        parts.insert(0, replace(loop, extent=begin - loop.min))
    if ends:
        parts.append(replace(loop, min=stop, extent=end - stop))
    body: Stmt = block(*parts)
    if ends:
        body = Let(stop.name, last, body)
    body = Let(begin.name, first, body) if lows else body
    return data.around(body, {load.buffer for load in loads_of(*lows, *ends)})


def _is_copied(loop: For) -> bool:
    """Whether a loop may be written three times: no program or thread begins in it."""
    inside = list(walk(loop.body))
    grids = any(isinstance(s, For) and s.kind in _GRID for s in inside)
    return not grids and sum(isinstance(s, Store) for s in inside) <= _MOST_STORES


def _guards_of(loop: For, data: DataExtremes) -> dict[Expr, _Guard]:
    """The conditions in a loop that depend on it and that its variable decides for all lanes."""
    found: dict[Expr, _Guard] = {}
    failed: set[Expr] = set()
    for condition, scope in conditions_of(loop.body, Scope()):
        guard = _decided(condition, loop.var, scope, data)
        if guard is None or (condition in found and not found[condition].says(guard)):
            failed.add(condition)
        else:
            found[condition] = guard
    return {condition: guard for condition, guard in found.items() if condition not in failed}


def _decided(condition: Expr, var: str, scope: Scope, data: DataExtremes) -> _Guard | None:
    slacks = slacks_of(condition, scope, data.inputs)
    if slacks is None:
        return None
    forms: list[Linear] = []
    joined: set[str] = set()
    for slack in slacks:
        known_of_data = data.extreme(slack, scope, joined)
        worst = known_of_data and extreme(known_of_data, scope, joined)
        if worst is None:
            return None
        forms.append(worst)
    known = [form for form in forms if Var(var) in form.terms]
    hidden = any(not isinstance(e, Var) and var in e.free for form in forms for e in form.terms)
    if not known or hidden or (len(known) < len(forms) and not _all_above(forms, known)):
        return None
    lanes = joined & scope.lanes
    return _Guard(tuple(forms), len(lanes) > 1 or any(_is_long(scope, lane) for lane in lanes))


def _is_long(scope: Scope, lane: str) -> bool:
    """Whether it is known to have as many elements as a tile."""
    first, last = scope.ranges[lane]
    apart = last - first
    return not apart.terms and apart.constant + 1 >= _LONG_LANE


def _all_above(forms: list[Linear], known: list[Linear]) -> bool:
    """Whether the parts that do not mention the loop hold anyway."""
    return all(not form.terms and form.constant >= 0 for form in forms if form not in known)


def _limits(
    loop: For, guards: Mapping[Expr, _Guard], data: DataExtremes
) -> tuple[list[Expr], list[Expr]]:
    """From where, and up to where, every guard holds."""
    lows: dict[Expr, None] = {}
    ends: dict[Expr, None] = {}
    for guard in guards.values():
        for form in guard.forms:
            data.clamp(form, loop)
            step, rest = form.terms.get(Var(loop.var), 0), form.without(Var(loop.var))
            if step > 0:
                lows[-(to_expr(rest) // step)] = None
            elif step < 0:
                ends[to_expr(rest) // -step + 1] = None
    return list(lows), list(ends)


def _without(stmt: Stmt, conditions: frozenset[Expr]) -> Stmt:
    """The statement where these conditions hold."""
    stmt = map_children(stmt, lambda child: _without(child, conditions))
    if not isinstance(stmt, If):
        return stmt
    kept = [c for c in conjuncts_of(stmt.condition) if c not in conditions]
    if len(kept) == len(conjuncts_of(stmt.condition)):
        return stmt
    return stmt.body if not kept else replace(stmt, condition=reduce(_and, kept))


def _and(a: Expr, b: Expr) -> Expr:
    return Binary("and", a, b)
