"""A nest of vectorized loops, opened: its loops, its guards, and what stands inside them all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorlang.backends.c.corners import Range, at_worst, slack_of
from tensorlang.backends.c.rewriting import all_of, larger, less, replace_names, smaller, total
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.linear import Linear, integer, to_expr
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stmt, Store, walk
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True)
class Nest:
    """for loops: if guards: core; the Lets between them are replaced by their values.

    `facts`: what is known outside it.
    """

    loops: tuple[For, ...]
    guards: tuple[Expr, ...]
    core: Stmt
    facts: Facts = Facts.none

    @property
    def names(self) -> frozenset[str]:
        """Of its loops."""
        return frozenset(loop.var for loop in self.loops)

    def keeps(self, guard: Expr) -> bool:
        """Whether running the nest changes nothing that the guard reads."""
        stores = (stmt.buffer for stmt in walk(self.core) if isinstance(stmt, Store))
        return guard.reads.isdisjoint(stores)


def open_nest(stmt: Stmt, facts: Facts = Facts.none) -> Nest:
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
    return Nest(tuple(loops), tuple(guards), replace_names(stmt, values), facts)


def scalar_guards(nest: Nest) -> tuple[list[Expr], Nest]:
    """The guards that do not differ between the iterations of the nest, and the nest without."""
    outer = [g for g in nest.guards if nest.names.isdisjoint(g.free) and not g.reads]
    rest = tuple(g for g in nest.guards if g not in set(outer))
    return outer, replace(nest, guards=rest)


def holds_everywhere(nest: Nest) -> tuple[Expr | None, Nest]:
    """A condition under which guards hold in the whole nest, and the nest without these guards."""
    corners: list[Expr] = []
    rest: list[Expr] = []
    ranges = {loop.var: range_of(loop) for loop in nest.loops}
    for guard in nest.guards:
        form = slack_of(guard, nest.names) if nest.keeps(guard) else None
        corner = None if form is None else at_worst(form, ranges)
        if corner is None:
            rest.append(guard)
        elif not (isinstance(corner, Const) and corner.value):
            corners.append(corner)
    return all_of(corners), replace(nest, guards=tuple(rest))


def range_of(loop: For) -> Range:
    """First and last value of the loop's variable."""
    return loop.min, total(loop.min, loop.extent, integer(-1))


def trimmed(nest: Nest) -> Nest:
    """The nest with the guards of one loop each as bounds of that loop.

    if i < M  in  for i in [m, +n)   ->   for i in [m, +min(n, M - m))
    """
    loops = list(nest.loops)
    rest: list[Expr] = []
    for guard in nest.guards:
        form = slack_of(guard, nest.names) if nest.keeps(guard) else None
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
        return replace(loop, extent=smaller(loop.extent, less(to_expr(rest), loop.min)))
    low = larger(loop.min, to_expr((-rest).shifted(1)))
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
    return Nest(tuple(loops), guards, replace_names(nest.core, values), nest.facts)


def in_order(loops: Sequence[For], body: Stmt) -> Stmt:
    """The loops as serial loops around a body, the first outermost."""
    for loop in reversed(loops):
        body = replace(loop, kind=LoopKind.SERIAL, body=body)
    return body
