"""Conditions that are linear in loops hold in all iterations if they do in their worst corner."""

from collections.abc import Mapping
from typing import TypeAlias

from tensorlang.ir.expr import Compare, Const, Expr, Var
from tensorlang.ir.linear import Linear, integer, to_expr, to_linear
from tensorlang.ir.types import bool_, index

# First and last value of a loop's variable.
Range: TypeAlias = tuple[Expr, Expr]


def slack_of(condition: Expr, names: frozenset[str]) -> Linear | None:
    """The form that the condition says is > 0, where the names stand in it only linearly."""
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return None
    if condition.a.dtype is not index:
        return None
    form = to_linear(condition.b) - to_linear(condition.a)
    hidden = [a for a in form.terms if not isinstance(a, Var) and not names.isdisjoint(a.free)]
    return None if hidden else form.shifted(condition.op == "le")


def at_worst(form: Linear, ranges: Mapping[str, Range]) -> Expr | None:
    """0 < form for every value of the names in their ranges."""
    for name, (first, last) in ranges.items():
        step = form.terms.get(Var(name), 0)
        if step:
            form = form.without(Var(name)).plus(to_linear(first if step > 0 else last), step)
    if any(not frozenset(ranges).isdisjoint(atom.free) for atom in form.terms):
        return None
    if not form.terms:
        return Const(form.constant > 0, bool_)
    return Compare("lt", integer(0), to_expr(form))
