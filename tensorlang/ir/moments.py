"""The repair of a sum whose terms are polynomial in a mean that has changed since.

    acc(J, m') = acc(J, m) + (m' - m) * sum_k A_k * (m'^(k-1) + m'^(k-2) m + ... + m^(k-1))

where the term is sum_k a_k(j) * m^k, and A_k = sum of a_k over the points J seen so far: a moment,
which must be known.  Of (x - m)^2 these are -2 * sum(x) and the count, and the repair is that of
Chan, Golub and LeVeque: n * (m' - m)^2, and what rounding leaves of sum(x) - n*m.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from tensorlang.ir.expr import Binary, Const, Expr, Unary
from tensorlang.ir.repair import NoRepairError
from tensorlang.ir.types import DType
from tensorlang.ir.walk import fold

# A term of a higher degree, or of more parts, is not taken apart.
_HIGHEST, _MOST = 4, 64
# What a product of factors that vary sums to over the points seen so far; None: not known.
Moment = Callable[[tuple[Expr, ...]], Expr | None]


@dataclass(frozen=True, slots=True)
class _Monomial:
    """number * product(factors) * mean^power"""

    number: float
    factors: tuple[Expr, ...]
    power: int


def shift_of(
    term: Expr, mean: Expr, change: tuple[Expr, Expr], bound: frozenset[str], moment: Moment
) -> Expr:
    """acc(J, m') - acc(J, m).

    Args:
        mean: the node that stands for the mean in the term.
        change: the mean before and after.
        bound: the names that vary over the points already summed.
        moment: the sums that are known.
    Raises: NoRepairError, with the factor that does not come apart.
    """
    before, after = change
    total: Expr | None = None
    for part in _monomials(term, mean):
        if part.power == 0:
            continue
        fixed = [f for f in part.factors if f.free.isdisjoint(bound)]
        moving = tuple(f for f in part.factors if not f.free.isdisjoint(bound))
        summed = moment(moving)
        if summed is None:
            raise NoRepairError(_product(moving, term.dtype))
        value = _product([Const(part.number, term.dtype), *fixed, summed], term.dtype)
        value = Binary("mul", value, _between(before, after, part.power))
        total = value if total is None else Binary("add", total, value)
    if total is None:
        return Const(0.0, term.dtype)
    return Binary("mul", Binary("sub", after, before), total)


def _between(before: Expr, after: Expr, power: int) -> Expr:
    """(after^power - before^power) / (after - before)"""
    parts = [_product([after] * k + [before] * (power - 1 - k), before.dtype) for k in range(power)]
    return reduce(lambda a, b: Binary("add", a, b), parts)


def _product(factors: Sequence[Expr], dtype: DType) -> Expr:
    """The product; of numbers only those that are not 1."""
    kept = [f for f in factors if not (isinstance(f, Const) and f.value == 1)]
    return reduce(lambda a, b: Binary("mul", a, b), kept) if kept else Const(1.0, dtype)


def _monomials(term: Expr, mean: Expr) -> list[_Monomial]:
    """The term as a sum of monomials in the mean; what does not mention it stays whole."""

    def step(e: Expr, parts: list[list[_Monomial]]) -> list[_Monomial]:
        if e is mean:
            return [_Monomial(1.0, (), 1)]
        match e:
            case Const():
                return [_Monomial(float(e.value), (), 0)]
            case Binary(op="mul"):
                return _multiplied(e, parts[0], parts[1])
            case _ if all(m.power == 0 for part in parts for m in part):
                return [_Monomial(1.0, (e,), 0)]
            case Binary(op="add"):
                return [*parts[0], *parts[1]]
            case Binary(op="sub"):
                return [*parts[0], *map(_negative, parts[1])]
            case Unary(op="neg"):
                return [*map(_negative, parts[0])]
            case _:
                raise NoRepairError(e)

    return fold(term, step)


def _multiplied(e: Expr, a: list[_Monomial], b: list[_Monomial]) -> list[_Monomial]:
    made = [
        _Monomial(x.number * y.number, x.factors + y.factors, x.power + y.power)
        for x in a
        for y in b
    ]
    if len(made) > _MOST or any(m.power > _HIGHEST for m in made):
        raise NoRepairError(e)
    return made


def _negative(m: _Monomial) -> _Monomial:
    return _Monomial(-m.number, m.factors, m.power)
