"""Intervals of index expressions with symbolic ends, and arithmetic on them."""

from collections.abc import Callable
from dataclasses import dataclass

from tensorlang.ir.expr import Binary, Expr
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.linear import integer, to_linear


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """lo <= value <= hi; None where there is no bound."""

    lo: Expr | None
    hi: Expr | None


EVERYWHERE = Interval(None, None)


def union(a: Interval, b: Interval, facts: Facts = Facts.none) -> Interval:
    """The smallest interval around both."""
    lo = None if a.lo is None or b.lo is None else least(a.lo, b.lo, facts)
    hi = None if a.hi is None or b.hi is None else greatest(a.hi, b.hi, facts)
    return Interval(lo, hi)


def intersect(a: Interval, b: Interval, facts: Facts = Facts.none) -> Interval:
    """The values in both."""
    lo = b.lo if a.lo is None else a.lo if b.lo is None else greatest(a.lo, b.lo, facts)
    hi = b.hi if a.hi is None else a.hi if b.hi is None else least(a.hi, b.hi, facts)
    return Interval(lo, hi)


def least(a: Expr, b: Expr, facts: Facts) -> Expr:
    """The smaller of two expressions."""
    return facts.simplified(Binary("min", a, b))


def greatest(a: Expr, b: Expr, facts: Facts) -> Expr:
    """The larger of two expressions."""
    return facts.simplified(Binary("max", a, b))


def multiply(a: Interval, b: Interval, facts: Facts) -> Interval:
    """The products of their values."""
    if a.lo is not None and a.lo is a.hi:
        low, high = (_made(facts, "mul", a.lo, end) for end in (b.lo, b.hi))
        if at_least(facts, a.lo, 0):
            return Interval(low, high)
        if prove_le(a.lo, integer(0), facts):
            return Interval(high, low)
        return union(Interval(low, low), Interval(high, high), facts)
    if at_least(facts, a.lo, 0) and at_least(facts, b.lo, 0):
        return Interval(_made(facts, "mul", a.lo, b.lo), _made(facts, "mul", a.hi, b.hi))
    corners = [_made(facts, "mul", x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    result = Interval(corners[0], corners[0])
    for corner in corners[1:]:
        result = union(result, Interval(corner, corner), facts)
    return result


def floordiv(y: Interval, n: Interval, facts: Facts) -> Interval:
    """The quotients of their values, for n >= 0 (by 0 they are 0)."""
    if n.lo is n.hi:
        if not at_least(facts, n.lo, 0):
            return EVERYWHERE
        return Interval(_made(facts, "floordiv", y.lo, n.lo), _made(facts, "floordiv", y.hi, n.lo))
    if not (at_least(facts, n.lo, 1) and at_least(facts, y.lo, 0)):
        return EVERYWHERE
    lo = integer(0) if n.hi is None else _made(facts, "floordiv", y.lo, n.hi)
    return Interval(lo, _made(facts, "floordiv", y.hi, n.lo))


def mod(y: Interval, n: Interval, facts: Facts) -> Interval:
    """The remainders of their values; exact where y stays in one period."""
    lo: Expr | None = integer(0)
    if not at_least(facts, n.lo, 0):
        # Of a negative n they are n + 1 to 0.
        lo = None if n.lo is None else _made(facts, "min", n.lo + 1, lo)
    if n.lo is n.hi and y.lo is not None and y.hi is not None and at_least(facts, n.lo, 1):
        first, last = (_made(facts, "floordiv", end, n.lo) for end in (y.lo, y.hi))
        if first is last:
            return Interval(_made(facts, "mod", y.lo, n.lo), _made(facts, "mod", y.hi, n.lo))
    hi = None if n.hi is None else facts.simplified(n.hi - 1)
    if not at_least(facts, n.lo, 1):
        hi = _made(facts, "max", hi, integer(0))
    if y.hi is not None and at_least(facts, y.lo, 0):
        hi = y.hi if hi is None else least(hi, y.hi, facts)
    return Interval(lo, hi)


def _made(facts: Facts, op: str, a: Expr | None, b: Expr | None) -> Expr | None:
    return None if a is None or b is None else facts.simplified(Binary(op, a, b))


def at_least(facts: Facts, e: Expr | None, bound: int) -> bool:
    """Whether there is an e, and e >= bound is proved."""
    return e is not None and facts.nonnegative(to_linear(e).shifted(-bound))


def prove_ge(a: Expr, b: Expr, facts: Facts) -> bool:
    """Whether a >= b is proved."""
    return prove_le(b, a, facts)


def tighter(
    old: Expr | None, new: Expr, is_looser: Callable[[Expr, Expr, Facts], bool], facts: Facts
) -> Expr:
    """The tighter of two bounds that both hold; where neither is proved so, the simpler."""
    if old is None or is_looser(old, new, facts):
        return new
    if is_looser(new, old, facts):
        return old
    return new if _weight(new) <= _weight(old) else old


def _weight(e: Expr) -> int:
    form = to_linear(e)
    return sum(1 + 2 * len(atom.children) for atom in form.terms) + bool(form.constant)
