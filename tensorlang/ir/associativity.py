"""Which updates are associative and commutative: proven from the definition by matching.

    f[p] = f[p] op e        op one of add mul min max and or xor, e free of f
    (f0, f1)[p] = (select(better, e, f0[p]), select(better, at, f1[p]))      argmin and argmax
    (f0, f1)[p] = (f0[p] op0 e0, f1[p] op1 e1)                               side by side

Where `better` is of the value alone, of equal ones the first wins; it may also say that the one of
the smaller place does.

Reassociating a float sum changes its rounding, within the bound that the tests state; nothing else
here changes a value.  See: Halide's AssociativeOpsTable.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from tensorlang.ir.expr import Binary, Call, Compare, Expr, Load, Select, Unary
from tensorlang.ir.types import f32, f64

Operator: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor", "argmin", "argmax"]


def associative_operator(
    func: str, indices: Sequence[Expr], values: Sequence[Expr]
) -> tuple[Operator, tuple[Expr, ...]] | None:
    """The operator of an update and the term(s) that it combines, or None when none is proven."""
    if any(func in e.reads for e in indices):
        return None
    if len(values) == 1:
        return _single(func, tuple(indices), values[0])
    if len(values) == 2:
        return _arg(func, tuple(indices), values[0], values[1])
    return None


def side_by_side(
    func: str, indices: Sequence[Expr], values: Sequence[Expr]
) -> tuple[tuple[Operator, ...], tuple[Expr, ...]] | None:
    """The operator and the term of each component, where each is a reduction of its own."""
    if any(func in e.reads for e in indices):
        return None
    found = [_single(func, tuple(indices), value, k) for k, value in enumerate(values)]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    return tuple(op for op, _ in parts), tuple(term for _, (term,) in parts)


def multiply_add(
    func: str, indices: Sequence[Expr], values: Sequence[Expr]
) -> tuple[Expr, Expr] | None:
    """a and b of the reduction f[p] = f[p] + a*b of f32 or f64, which may be rounded once."""
    match associative_operator(func, indices, values):
        case "add", (Binary(op="mul", a=a, b=b, dtype=dtype),) if dtype in (f32, f64):
            return a, b
        case _:
            return None


def _is_current(e: Expr, func: str, indices: tuple[Expr, ...], component: int) -> bool:
    return (
        isinstance(e, Load)
        and e.buffer == func
        and e.component == component
        and all(a is b for a, b in zip(e.indices, indices, strict=True))
    )


def _single(
    func: str, indices: tuple[Expr, ...], value: Expr, component: int = 0
) -> tuple[Operator, tuple[Expr]] | None:
    match value:
        case Binary(op="add" | "mul" | "min" | "max" | "and" | "or" | "xor" as op, a=a, b=b):
            for current, term in ((a, b), (b, a)):
                if _is_current(current, func, indices, component) and func not in term.reads:
                    return op, (term,)
        case _:
            pass
    return None


def _arg(
    func: str, indices: tuple[Expr, ...], best: Expr, at: Expr
) -> tuple[Operator, tuple[Expr, ...]] | None:
    match best, at:
        case Select(condition=better, a=term, b=old), Select(condition=same, a=here, b=old_at):
            if better is not same or func in term.reads or func in here.reads:
                return None
            if not (_is_current(old, func, indices, 0) and _is_current(old_at, func, indices, 1)):
                return None
            op = _better(_without_tie(better, term, old, here, old_at), term, old)
            return None if op is None else (op, (term, here))
        case _:
            return None


def _without_tie(better: Expr, term: Expr, old: Expr, here: Expr, old_at: Expr) -> Expr:
    """c of c | (equal & here < old_at), where equal is that of numbers, or of NaN too."""
    match better:
        case Binary(op="or", a=strict, b=Binary(op="and", a=equal, b=Compare("lt") as before)):
            earlier = before.a is here and before.b is old_at
            return strict if earlier and _is_equal(equal, term, old) else better
        case _:
            return better


def _is_equal(condition: Expr, term: Expr, old: Expr) -> bool:
    match condition:
        case Binary(
            op="or",
            a=equal,
            b=Binary(
                op="and",
                a=Call(function="isnan", args=(t,)),
                b=Call(function="isnan", args=(o,)),
            ),
        ):
            return t is term and o is old and _is_equal(equal, term, old)
        case Compare(op="eq", a=a, b=b):
            return a is term and b is old
        case _:
            return False


def _better(condition: Expr, term: Expr, old: Expr) -> Operator | None:
    """term < old, old < term, either `| isnan(term) & ~isnan(old)`: NaN counts as the best."""
    match condition:
        case Binary(
            op="or",
            a=Compare() as strict,
            b=Binary(
                op="and",
                a=Call(function="isnan", args=(t,)),
                b=Unary(op="not", a=Call(function="isnan", args=(o,))),
            ),
        ) if t is term and o is old:
            return _strict(strict, term, old)
        case Compare() if not term.dtype.is_float:
            return _strict(condition, term, old)
        case _:
            return None


def _strict(condition: Compare, term: Expr, old: Expr) -> Operator | None:
    if condition.op == "lt" and condition.a is term and condition.b is old:
        return "argmin"
    if condition.op == "lt" and condition.a is old and condition.b is term:
        return "argmax"
    return None


def reorders_freely(func: str, indices: Sequence[Expr], values: Sequence[Expr]) -> bool:
    """Whether the points of an update may run in any order (one at a time).

    So it is for an associative and commutative operator.  argmin and argmax are associative only:
    of two equal values the first wins.
    """
    found = associative_operator(func, indices, values)
    return found is not None and found[0] not in ("argmin", "argmax")
