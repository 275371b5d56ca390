"""The repair of an accumulator whose terms were formed with a value that has changed since.

    acc(J, m') = acc(J, m) * rho(m, m')

where acc sums terms T(j, m) over the points J seen so far.  It is derived by writing T as a product
of factors, each of which changes by a ratio that does not depend on j:

    a factor without m                              1
    exp(e), exp2(e), e = c*m + r with c free of j   exp(c * (m' - m))
    m, or division by m                             m' / m, m / m'
    a cast to another float                         that of its operand
    any other function f of m alone                 f(m') / f(m)

In an exponent f(m) stands for m: exp(r - max(m, s)) changes by exp(max(m, s) - max(m', s)).

Where a factor is none of these there is no repair.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.ir.expr import Binary, Call, Cast, Compare, Const, Expr, Load, Select, Unary
from tensorlang.ir.types import DType
from tensorlang.ir.walk import rewrite


@dataclass(frozen=True, slots=True)
class Rolled:
    """A value that changes from one slice to the next: how it is read, before and after."""

    before: Expr
    after: Expr


class NoRepairError(Exception):
    """The term has a factor whose change depends on the point: `factor`."""

    def __init__(self, factor: Expr) -> None:
        super().__init__("no repair")
        self.factor = factor


def repair_of(term: Expr, rolled: Mapping[Expr, Rolled], bound: frozenset[str]) -> Expr | None:
    """rho, or None where it is 1.

    Args:
        rolled: the loads of changing values that the term may read.
        bound: the names that vary over the points already summed.
    Raises: NoRepairError, with the factor that does not come apart.
    """
    ratios = [r for f in _factors(term) if (r := _ratio(f, False, rolled, bound)) is not None]
    result: Expr | None = None
    for ratio in (_cast(r, term.dtype) for r in ratios):
        result = ratio if result is None else Binary("mul", result, ratio)
    return result


def either(e: Expr, identity: Expr, otherwise: Expr) -> Expr:
    """`e`, or `otherwise` where it is still the identity."""
    return Select(Compare("eq", e, identity), otherwise, e)


def known_seen(e: Expr, identity: Expr) -> Expr:
    """select(s == identity, c, s) -> s   where s is never the identity"""
    if isinstance(e, Select) and e.condition is Compare("eq", e.b, identity):
        return e.b if _is_never(e.b, identity) else e
    return e


def _is_never(e: Expr, identity: Expr) -> bool:
    """Whether it is select(x == identity, another number, x), or one such in another."""
    while isinstance(e, Select) and e.condition is Compare("eq", e.b, identity):
        e = e.a
        if isinstance(e, Const):
            return e is not identity
    return False


def _cast(e: Expr, dtype: DType) -> Expr:
    return e if e.dtype is dtype else Cast(dtype, e)


def _reads(e: Expr, rolled: Mapping[Expr, Rolled]) -> bool:
    """Whether a rolled value stands in the expression."""
    names = {load.buffer for load in rolled if isinstance(load, Load)}
    return not e.reads.isdisjoint(names)


def _factors(term: Expr) -> list[Expr]:
    """The factors of a product."""
    found: list[Expr] = []
    stack = [term]
    while stack:
        e = stack.pop()
        if isinstance(e, Binary) and e.op == "mul":
            stack.extend((e.b, e.a))
        else:
            found.append(e)
    return found


def _ratio(
    factor: Expr, inverse: bool, rolled: Mapping[Expr, Rolled], bound: frozenset[str]
) -> Expr | None:
    """How a factor (or its inverse) changes; None: not at all."""
    if not _reads(factor, rolled):
        return None
    if factor in rolled:
        change = rolled[factor]
        pair = (change.before, change.after) if inverse else (change.after, change.before)
        return Binary("div", *pair)
    match factor:
        case Cast() if factor.dtype.is_float and factor.a.dtype.is_float:
            return _ratio_of_product(factor.a, inverse, rolled, bound)
        case Unary(op="neg"):
            return _ratio_of_product(factor.a, inverse, rolled, bound)
        case Binary(op="mul"):
            return _ratio_of_product(factor, inverse, rolled, bound)
        case Binary(op="div"):
            above = _ratio_of_product(factor.a, inverse, rolled, bound)
            below = _ratio_of_product(factor.b, not inverse, rolled, bound)
            return above if below is None else below if above is None else _times(above, below)
        case Call(function="exp" | "exp2"):
            exponent = _change(factor.args[0], rolled, bound)
            if exponent is not None:
                exponent = _negated(exponent) if inverse else exponent
                return Call(factor.function, (exponent,), factor.dtype)
        case _:
            pass
    if factor.free.isdisjoint(bound):
        after, before = _both(factor, rolled)
        return Binary("div", *((before, after) if inverse else (after, before)))
    raise NoRepairError(factor)


def _both(e: Expr, rolled: Mapping[Expr, Rolled]) -> tuple[Expr, Expr]:
    """A function of rolled values alone, after and before."""

    def of(values: Mapping[Expr, Expr]) -> Expr:
        return rewrite(e, lambda node: values.get(node, node))

    return (
        of({load: change.after for load, change in rolled.items()}),
        of({load: change.before for load, change in rolled.items()}),
    )


def _ratio_of_product(
    e: Expr, inverse: bool, rolled: Mapping[Expr, Rolled], bound: frozenset[str]
) -> Expr | None:
    result: Expr | None = None
    for factor in _factors(e):
        ratio = _ratio(factor, inverse, rolled, bound)
        if ratio is not None:
            result = ratio if result is None else _times(result, ratio)
    return result


def _times(a: Expr, b: Expr) -> Expr:
    return Binary("mul", a, _cast(b, a.dtype))


def _change(e: Expr, rolled: Mapping[Expr, Rolled], bound: frozenset[str]) -> Expr | None:
    """e(after) - e(before), where it does not depend on the point; None where it does."""
    if not _reads(e, rolled):
        return Const(0.0, e.dtype)
    if e in rolled:
        change = rolled[e]
        return Binary("sub", change.after, change.before)
    match e:
        case Binary(op="add" | "sub"):
            found = _sum(e.op, _change(e.a, rolled, bound), _change(e.b, rolled, bound))
        case Unary(op="neg"):
            inner = _change(e.a, rolled, bound)
            found = None if inner is None else _negated(inner)
        case Binary(op="mul"):
            found = _scaled(e.a, e.b, rolled, bound)
        case Call(function="fma", args=(a, b, c)):
            found = _sum("add", _scaled(a, b, rolled, bound), _change(c, rolled, bound))
        case _:
            found = None
    if found is None and e.free.isdisjoint(bound):
        # A function of rolled values alone stands for one of them.
        return Binary("sub", *_both(e, rolled))
    return found


def _scaled(a: Expr, b: Expr, rolled: Mapping[Expr, Rolled], bound: frozenset[str]) -> Expr | None:
    """The change of a*b, where one of the two changes and the other is the same for all points."""
    if not _reads(a, rolled) and not _reads(b, rolled):
        return Const(0.0, a.dtype)
    if _reads(a, rolled):
        a, b = b, a
    if _reads(a, rolled) or not a.free.isdisjoint(bound):
        return None
    inner = _change(b, rolled, bound)
    return None if inner is None else Binary("mul", a, inner)


def _sum(op: str, a: Expr | None, b: Expr | None) -> Expr | None:
    if a is None or b is None:
        return None
    if _is_zero(b):
        return a
    if _is_zero(a):
        return b if op == "add" else _negated(b)
    return Binary(op, a, b)


def _negated(e: Expr) -> Expr:
    """-e; the other way round for a difference, which is exact."""
    if isinstance(e, Binary) and e.op == "sub":
        return Binary("sub", e.b, e.a)
    return Unary("neg", e)


def _is_zero(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 0.0
