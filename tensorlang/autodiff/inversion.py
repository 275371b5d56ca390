"""Inverting an index map: from the index of an element to the points that touch it.

    indices(point) == target      the point as expressions of the target and of `sums`

    x + k == t        ->  x = t - k, for every k                 the window of a convolution
    2*x + b == t      ->  x = (t - b)//2, where (t - b) % 2 == 0         a stride
    4*x + y == t      ->  x = t//4, y = t%4                      y in [0, 4): digits
    x//4 == t         ->  x = 4*t + y, for every y in [0, 4)     the quotient is a digit too

An index that is none of these (a clamp, data) stays as it is: the element is then scattered to.
But where it varies only along axes that are other indices themselves, as in x[i, t[i]], no two
points touch one element, and it is a condition:

    i == t0, t[i] == t1   ->  i = t0, where t[t0] == t1
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensorlang.autodiff.digits import split_digits
from tensorlang.autodiff.equations import Solver, is_affine
from tensorlang.autodiff.space import Axis, facts_of
from tensorlang.ir.expr import Compare, Expr, Var
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True, eq=False)
class Inverse:
    """The points: `values` of the axes, over the target and `sums`, where `conditions` hold.

    `kept` are the dimensions whose index, over `sums`, stays as it is.
    """

    values: Mapping[str, Expr]
    sums: tuple[Axis, ...]
    conditions: tuple[Expr, ...]
    kept: Mapping[int, Expr]


def invert(
    indices: Sequence[Expr],
    space: Sequence[Axis],
    target: Sequence[Axis],
    fresh: Callable[[str], str],
) -> Inverse:
    """The points of `space` whose `indices` are a point of `target`.

    Args:
        target: an axis for each index; no name of it is one of `space`.
        fresh: a name that nothing has, from a suggestion.
    """
    whole: frozenset[str] = frozenset()
    while True:
        digits = split_digits(indices, space, whole, fresh)
        solver = Solver(digits.space, facts_of((*digits.space, *target)))
        told = _told_by_others(digits.indices, digits.space)
        for dim, e in enumerate(digits.indices):
            if dim not in told:
                solver.add(dim, e, Var(target[dim].name))
        solver.solve()
        chosen = [
            Compare("eq", substitute(digits.indices[dim], solver.values), Var(target[dim].name))
            for dim in told
        ]
        # An axis none of whose digits is found is better summed over as it is.
        idle = {axis.name for axis in space if _is_idle(digits.values[axis.name], solver)}
        if idle <= whole:
            break
        whole |= idle
    values = {axis.name: substitute(digits.values[axis.name], solver.values) for axis in space}
    known = {**solver.values, **values}
    # Of what is summed over, only the digits of an axis can be out of its range.
    ranges = [
        condition
        for axis in (*space, *digits.space)
        if axis.name not in solver.fixed
        for condition in _within(axis, known)
    ]
    sums = tuple(axis for axis in digits.space if axis.name in solver.fixed)
    return Inverse(values, sums, (*solver.conditions, *ranges, *chosen), solver.kept)


def _told_by_others(indices: Sequence[Expr], space: Sequence[Axis]) -> tuple[int, ...]:
    """The dimensions whose index is not affine, and varies along axes that are indices alone."""
    axes = frozenset(axis.name for axis in space)
    alone = {e.name for e in indices if isinstance(e, Var)}
    return tuple(
        dim
        for dim, e in enumerate(indices)
        if not is_affine(e, axes) and not axes.isdisjoint(e.free) and e.free & axes <= alone
    )


def _is_idle(value: Expr, solver: Solver) -> bool:
    """Whether an axis was split and all its digits are summed over."""
    return not isinstance(value, Var) and value.free & solver.axes.keys() <= solver.fixed


def _within(axis: Axis, values: Mapping[str, Expr]) -> tuple[Expr, Expr]:
    first, last = (substitute(e, values) for e in (axis.first, axis.last))
    return first <= values[axis.name], values[axis.name] <= last
