"""Taking conditions apart: negation, conjunction, and the inequalities that they are."""

from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Unary
from tensorlang.ir.linear import Linear, to_linear
from tensorlang.ir.types import index


def negated(condition: Expr) -> Expr:
    """The condition that holds where this one does not, with `not` pushed into comparisons."""
    match condition:
        case Compare(op="lt" | "le") if condition.a.dtype.is_integer:
            return Compare("le" if condition.op == "lt" else "lt", condition.b, condition.a)
        case Compare(op="eq" | "ne"):
            return Compare("ne" if condition.op == "eq" else "eq", condition.a, condition.b)
        case Unary(op="not"):
            return condition.a
        case Binary(op="and" | "or") if condition.dtype.is_bool:
            op = "or" if condition.op == "and" else "and"
            return Binary(op, Unary("not", condition.a), Unary("not", condition.b))
        case Const():
            return Const(not condition.value, condition.dtype)
        case _:
            return Unary("not", condition)


def conjuncts_of(condition: Expr) -> list[Expr]:
    """The conditions of which `condition` is the conjunction, `not` pushed inwards."""
    found: list[Expr] = []
    stack = [condition]
    while stack:
        e = stack.pop()
        if isinstance(e, Unary) and e.op == "not":
            inner = negated(e.a)
            if inner is e:
                found.append(e)
            else:
                stack.append(inner)
        elif isinstance(e, Binary) and e.op == "and":
            stack += (e.b, e.a)
        else:
            found.append(e)
    return found


def forms_of(condition: Expr) -> list[Linear]:
    """Forms that are >= 0 where `condition` holds."""
    forms: list[Linear] = []
    for part in conjuncts_of(condition):
        if not isinstance(part, Compare) or not part.a.dtype.is_integer or part.op == "ne":
            continue
        difference = to_linear(as_index(part.b)) - to_linear(as_index(part.a))
        if part.op == "eq":
            forms += (difference, -difference)
        else:
            forms.append(difference.shifted(-1 if part.op == "lt" else 0))
    return forms


def as_index(e: Expr) -> Expr:
    """The value of an integer expression as an index."""
    if e.dtype is index:
        return e
    if isinstance(e, Const):
        return Const(int(e.value), index)
    return Cast(index, e)


def multiple_of(condition: Expr) -> tuple[Expr, int] | None:
    """(x, n) for x % n == 0, where n is a number of at least 2."""
    match condition:
        case Compare(op="eq", a=Binary(op="mod", a=x, b=Const(value=n)), b=Const(value=0)) if (
            x.dtype is index and n > 1
        ):
            return x, int(n)
        case _:
            return None
