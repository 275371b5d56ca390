"""Numeric ranges of integer expressions: what their operators and dtypes alone say.

A range is an inclusive pair of ints, None where nothing is known on that side.  Non-integers have
the range (None, None).
"""

from collections.abc import Callable

from tensorlang.ir.expr import Binary, Call, Cast, Const, Expr, Promise, Select, Size, Unary
from tensorlang.ir.types import DType, Kind

Range = tuple[int | None, int | None]

UNKNOWN: Range = (None, None)


def range_of(e: Expr, operands: list[Range]) -> Range:
    """The range of `e` given those of its operands; where data may wrap, that of its dtype."""
    if not e.dtype.is_integer:
        return UNKNOWN
    if isinstance(e, Const):
        return int(e.value), int(e.value)
    found = _RULES[type(e)](e, operands) if type(e) in _RULES else UNKNOWN
    return found if fits(found, e.dtype) else dtype_range(e.dtype)


def dtype_range(dtype: DType) -> Range:
    """All the values of a dtype; of bool as 0 and 1."""
    if dtype.is_bool:
        return 0, 1
    if dtype.kind is Kind.INDEX or dtype.is_float:
        return UNKNOWN
    return dtype.lowest, dtype.highest


def fits(found: Range, dtype: DType) -> bool:
    """Whether every value of the range is a value of the integer dtype."""
    if dtype.kind is Kind.INDEX:
        return True
    lo, hi = found
    return lo is not None and hi is not None and dtype.lowest <= lo and hi <= dtype.highest


def intersect(a: Range, b: Range) -> Range:
    """The values in both."""
    return _pick(max, a[0], b[0]), _pick(min, a[1], b[1])


def union(a: Range, b: Range) -> Range:
    """The smallest range around both."""
    lo = None if a[0] is None or b[0] is None else min(a[0], b[0])
    hi = None if a[1] is None or b[1] is None else max(a[1], b[1])
    return lo, hi


def _pick(best: Callable[[int, int], int], a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else best(a, b)


def add(a: Range, b: Range) -> Range:
    """The range of a sum."""
    lo = None if a[0] is None or b[0] is None else a[0] + b[0]
    hi = None if a[1] is None or b[1] is None else a[1] + b[1]
    return lo, hi


def scale(a: Range, by: int) -> Range:
    """The range of by*a."""
    lo, hi = (None if end is None else end * by for end in a)
    return (lo, hi) if by >= 0 else (hi, lo)


def multiply(a: Range, b: Range) -> Range:
    """The range of a product."""
    ends = [x * y for x in a for y in b if x is not None and y is not None]
    if len(ends) == 4:
        return min(ends), max(ends)
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None
    return UNKNOWN


def _binary(e: Binary, operands: list[Range]) -> Range:
    a, b = operands
    match e.op:
        case "add":
            return add(a, b)
        case "sub":
            return add(a, scale(b, -1))
        case "mul":
            return multiply(a, b)
        case "min":
            return union(a, b)[0], _pick(min, a[1], b[1])
        case "max":
            return _pick(max, a[0], b[0]), union(a, b)[1]
        case "floordiv":
            return _quotient(a, b)
        case "mod":
            return _remainder(a, b)
        case "and" if b[0] is not None and b[0] >= 0:
            return 0, b[1]
        case "and" if a[0] is not None and a[0] >= 0:
            return 0, a[1]
        case "shr" if b[0] is not None and b[0] == b[1] and 0 <= b[0] < e.dtype.bits:
            return _quotient(a, (1 << b[0], 1 << b[0]))
        case _:
            return UNKNOWN


def _quotient(a: Range, b: Range) -> Range:
    if b[0] is None or b[0] < 0:
        return UNKNOWN
    low_divisor, high_divisor = max(b[0], 1), b[1]
    if high_divisor is not None and high_divisor < low_divisor:
        return 0, 0
    lo, hi = a
    if lo is not None:
        by = low_divisor if lo < 0 else high_divisor
        lo = min(0, lo) if by is None else lo // by
    if hi is not None:
        by = high_divisor if hi < 0 else low_divisor
        hi = -1 if by is None else hi // by
    # By 0 it is 0.
    return union((lo, hi), (0, 0)) if b[0] == 0 else (lo, hi)


def _remainder(a: Range, b: Range) -> Range:
    if b[0] is None or b[0] < 0:
        return UNKNOWN
    hi = None if b[1] is None else max(b[1] - 1, 0)
    if a[0] is not None and a[0] >= 0:
        hi = _pick(min, hi, a[1])
        if b[0] > 0 and a[1] is not None and a[1] < b[0]:
            return a
    return 0, hi


def _unary(e: Unary, operands: list[Range]) -> Range:
    return scale(operands[0], -1) if e.op == "neg" else UNKNOWN


def _select(e: Select, operands: list[Range]) -> Range:
    return union(operands[1], operands[2])


def _cast(e: Cast, operands: list[Range]) -> Range:
    source = e.a.dtype
    if source.is_bool:
        return 0, 1
    if source.is_float:
        return e.dtype.lowest, e.dtype.highest
    return operands[0]


def _promise(e: Promise, operands: list[Range]) -> Range:
    return intersect(operands[0], (operands[1][0], operands[2][1]))


def _call(e: Call, operands: list[Range]) -> Range:
    if e.function != "abs":
        return UNKNOWN
    lo, hi = operands[0]
    if lo is None or hi is None:
        return (0, None) if e.dtype.kind is Kind.INDEX else UNKNOWN
    return (0 if lo <= 0 <= hi else min(abs(lo), abs(hi))), max(abs(lo), abs(hi))


def _size(e: Size, operands: list[Range]) -> Range:
    return 0, None


_RULES: dict[type[Expr], Callable[..., Range]] = {
    Binary: _binary,
    Unary: _unary,
    Select: _select,
    Cast: _cast,
    Promise: _promise,
    Call: _call,
    Size: _size,
}
