"""Whether a domain has a point at all, as a condition on the names that stay."""

from functools import reduce

from tensorlang.ir.conditions import conjuncts_of, forms_of
from tensorlang.ir.expr import Binary, Compare, Expr, Var
from tensorlang.ir.linear import to_expr


def has_point(name: str, low: Expr, extent: Expr, where: Expr | None) -> Expr | None:
    """Whether `where` holds for some `name` in [low, low + extent); None where that is not plain.

    low <= r, r <= high, r + a <= b ...   ->   every lower bound is at most every upper bound
    """
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
    bounds = [Compare("le", a, b) for a in lows for b in highs]
    return reduce(lambda a, b: Binary("and", a, b), [*others, *bounds])
