"""Under which condition each part of an expression is needed at all.

    select(c, A[i], B[i])   needs A[i] where c and B[i] where ~c; what is needed twice, where either

A `select` is lazy, so a load in a side that is not chosen must not be made.
"""

from collections.abc import Sequence

from tensorlang.ir.expr import Binary, Expr, Select, Unary
from tensorlang.ir.walk import postorder


def guards_of(roots: Sequence[Expr], under: Expr | None = None) -> dict[Expr, Expr]:
    """The condition of each part that reads memory; parts that are always needed are left out.

    Args:
        roots: the expressions that are needed.
        under: the condition under which they are; None is always.
    """
    conditions: dict[Expr, Expr | None] = {root: under for root in roots if root.reads}
    if under is not None and under.reads:
        conditions[under] = None
    for e in reversed([e for e in postorder(*conditions) if e.reads]):
        for child, condition in _children_of(e, conditions[e]):
            if child.reads:
                known = child in conditions
                conditions[child] = _either(conditions[child], condition) if known else condition
    return {e: condition for e, condition in conditions.items() if condition is not None}


def _children_of(e: Expr, condition: Expr | None) -> list[tuple[Expr, Expr | None]]:
    if not isinstance(e, Select):
        return [(child, condition) for child in e.children]
    return [
        (e.condition, condition),
        (e.a, _both(condition, e.condition)),
        (e.b, _both(condition, Unary("not", e.condition))),
    ]


def _both(a: Expr | None, b: Expr) -> Expr:
    return b if a is None or a is b else Binary("and", a, b)


def _either(a: Expr | None, b: Expr | None) -> Expr | None:
    """a | b; both sides of one select make its own condition, and a | (a & c) is a."""
    if a is None or b is None:
        return None
    if _begins_with(b, a):
        return a
    if _begins_with(a, b):
        return b
    (outer, x), (other, y) = _split(a), _split(b)
    if outer is other and _are_opposite(x, y):
        return outer
    return Binary("or", a, b)


def _begins_with(e: Expr, part: Expr) -> bool:
    """Whether e is part, part & c, (part & c) & d ..."""
    while e is not part:
        if not (isinstance(e, Binary) and e.op == "and"):
            return False
        e = e.a
    return True


def _split(e: Expr) -> tuple[Expr | None, Expr]:
    return (e.a, e.b) if isinstance(e, Binary) and e.op == "and" else (None, e)


def _are_opposite(x: Expr, y: Expr) -> bool:
    return any(isinstance(p, Unary) and p.op == "not" and p.a is q for p, q in ((x, y), (y, x)))
