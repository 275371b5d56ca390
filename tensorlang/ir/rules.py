"""Algebraic rules as rows: pattern -> replacement, the dtypes it holds for, and why it is safe.

A pattern is an operator with its operands, `(op, a, b)`; a wildcard, which stands for one
expression wherever it occurs; or a number, which matches that constant.  `c` and `d` match only
constants.
Every row makes an expression smaller, or moves a constant to the right, so rewriting ends.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorlang.ir.constants import fold_constants
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Select, Unary
from tensorlang.ir.types import DType, Kind, Scalar


@dataclass(frozen=True, slots=True)
class Wild:
    """Matches any one expression, or any one constant."""

    name: str
    only_constant: bool = False


Pattern: TypeAlias = tuple[Any, ...] | Wild | Scalar
Found: TypeAlias = Mapping[str, Expr]
Domain: TypeAlias = Callable[[DType], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """pattern -> replacement where the operands have a dtype of `domain` and `condition` holds."""

    pattern: tuple[Any, ...]
    replacement: Pattern
    domain: Domain
    condition: Callable[[Found], bool] = lambda found: True


def any_dtype(dtype: DType) -> bool:
    return True


def integers(dtype: DType) -> bool:
    return dtype.is_integer


def wrapping(dtype: DType) -> bool:
    return dtype.is_integer and dtype.kind is not Kind.INDEX


def bits(dtype: DType) -> bool:
    return dtype.is_integer or dtype.is_bool


def bools(dtype: DType) -> bool:
    return dtype.is_bool


def floats(dtype: DType) -> bool:
    return dtype.is_float


def _negative_zero(found: Found) -> bool:
    return _is_zero(found["c"], -1.0)


def _positive_zero(found: Found) -> bool:
    return _is_zero(found["c"], 1.0)


def _is_zero(c: Expr, sign: float) -> bool:
    assert isinstance(c, Const)
    return c.value == 0 and math.copysign(1.0, float(c.value)) == sign


def _not_constant(found: Found) -> bool:
    return not isinstance(found["x"], Const)


x, y, z = Wild("x"), Wild("y"), Wild("z")
c, d = Wild("c", True), Wild("d", True)

ROWS: tuple[Row, ...] = (
    # Integers that wrap form a ring.  (Index sums are put in linear form instead.)
    Row(("add", x, 0), x, wrapping),
    Row(("sub", x, 0), x, wrapping),
    Row(("sub", x, x), 0, wrapping),
    Row(("mul", x, 0), 0, wrapping),
    Row(("mul", x, 1), x, wrapping),
    Row(("add", c, x), ("add", x, c), wrapping, _not_constant),
    Row(("mul", c, x), ("mul", x, c), wrapping, _not_constant),
    Row(("add", ("add", x, c), d), ("add", x, ("add", c, d)), wrapping),
    Row(("add", ("sub", x, c), d), ("add", x, ("sub", d, c)), wrapping),
    Row(("sub", ("add", x, c), d), ("add", x, ("sub", c, d)), wrapping),
    Row(("sub", ("sub", x, c), d), ("sub", x, ("add", c, d)), wrapping),
    Row(("mul", ("mul", x, c), d), ("mul", x, ("mul", c, d)), wrapping),
    # floordiv and mod of data; by 0 they give 0.
    Row(("floordiv", x, 0), 0, wrapping),
    Row(("floordiv", x, 1), x, wrapping),
    Row(("floordiv", 0, x), 0, wrapping),
    Row(("mod", x, 0), 0, wrapping),
    Row(("mod", x, 1), 0, wrapping),
    Row(("mod", 0, x), 0, wrapping),
    Row(("mod", x, x), 0, wrapping),
    # Shifts and bits.
    Row(("shl", x, 0), x, integers),
    Row(("shr", x, 0), x, integers),
    Row(("and", x, x), x, bits),
    Row(("or", x, x), x, bits),
    Row(("xor", x, x), 0, bits),
    Row(("and", x, 0), 0, bits),
    Row(("and", 0, x), 0, bits),
    Row(("or", x, 0), x, bits),
    Row(("or", 0, x), x, bits),
    Row(("xor", x, 0), x, bits),
    Row(("xor", 0, x), x, bits),
    # Logic.  A bool constant matches as 0 or 1.
    Row(("and", x, 1), x, bools),
    Row(("and", 1, x), x, bools),
    Row(("or", x, 1), 1, bools),
    Row(("or", 1, x), 1, bools),
    Row(("xor", x, 1), ("not", x), bools),
    Row(("and", x, ("not", x)), 0, bools),
    Row(("or", x, ("not", x)), 1, bools),
    Row(("not", ("not", x)), x, bits),
    Row(("neg", ("neg", x)), x, any_dtype),
    # not of a comparison; not of floats, where not (x < y) holds for NaN and y <= x does not.
    Row(("not", ("lt", x, y)), ("le", y, x), bits),
    Row(("not", ("le", x, y)), ("lt", y, x), bits),
    Row(("not", ("eq", x, y)), ("ne", x, y), any_dtype),
    Row(("not", ("ne", x, y)), ("eq", x, y), any_dtype),
    # A value compared with itself; of floats NaN is neither equal nor ordered.
    Row(("lt", x, x), 0, any_dtype),
    Row(("le", x, x), 1, bits),
    Row(("eq", x, x), 1, bits),
    Row(("ne", x, x), 0, bits),
    # min and max return one of their operands, also for NaN.
    Row(("min", x, x), x, any_dtype),
    Row(("max", x, x), x, any_dtype),
    Row(("min", ("min", x, y), y), ("min", x, y), any_dtype),
    Row(("max", ("max", x, y), y), ("max", x, y), any_dtype),
    Row(("min", ("min", x, y), x), ("min", x, y), any_dtype),
    Row(("max", ("max", x, y), x), ("max", x, y), any_dtype),
    # select.
    Row(("select", x, y, y), y, any_dtype),
    Row(("select", x, 1, 0), x, bools),
    Row(("select", x, 0, 1), ("not", x), bools),
    Row(("select", ("not", x), y, z), ("select", x, z, y), any_dtype),
    Row(("select", x, ("select", x, y, z), Wild("w")), ("select", x, y, Wild("w")), any_dtype),
    Row(("select", x, y, ("select", x, z, Wild("w"))), ("select", x, y, Wild("w")), any_dtype),
    # Floats: only what keeps every value, signed zeros and NaN: -0.0 + 0.0 is 0.0, 0*inf is NaN.
    Row(("mul", x, 1), x, floats),
    Row(("mul", 1, x), x, floats),
    Row(("div", x, 1), x, floats),
    Row(("sub", x, c), x, floats, _positive_zero),
    Row(("add", x, c), x, floats, _negative_zero),
    Row(("add", c, x), x, floats, _negative_zero),
)

_BY_OPERATOR: dict[str, tuple[Row, ...]] = {
    op: tuple(row for row in ROWS if row.pattern[0] == op)
    for op in {str(row.pattern[0]) for row in ROWS}
}


def apply_rows(e: Expr) -> Expr:
    """What the first row that matches at the root of `e` makes of it; `e` when none does."""
    for row in _BY_OPERATOR.get(operator_of(e), ()):
        found: dict[str, Expr] = {}
        dtype = _operand_dtype(row, e)
        if dtype is not None and row.domain(dtype) and _matches(row.pattern, e, found):
            if row.condition(found):
                return build(row.replacement, found, e.dtype)
    return e


def operator_of(e: Expr) -> str:
    """The operator that a pattern names; empty for what no pattern can name."""
    if isinstance(e, (Unary, Binary, Compare)):
        return e.op
    return "select" if isinstance(e, Select) else ""


def _operand_dtype(row: Row, e: Expr) -> DType | None:
    """The dtype that a row's domain speaks of: of a (negated) comparison, what is compared."""
    if isinstance(e, Compare):
        return e.a.dtype
    inner = row.pattern[1]
    if isinstance(e, Unary) and isinstance(inner, tuple) and isinstance(e.a, Compare):
        return e.a.a.dtype
    return e.dtype


def _matches(pattern: Pattern, e: Expr, found: dict[str, Expr]) -> bool:
    if isinstance(pattern, Wild):
        if pattern.only_constant and not isinstance(e, Const):
            return False
        return found.setdefault(pattern.name, e) is e
    if isinstance(pattern, tuple):
        if operator_of(e) != pattern[0] or len(e.children) != len(pattern) - 1:
            return False
        return all(
            _matches(p, child, found) for p, child in zip(pattern[1:], e.children, strict=True)
        )
    return isinstance(e, Const) and e.value == pattern


def build(replacement: Pattern, found: Found, dtype: DType) -> Expr:
    """The replacement with what the wildcards matched; numbers become constants of `dtype`."""
    if isinstance(replacement, Wild):
        return found[replacement.name]
    if not isinstance(replacement, tuple):
        return Const(replacement, dtype)
    op = str(replacement[0])
    operands = [build(part, found, dtype) for part in replacement[1:]]
    if op in ("neg", "not"):
        return Unary(op, *operands)
    if op == "select":
        return Select(*operands)
    made = Compare(op, *operands) if op in ("lt", "le", "eq", "ne") else Binary(op, *operands)
    return fold_constants(made)
