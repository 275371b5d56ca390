"""Partial results of a reduction: over which points, from which value, and how two are one."""

from collections.abc import Mapping
from typing import TypeAlias

from tensorlang.algorithm import FuncRecord
from tensorlang.directives.nest import Nest
from tensorlang.ir.associativity import Operator
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Select
from tensorlang.ir.functions import identity, isnan
from tensorlang.ir.tuple_operators import TupleOperator
from tensorlang.ir.walk import substitute


def recovered(nest: Nest, values: Mapping[str, Expr]) -> tuple[dict[str, Expr], list[Expr]]:
    """The RDom variables over the leaf loops, with `values` for some; and the masks that hold."""
    known = dict(values)
    reductions = {loop.name for loop in nest.loops if loop.reduction}
    guards: list[Expr] = []
    for binding in reversed(nest.bindings):
        names = binding.value.free & (reductions | known.keys())
        if names:
            known[binding.name] = substitute(binding.value, known)
            if binding.guard is not None:
                guards.append(substitute(binding.guard, known))
    return known, guards


# How two partial results are one: as a whole, or each component by an operator of its own.
Merging: TypeAlias = Operator | TupleOperator | tuple[Operator, ...]


def start_of(operator: Merging, func: FuncRecord) -> tuple[Expr, ...]:
    """The value of no term; of argmin and argmax it loses to every term, also in the index."""
    if isinstance(operator, TupleOperator):
        return operator.identity(func.dtypes)
    if isinstance(operator, tuple):
        return tuple(identity(op, t) for op, t in zip(operator, func.dtypes, strict=True))
    if operator in ("argmin", "argmax"):
        worst = identity("min" if operator == "argmin" else "max", func.dtypes[0])
        return (worst, Const(func.dtypes[1].highest, func.dtypes[1]))
    return (identity(operator, func.dtypes[0]),)


def combine(operator: Merging, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Two partial results as one; of equal values the one with the smaller index wins."""
    if isinstance(operator, TupleOperator):
        return operator.combine(a, b)
    if isinstance(operator, tuple):
        return tuple(Binary(op, x, y) for op, x, y in zip(operator, a, b, strict=True))
    if operator not in ("argmin", "argmax"):
        return (Binary(operator, a[0], b[0]),)
    (best, at), (value, here) = a, b
    pair = (value, best) if operator == "argmin" else (best, value)
    better: Expr = Compare("lt", *pair)
    equal: Expr = Compare("eq", value, best)
    if value.dtype.is_float:
        better = better | (isnan(value) & ~isnan(best))
        equal = equal | (isnan(value) & isnan(best))
    better = better | (equal & (here < at))
    return Select(better, value, best), Select(better, here, at)
