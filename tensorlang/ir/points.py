"""Whether a domain has a point at all, and how many, as expressions of the names that stay."""

from dataclasses import dataclass
from functools import reduce

from tensorlang.ir.conditions import conjuncts_of, forms_of
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.linear import to_expr
from tensorlang.ir.types import index


@dataclass(frozen=True, slots=True)
class _Bounds:
    """low <= r for every low, r <= high for every high, and conditions without r."""

    lows: list[Expr]
    highs: list[Expr]
    others: list[Expr]


def has_point(name: str, low: Expr, extent: Expr, where: Expr | None) -> Expr | None:
    """Whether `where` holds for some `name` in [low, low + extent); None where that is not plain.

    low <= r, r <= high, r + a <= b ...   ->   every lower bound is at most every upper bound
    """
    found = _bounds(name, low, extent, where)
    if found is None:
        return None
    bounds = [Compare("le", a, b) for a in found.lows for b in found.highs]
    return reduce(lambda a, b: Binary("and", a, b), [*found.others, *bounds])


def points_of(name: str, low: Expr, extent: Expr, where: Expr | None) -> Expr | None:
    """For how many `name` in [low, low + extent) `where` holds; None where that is not plain."""
    if where is None:
        return extent
    found = _bounds(name, low, extent, where)
    if found is None or found.others:
        return None
    first, last = reduce(maximum, found.lows), reduce(minimum, found.highs)
    return maximum(last - first + 1, Const(0, index))


def _bounds(name: str, low: Expr, extent: Expr, where: Expr | None) -> _Bounds | None:
    """What the range and the condition say of `name`; None where a part is not linear in it."""
    lows, highs, others = [low], [low + extent - 1], list[Expr]()
    for part in () if where is None else conjuncts_of(where):
        if name not in part.free:
            others.append(part)
            continue
        forms = forms_of(part)
        if not forms:
            return None
        for form in forms:
            step, rest = form.terms.get(Var(name), 0), form.without(Var(name))
            if step not in (1, -1) or any(name in e.free for e in rest.terms):
                return None
            (lows if step > 0 else highs).append(to_expr(rest * -step))
    return _Bounds(lows, highs, others)
