"""Every operation of ir/expr.py over enclosures; the functions are in enclosed_functions.py."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorlang.backends import numerics
from tensorlang.ir.types import DType, bool_
from tensorlang.testing.enclosures import (
    Enclosure,
    anything,
    as_f64,
    at_corners,
    either,
    enclosed,
    free_where,
    is_nan,
    looseness,
    monotone,
    point,
    spans_zero,
    where,
)

Operation: TypeAlias = Callable[[Sequence[Enclosure]], Enclosure]


def unary(op: str, dtype: DType) -> Operation:
    """neg, and not of bools and integers: all of them fall."""
    operation = numerics.unary(op, dtype)
    return lambda operands: monotone(operation, operands, dtype, "-")


def binary(op: str, dtype: DType) -> Operation:
    """Binary(op) of two enclosures of `dtype`."""
    operation = numerics.binary(op, dtype)
    if op in ("min", "max") or (dtype.is_bool and op in ("and", "or")):
        return lambda operands: monotone(operation, operands, dtype)
    if op in ("add", "sub"):
        return lambda operands: _sum(op, operation, operands, dtype)
    if op == "mul":
        return lambda operands: _product(operation, operands, dtype)
    if op == "div":
        return lambda operands: _quotient(operation, operands, dtype)
    return lambda operands: _scrambled(operation, operands, dtype)


def _sum(
    op: str, operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType
) -> Enclosure:
    a, b = operands
    result = monotone(operation, operands, dtype, "++" if op == "add" else "+-")
    if result.is_point:
        return result
    if not dtype.is_float:
        return free_where(result, _width(result) != _width(a) + _width(b), dtype)
    # inf - inf inside the box, though at no corner.
    low, high = (b.low, b.high) if op == "add" else (-b.high, -b.low)
    opposite = ((a.low == -np.inf) & (high == np.inf)) | ((a.high == np.inf) & (low == -np.inf))
    return free_where(result, opposite & ~_are_certain(a, b), dtype)


def _width(x: Enclosure) -> Any:
    return np.asarray(x.high, np.float64) - np.asarray(x.low, np.float64)


def _are_certain(a: Enclosure, b: Enclosure) -> Any:
    return (a.low == a.high) & (b.low == b.high)


def _product(
    operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType
) -> Enclosure:
    a, b = operands
    product = at_corners(operation, a, b, dtype)
    if product.is_point:
        return product
    if dtype.is_float:
        # 0 * inf inside the box, though at no corner.
        return free_where(product, _zero_times_inf(a, b) | _zero_times_inf(b, a), dtype)
    wide = at_corners(np.multiply, as_f64(a), as_f64(b), dtype)
    wraps = (wide.low < dtype.lowest) | (wide.high > dtype.highest)
    return free_where(product, wraps & (either(a.is_open, b.is_open, np.False_)), dtype)


def _zero_times_inf(a: Enclosure, b: Enclosure) -> Any:
    return spans_zero(a) & (np.isinf(b.low) | np.isinf(b.high))


def _quotient(
    operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType
) -> Enclosure:
    a, b = operands
    quotient = at_corners(operation, a, b, dtype)
    if quotient.is_point:
        return quotient
    both_infinite = _may_be_infinite(a) & _may_be_infinite(b)
    undefined = spans_zero(b) | (spans_zero(a) & (b.low == 0)) | both_infinite
    return free_where(quotient, undefined & ~_are_certain(a, b), dtype)


def _may_be_infinite(x: Enclosure) -> Any:
    return np.isinf(x.low) | np.isinf(x.high)


def _scrambled(
    operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType
) -> Enclosure:
    """floordiv, mod, shifts and bits of integers: known only where both operands are."""
    value = operation(*[x.low for x in operands])
    unsure = either(*(None if x.is_point else x.low != x.high for x in operands))
    return free_where(point(value), unsure, dtype)


def comparison(op: str) -> Operation:
    """Compare(op): false and true where it is not certain."""
    exact = numerics.comparison(op)

    def compare(operands: Sequence[Enclosure]) -> Enclosure:
        a, b = operands
        if a.is_point and b.is_point:
            return point(exact(a.low, b.low))
        low, high = _verdict(op, a, b)
        free = either(_none_if_false(a.is_free), _none_if_false(b.is_free))
        if free is not None:
            low, high = low & ~free, high | free
        return enclosed(low, high, either(looseness(operands), low != high), bool_)

    return compare


def _none_if_false(mask: Any) -> Any:
    return None if mask is False else mask


def _verdict(op: str, a: Enclosure, b: Enclosure) -> tuple[Any, Any]:
    """Whether a comparison holds certainly, and whether it may hold."""
    if op == "lt":
        return a.high < b.low, a.low < b.high
    if op == "le":
        return a.high <= b.low, a.low <= b.high
    same = (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
    meet = (a.low <= b.high) & (b.low <= a.high)
    return (same, meet) if op == "eq" else (~meet, ~same)


def cast(source: DType, target: DType) -> Operation:
    """Cast: every conversion is monotone but that of an integer to a narrower one, which wraps."""
    operation = numerics.cast(source, target)
    if target.is_bool:
        nonzero = comparison("ne")
        zero = point(numerics.constant(0, source))
        return lambda operands: nonzero((operands[0], zero))

    def convert(operands: Sequence[Enclosure]) -> Enclosure:
        x = operands[0]
        if x.is_point:
            return point(operation(x.low))
        low, high = operation(x.low), operation(x.high)
        loose = x.loose
        if source.is_float and not target.is_float:
            # Where an execution truncates to another integer it goes another way.
            loose = either(loose, low != high)
            result = free_where(Enclosure(low, high, loose), _none_if_false(x.is_free), target)
            return enclosed(*result, target)
        if not target.is_float:
            lowest, highest = anything(target)
            wraps = _width(x) != _width(Enclosure(low, high))
            loose = either(loose, wraps)
            low, high = where(wraps, lowest, low), where(wraps, highest, high)
        return enclosed(low, high, loose, target)

    return convert


def is_nan_of(operands: Sequence[Enclosure]) -> Enclosure:
    """isnan."""
    x = operands[0]
    value = is_nan(x.low)
    if x.loose is None:
        return point(value)
    return enclosed(value & ~x.loose, value, x.loose, bool_)


def is_infinite_of(operands: Sequence[Enclosure]) -> Enclosure:
    """isinf."""
    x = operands[0]
    if x.is_point:
        return point(np.isinf(x.low))
    certain = np.isinf(x.low) & (x.low == x.high)
    possible = np.isinf(x.low) | np.isinf(x.high)
    if x.loose is not None:
        possible = possible | x.is_free
    return enclosed(certain, possible, either(x.loose, certain != possible), bool_)
