"""A nest of vectorized loops, opened: its loops, its guards, and what stands inside them all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorlang.backends.c.rewriting import all_of, less, replace_names, total
from tensorlang.ir.expr import Binary, Compare, Expr, Unary, Var
from tensorlang.ir.inequality import conjuncts_of
from tensorlang.ir.linear import Linear, integer, to_expr, to_linear
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stmt, Store
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True)
class Nest:
    """for loops: if guards: core; the Lets between them are replaced by their values."""

    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    core: Stmt

    @property
    def names(self) -> frozenset[str]:
        """Of its loops."""
        return frozenset(loop.var for loop in self.loops)


def open_nest(stmt: Stmt) -> Nest:
    """The vectorized loops that stand directly inside one another, outermost first."""
    loops: list[For] = []
    guards: list[Expr] = []
    values: dict[str, Expr] = {}
    while True:
        match stmt:
            case For(kind=LoopKind.VECTORIZED):
                low, extent = substitute(stmt.min, values), substitute(stmt.extent, values)
                if any(loop.var in low.free | extent.free for loop in loops):
                    break
                loops.append(replace(stmt, min=low, extent=extent))
            case Let() if not stmt.value.reads or isinstance(stmt.body, Store):
                values[stmt.var] = substitute(stmt.value, values)
            case If():
                guards += conjuncts_of(substitute(stmt.condition, values))
            case _:
                break
        stmt = stmt.body
    return Nest(tuple(loops), tuple(guards), replace_names(stmt, values))


def scalar_guards(nest: Nest) -> tuple[list[Expr], Nest]:
    """The guards that do not differ between the iterations of the nest, and the nest without."""
    outer = [g for g in nest.guards if nest.names.isdisjoint(g.free) and not g.reads]
    rest = tuple(g for g in nest.guards if g not in set(outer))
    return outer, replace(nest, guards=rest)


def holds_everywhere(nest: Nest) -> tuple[Expr | None, Nest]:
    """A condition under which guards hold in the whole nest, and the nest without these guards.

    A guard that is linear in the loops holds everywhere if it does in its worst corner.
    """
    corners: list[Expr] = []
    rest: list[Expr] = []
    for guard in nest.guards:
        corner = _worst_corner(guard, nest)
        if corner is None:
            rest.append(guard)
        else:
            corners.append(corner)
    return all_of(corners), replace(nest, guards=tuple(rest))


def _slack(guard: Expr, names: frozenset[str]) -> Linear | None:
    """The form that the guard says is > 0, where the loops stand in it only linearly."""
    if not isinstance(guard, Compare) or guard.op not in ("lt", "le") or guard.a.dtype is not index:
        return None
    form = to_linear(guard.b) - to_linear(guard.a)
    hidden = (a for a in form.terms if not isinstance(a, Var) and not names.isdisjoint(a.free))
    return None if any(hidden) else form.shifted(guard.op == "le")


def _worst_corner(guard: Expr, nest: Nest) -> Expr | None:
    form = _slack(guard, nest.names)
    if form is None:
        return None
    for loop in nest.loops:
        step = form.terms.get(Var(loop.var), 0)
        if step:
            worst = loop.min if step > 0 else total(loop.min, loop.extent, integer(-1))
            form = form.without(Var(loop.var)).plus(to_linear(worst), step)
    return Compare("lt", integer(0), to_expr(form))


def trimmed(nest: Nest) -> Nest:
    """The nest with the guards of one loop each as bounds of that loop.

    if i < M  in  for i in [m, +n)   ->   for i in [m, +min(n, M - m))
    """
    loops = list(nest.loops)
    rest: list[Expr] = []
    for guard in nest.guards:
        form = _slack(guard, nest.names)
        which = [k for k, loop in enumerate(loops) if loop.var in guard.free]
        step = form.terms.get(Var(loops[which[0]].var), 0) if form and len(which) == 1 else 0
        if form is None or abs(step) != 1:
            rest.append(guard)
            continue
        loop = loops[which[0]]
        loops[which[0]] = _bounded(loop, form.without(Var(loop.var)), step)
    return replace(nest, loops=tuple(loops), guards=tuple(rest))


def _bounded(loop: For, rest: Linear, step: int) -> For:
    """The loop where step*var + rest > 0."""
    if step < 0:
        below = less(to_expr(rest), loop.min)
        return replace(loop, extent=Binary("min", loop.extent, below))
    low = Binary("max", loop.min, to_expr((-rest).shifted(1)))
    return replace(loop, min=low, extent=less(total(loop.min, loop.extent), low))


def without_single_iterations(nest: Nest) -> Nest:
    """The nest without the loops that run once."""
    values: dict[str, Expr] = {}
    loops: list[For] = []
    for loop in nest.loops:
        if loop.extent is integer(1):
            values[loop.var] = loop.min
        else:
            loops.append(loop)
    guards = tuple(substitute(g, values) for g in nest.guards)
    return Nest(tuple(loops), guards, replace_names(nest.core, values))


def negation(condition: Expr) -> Expr:
    """~condition."""
    return Unary("not", condition)


def in_order(loops: Sequence[For], body: Stmt) -> Stmt:
    """The loops as serial loops around a body, the first outermost."""
    for loop in reversed(loops):
        body = replace(loop, kind=LoopKind.SERIAL, body=body)
    return body
