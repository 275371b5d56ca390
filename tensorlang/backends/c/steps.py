"""Quotients and remainders of a loop's variable where the lanes of a vector stand at known steps.

x//8 in lanes x = 8*q ... 8*q + 7   ->  q            x % 8  ->  x - 8*q
A[x//2] there                       ->  A[4*q + (0, 0, 1, 1, 2, 2, 3, 3)]: a load and a shuffle
"""

from collections.abc import Sequence

from tensorlang.backends.c.rewriting import total
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Var
from tensorlang.ir.linear import Linear, integer, to_expr, to_linear
from tensorlang.ir.stmt import Stmt, map_children, map_exprs
from tensorlang.ir.types import index, u64
from tensorlang.ir.walk import rewrite, substitute


def in_whole_steps(stmt: Stmt, lane: str, first: Expr, width: int) -> Stmt:
    """The statement with each x//n and x % n in which no lane begins a new step written so."""
    memo: dict[Expr, Expr] = {}

    def rule(e: Expr) -> Expr:
        form = _divided_form(e)
        if form is None or form[0].terms.get(Var(lane)) != 1:
            return e
        start = form[0].without(Var(lane)).plus(to_linear(first), 1)
        whole, rest = start.divided(form[1])
        if rest.terms or rest.constant + width > form[1] or lane in to_expr(start).free:
            return e
        if isinstance(e, Binary) and e.op == "floordiv":
            return to_expr(whole)
        return to_expr(to_linear(Var(lane)) - to_linear(first).shifted(-rest.constant))

    def visit(s: Stmt) -> Stmt:
        return map_children(map_exprs(s, lambda e: rewrite(e, rule, memo)), visit)

    return visit(stmt)


def with_narrow_clamps(stmt: Stmt) -> Stmt:
    """The statement with data clamped before it becomes an index, for which there are vectors.

    min(index(i), 6)  ->  index(min(i, 6))        f32(index(i))  ->  f32(i)
    """
    memo: dict[Expr, Expr] = {}

    def visit(s: Stmt) -> Stmt:
        return map_children(map_exprs(s, lambda e: rewrite(e, _narrowed, memo)), visit)

    return visit(stmt)


def _narrowed(e: Expr) -> Expr:
    match e:
        case Cast(a=Cast(a=data) as inner) if inner.dtype is index and _is_data(data):
            return Cast(e.dtype, data)
        case Binary(op="min" | "max", a=Cast(a=data), b=Const(value=bound)) if e.dtype is index:
            if _is_data(data) and data.dtype.lowest <= bound <= data.dtype.highest:
                return Cast(index, Binary(e.op, data, Const(bound, data.dtype)))
        case _:
            pass
    return e


def _is_data(e: Expr) -> bool:
    """Whether each value of an integer is an index too."""
    return e.dtype.is_integer and e.dtype is not index and e.dtype is not u64


def steps_of(e: Expr, lane: str, first: Expr, width: int) -> tuple[Linear, list[int]] | None:
    """(start, steps): the index is start + steps[l] in lane l; None where it is not so simple."""
    if e.reads:
        return None
    forms = [
        to_linear(_settled(substitute(e, {lane: total(first, integer(k))}))) for k in range(width)
    ]
    differences = [form - forms[0] for form in forms]
    if any(d.terms for d in differences):
        return None
    return forms[0], [d.constant for d in differences]


def _settled(e: Expr) -> Expr:
    """The index with the quotients and remainders of whole multiples and a constant worked out."""

    def rule(part: Expr) -> Expr:
        form = _divided_form(part)
        if form is None:
            return part
        whole, rest = form[0].divided(form[1])
        if rest.terms:
            return part
        is_quotient = isinstance(part, Binary) and part.op == "floordiv"
        return to_expr(whole) if is_quotient else integer(rest.constant)

    return rewrite(e, rule)


def _divided_form(e: Expr) -> tuple[Linear, int] | None:
    """Of a//n or a % n by a positive constant: a and n."""
    if not isinstance(e, Binary) or e.op not in ("floordiv", "mod") or e.dtype is not index:
        return None
    if not isinstance(e.b, Const) or int(e.b.value) < 1:
        return None
    return to_linear(e.a), int(e.b.value)


def window_of(steps: Sequence[int], width: int) -> tuple[int, int] | None:
    """(lanes, apart): two vectors that hold all elements, the second `apart` after the first.

    All that is loaded lies between the first and the last element, so that nothing else is read.
    """
    span = max(steps) - min(steps) + 1
    lanes = 1 << (span.bit_length() - 1)
    if lanes > width:
        lanes = width
    return (lanes, span - lanes) if lanes > 1 and span <= 2 * lanes else None
