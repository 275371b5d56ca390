"""Quotients and remainders in an index map: an axis becomes its digits.

x//n, x%n    ->    q, r     with x = n*q + r and r in [0, n), for n >= 1
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorlang.autodiff.space import ONE, ZERO, Axis, facts_of
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.facts import prove_le
from tensorlang.ir.linear import to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.walk import postorder, rewrite, substitute


@dataclass(frozen=True, slots=True, eq=False)
class Digits:
    """The map over digits, the axes they make, and the first axes as expressions of those."""

    indices: tuple[Expr, ...]
    space: tuple[Axis, ...]
    values: dict[str, Expr]


def split_digits(
    indices: Sequence[Expr],
    space: Sequence[Axis],
    whole: frozenset[str],
    fresh: Callable[[str], str],
) -> Digits:
    """The axes split of which all quotients and remainders have one divisor or multiples of it.

    Args:
        whole: axes that stay whole.
    """
    facts = facts_of(space)
    values: dict[str, Expr] = {axis.name: Var(axis.name) for axis in space}
    made = Digits(tuple(simplify(e, facts) for e in indices), tuple(space), values)
    waiting = [axis for axis in space if axis.name not in whole]
    while waiting:
        axis = waiting.pop()
        found = _divisor(axis, made)
        if found is not None:
            made, digits = _split(axis, *found, made, fresh)
            waiting += digits
    return made


def _divisor(axis: Axis, made: Digits) -> tuple[Expr, Expr] | None:
    """The numerator x + c, and the divisor of all its quotients and remainders; None: no split."""
    taken = [
        (e.a, e.b)
        for e in postorder(*made.indices)
        if isinstance(e, Binary) and e.op in ("floordiv", "mod") and _is_shifted(e.a, axis, made)
    ]
    if not taken:
        return None
    numerator, n = min(taken, key=lambda pair: pair[1].value if isinstance(pair[1], Const) else 0)
    if any(a is not numerator or _multiple(b, n) is None for a, b in taken):
        return None
    if any(a.name in n.free for a in made.space) or not prove_le(ONE, n, facts_of(made.space)):
        return None
    return numerator, n


def _is_shifted(e: Expr, axis: Axis, made: Digits) -> bool:
    """Whether `e` is the axis plus what does not vary."""
    form = to_linear(e)
    rest = form.without(Var(axis.name))
    varying = {name for term in rest.terms for name in term.free}
    names = {a.name for a in made.space}
    return form.terms.get(Var(axis.name)) == 1 and varying.isdisjoint(names)


def _multiple(b: Expr, n: Expr) -> int | None:
    """k with b == k*n."""
    if b is n:
        return 1
    if isinstance(b, Const) and isinstance(n, Const) and int(b.value) % int(n.value) == 0:
        return int(b.value) // int(n.value)
    return None


def _split(
    axis: Axis, numerator: Expr, n: Expr, made: Digits, fresh: Callable[[str], str]
) -> tuple[Digits, tuple[Axis, Axis]]:
    offset = simplify(numerator - Var(axis.name))
    first, last = (simplify((e + offset) // n) for e in (axis.first, axis.last))
    q = Axis(fresh(f"{axis.name}_q"), first, last)
    r = Axis(fresh(f"{axis.name}_r"), ZERO, simplify(n - ONE))
    names = {axis.name: Var(q.name) * n + Var(r.name) - offset}
    whole = substitute(numerator, names)

    def rule(e: Expr) -> Expr:
        if not (isinstance(e, Binary) and e.op in ("floordiv", "mod") and e.a is whole):
            return e
        k = _multiple(e.b, n)
        assert k is not None
        if e.op == "floordiv":
            return Var(q.name) // k
        return Var(q.name) % k * n + Var(r.name)

    space = tuple(part for a in made.space for part in ((q, r) if a is axis else (a,)))
    facts = facts_of(space)
    indices = tuple(simplify(rewrite(substitute(e, names), rule), facts) for e in made.indices)
    values = {name: substitute(value, names) for name, value in made.values.items()}
    return Digits(indices, space, values), (q, r)
