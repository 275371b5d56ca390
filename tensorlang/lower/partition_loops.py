"""Loops over tiles split where a mask begins to matter: no mask arithmetic in between."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Expr, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.linear import Linear, to_expr, to_linear
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
    children_of,
    map_children,
    walk,
)
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute

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
    the iterations stays, and with it every value.
    Requires: simplified, trimmed.  Not its job: tails of a short lane, which backends specialise.
    """
    body = _partition(program.body)
    return program if body is program.body else replace(program, body=simplify_stmt(body))


def _partition(stmt: Stmt) -> Stmt:
    """The innermost loops that can be split; not again those around them."""
    made = map_children(stmt, _partition)
    if made is stmt and isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        return _pieces(stmt)
    return made


@dataclass(frozen=True, slots=True)
class _Scope:
    """Between a loop and a guard in it: the first and last value of each loop, innermost last."""

    ranges: Mapping[str, tuple[Linear, Linear]] = field(
        default_factory=dict[str, tuple[Linear, Linear]]
    )
    lanes: frozenset[str] = frozenset()
    values: Mapping[str, Expr] = field(default_factory=dict[str, Expr])

    def inside(self, stmt: Stmt) -> "_Scope":
        match stmt:
            case Let() if stmt.value.dtype is index:
                value = substitute(stmt.value, self.values)
                return replace(self, values={**self.values, stmt.var: value})
            case For():
                first = substitute(stmt.min, self.values)
                last = first + substitute(stmt.extent, self.values) - 1
                is_lane = stmt.kind is LoopKind.VECTORIZED
                return _Scope(
                    {**self.ranges, stmt.var: (to_linear(first), to_linear(last))},
                    self.lanes | {stmt.var} if is_lane else self.lanes,
                    {name: e for name, e in self.values.items() if name != stmt.var},
                )
            case _:
                return self

    def is_long(self, lane: str) -> bool:
        """Whether it is known to have as many elements as a tile."""
        first, last = self.ranges[lane]
        apart = last - first
        return not apart.terms and apart.constant + 1 >= _LONG_LANE


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


def _pieces(loop: For) -> Stmt:
    guards = _guards_of(loop) if _is_copied(loop) else {}
    if not any(guard.is_large for guard in guards.values()):
        return loop
    lows, ends = _limits(loop.var, guards)
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
    return Let(begin.name, first, body) if lows else body


def _is_copied(loop: For) -> bool:
    """Whether a loop may be written three times: no program or thread begins in it."""
    inside = list(walk(loop.body))
    grids = any(isinstance(s, For) and s.kind in _GRID for s in inside)
    return not grids and sum(isinstance(s, Store) for s in inside) <= _MOST_STORES


def _guards_of(loop: For) -> dict[Expr, _Guard]:
    """The conditions in a loop that depend on it and that its variable decides for all lanes."""
    found: dict[Expr, _Guard] = {}
    failed: set[Expr] = set()
    for condition, scope in _conditions(loop.body, _Scope()):
        guard = _decided(condition, loop.var, scope)
        if guard is None or (condition in found and not found[condition].says(guard)):
            failed.add(condition)
        else:
            found[condition] = guard
    return {condition: guard for condition, guard in found.items() if condition not in failed}


def _conditions(stmt: Stmt, scope: _Scope) -> Iterator[tuple[Expr, _Scope]]:
    """Every condition in a statement that has to hold by itself, and where it stands."""
    if isinstance(stmt, If):
        for condition in conjuncts_of(stmt.condition):
            yield condition, scope
    inside = scope.inside(stmt)
    for child in children_of(stmt):
        yield from _conditions(child, inside)


def _decided(condition: Expr, var: str, scope: _Scope) -> _Guard | None:
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return None
    expanded = Compare(condition.op, *(substitute(e, scope.values) for e in condition.children))
    if condition.a.dtype is not index or expanded.reads:
        return None
    forms: list[Linear] = []
    joined: set[str] = set()
    for a, b in _comparisons(expanded.a, expanded.b):
        slack = (to_linear(b) - to_linear(a)).shifted(-(condition.op == "lt"))
        worst = _at_worst(slack, scope, joined)
        if worst is None:
            return None
        forms.append(worst)
    known = [form for form in forms if Var(var) in form.terms]
    hidden = any(not isinstance(e, Var) and var in e.free for form in forms for e in form.terms)
    if not known or hidden or (len(known) < len(forms) and not _all_above(forms, known)):
        return None
    lanes = joined & scope.lanes
    return _Guard(tuple(forms), len(lanes) > 1 or any(map(scope.is_long, lanes)))


def _all_above(forms: list[Linear], known: list[Linear]) -> bool:
    """Whether the parts that do not mention the loop hold anyway."""
    return all(not form.terms and form.constant >= 0 for form in forms if form not in known)


def _comparisons(a: Expr, b: Expr) -> Iterator[tuple[Expr, Expr]]:
    """max(a, b) <= min(c, d) as the comparisons of which it is the conjunction."""
    if isinstance(a, Binary) and a.op == "max":
        for side in a.children:
            yield from _comparisons(side, b)
    elif isinstance(b, Binary) and b.op == "min":
        for side in b.children:
            yield from _comparisons(a, side)
    else:
        yield a, b


def _at_worst(form: Linear, scope: _Scope, joined: set[str]) -> Linear | None:
    """The smallest value of a form over the loops around it; notes which of them it mentions."""
    for name in reversed(list(scope.ranges)):
        first, last = scope.ranges[name]
        step = form.terms.get(Var(name), 0)
        if step:
            joined.add(name)
            form = form.without(Var(name)).plus(first if step > 0 else last, step)
    hidden = any(not scope.ranges.keys().isdisjoint(atom.free) for atom in form.terms)
    return None if hidden else form


def _limits(var: str, guards: Mapping[Expr, _Guard]) -> tuple[list[Expr], list[Expr]]:
    """From where, and up to where, every guard holds."""
    lows: dict[Expr, None] = {}
    ends: dict[Expr, None] = {}
    for guard in guards.values():
        for form in guard.forms:
            step, rest = form.terms.get(Var(var), 0), form.without(Var(var))
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
