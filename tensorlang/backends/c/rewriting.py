"""Small rewrites of loop IR that several steps of vectorisation share."""

from collections.abc import Mapping, Sequence

from tensorlang.ir.expr import Binary, Const, Expr, Unary, Var
from tensorlang.ir.linear import integer, to_expr, to_linear
from tensorlang.ir.stmt import Block, For, If, LoopKind, Stmt, map_children, map_exprs, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import postorder, substitute


def replace_names(stmt: Stmt, values: Mapping[str, Expr]) -> Stmt:
    """The statement with names replaced everywhere."""
    if not values:
        return stmt
    changed = map_exprs(stmt, lambda e: substitute(e, values))
    return map_children(changed, lambda child: replace_names(child, values))


def is_plain(value: Expr) -> bool:
    """Whether an index is a sum of names."""
    return value.dtype is index and all(isinstance(atom, Var) for atom in to_linear(value).terms)


def has_vectorized(stmt: Stmt) -> bool:
    """Whether a vectorized loop stands in the statement."""
    return any(isinstance(s, For) and s.kind is LoopKind.VECTORIZED for s in walk(stmt))


def total(*parts: Expr) -> Expr:
    """The sum of indices, simplified."""
    form = to_linear(parts[0])
    for part in parts[1:]:
        form = form + to_linear(part)
    return to_expr(form)


def times(e: Expr, factor: int) -> Expr:
    """factor*e, simplified."""
    return to_expr(to_linear(e) * factor)


def less(a: Expr, b: Expr) -> Expr:
    """a - b, simplified."""
    return to_expr(to_linear(a) - to_linear(b))


def quotient(e: Expr, by: int) -> Expr:
    """e // by, computed where e is a constant."""
    if isinstance(e, Const):
        return integer(int(e.value) // by)
    return e if by == 1 else Binary("floordiv", e, integer(by))


def larger(a: Expr, b: Expr) -> Expr:
    """max(a, b), computed where both are constants."""
    if isinstance(a, Const) and isinstance(b, Const):
        return a if int(a.value) >= int(b.value) else b
    return a if a is b else Binary("max", a, b)


def smaller(a: Expr, b: Expr) -> Expr:
    """min(a, b), computed where both are constants."""
    if isinstance(a, Const) and isinstance(b, Const):
        return a if int(a.value) <= int(b.value) else b
    return a if a is b else Binary("min", a, b)


def all_of(conditions: Sequence[Expr]) -> Expr | None:
    """The conjunction; None where there is nothing to hold."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else Binary("and", result, condition)
    return result


def guarded(conditions: Sequence[Expr], body: Stmt) -> Stmt:
    """if all conditions: body."""
    condition = all_of(conditions)
    return body if condition is None else If(condition, body)


def either(condition: Expr | None, fast: Stmt, slow: Stmt) -> Stmt:
    """if condition: fast  else: slow; two Ifs, which `otherwise` knows again."""
    if condition is None or (isinstance(condition, Const) and condition.value):
        return fast
    return Block((If(condition, fast), If(Unary("not", condition), slow)))


def otherwise(first: Stmt | None, second: Stmt) -> Stmt | None:
    """The slow side, where the two are what `either` makes."""
    if not (isinstance(first, If) and isinstance(second, If)):
        return None
    condition = second.condition
    same = isinstance(condition, Unary) and condition.op == "not" and condition.a is first.condition
    return second.body if same else None


def place_names(e: Expr) -> set[str]:
    """The index variables in a guard or an extent; one of data is said to be of none."""
    return set() if e.reads else {x.name for x in postorder(e) if isinstance(x, Var)}
