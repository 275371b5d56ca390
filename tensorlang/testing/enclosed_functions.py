"""The functions of ir/functions.py over enclosures: strict ones, and ones within their ulp.

An inexact function is evaluated in f64 at the ends of its argument and widened by the ulp that
`FUNCTIONS` documents, which are ulp of f32 for f16, bf16, tf32 and f8 too: those are computed in
f32 and rounded.  Where the result is subnormal a backend may give 0.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlang.backends import numerics
from tensorlang.backends.rounding import lowest_exponent, rounder
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.types import DType, f32, f64
from tensorlang.testing.enclosed_operations import (
    Operation,
    binary,
    is_infinite_of,
    is_nan_of,
)
from tensorlang.testing.enclosures import (
    Enclosure,
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

_GROWING = ("exp", "exp2", "log", "log2", "tanh", "erf", "sigmoid",
            "approx.tanh", "approx.exp2", "approx.erf")  # fmt: skip
_NOT_NEGATIVE = ("exp", "exp2", "sigmoid", "approx.exp2")
_STEPS = ("floor", "ceil", "round")
# Abramowitz and Stegun 7.1.26, beside the ulp of computing it.
_ERF_ERROR = 3e-7


def function(name: str, dtype: DType) -> Operation:
    """FUNCTIONS[name] of enclosures of `dtype`."""
    exact = {"isnan": is_nan_of, "isinf": is_infinite_of}.get(name)
    if exact is not None:
        return exact
    operation = numerics.function(name, dtype)
    if name == "random_uniform":
        return lambda operands: _of_points(operation, operands)
    if name == "abs":
        return lambda operands: _magnitude(operation, operands[0], dtype)
    if name == "sqrt":
        return lambda operands: monotone(operation, operands, dtype)
    if name == "fma":
        return lambda operands: _fused(operation, operands, dtype)
    if name in _STEPS:
        return lambda operands: _step(operation, operands, dtype)
    return lambda operands: _inexact(name, operands, dtype)


def _of_points(operation: Callable[..., Any], operands: Sequence[Enclosure]) -> Enclosure:
    value = operation(*[x.low for x in operands])
    unsure = either(*(None if x.is_point else x.low != x.high for x in operands))
    return free_where(point(value), unsure, f32)


def _magnitude(operation: Callable[..., Any], x: Enclosure, dtype: DType) -> Enclosure:
    if x.is_point:
        return point(operation(x.low))
    ends = operation(x.low), operation(x.high)
    low, high = np.minimum(*ends), np.maximum(*ends)
    return enclosed(where(spans_zero(x), np.zeros_like(low), low), high, x.loose, dtype)


def _step(operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType) -> Enclosure:
    result = monotone(operation, operands, dtype)
    if result.is_point:
        return result
    # Another integer is another way.
    loose = either(result.loose, (result.low != result.high) & ~np.isnan(result.low))
    return enclosed(result.low, result.high, loose, dtype)


def _fused(operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType) -> Enclosure:
    a, b, c = operands
    if all(x.is_point for x in operands):
        return point(operation(a.low, b.low, c.low))

    def plus(addend: Any) -> Enclosure:
        def fused(x: Any, y: Any) -> Any:
            return operation(x, y, addend)

        return at_corners(fused, a, b, dtype)

    low, high = plus(c.low), plus(c.high)
    # What a product may be, a fused one may be.
    product = binary("mul", dtype)((a, b))
    fused = enclosed(low.low, high.high, either(looseness(operands), low.loose, high.loose), dtype)
    return free_where(fused, either(product.is_free, np.False_), dtype)


def _inexact(name: str, operands: Sequence[Enclosure], dtype: DType) -> Enclosure:
    """The function in f64 at the ends, widened, and rounded to the dtype (rounding is monotone)."""
    wide = [as_f64(x) for x in operands]
    exact = numerics.function(name, f64)
    if name in _GROWING:
        ends = monotone(exact, wide, f64)
    elif name == "rsqrt":
        ends = monotone(exact, wide, f64, "-")
        if not ends.is_point:  # one zero gives inf and the other -inf
            ends = free_where(ends, (wide[0].low <= 0) & (wide[0].high >= 0), f64)
    elif name in ("sin", "cos"):
        ends = _wave(exact, wide[0])
    elif name == "pow":
        ends = _power(exact, *wide)
    else:
        ends = binary("div", f64)((point(np.float64(1)), wide[0]))
    computed = f64 if dtype is f64 else f32
    # f64 here is computed by NumPy, which errs by an ulp itself.
    ulps = FUNCTIONS[name].ulp + (dtype is f64)
    low = ends.low - _error(name, ends.low, ulps, computed)
    high = ends.high + _error(name, ends.high, ulps, computed)
    if name in _NOT_NEGATIVE:
        low = np.maximum(low, 0.0)
    rounded = rounder(dtype)
    return enclosed(rounded(np.asarray(low)), rounded(np.asarray(high)), ends.loose, dtype)


def _error(name: str, value: Any, ulps: float, computed: DType) -> Any:
    """How far a backend may be from a value of the function."""
    smallest = lowest_exponent(computed)
    exponent = np.maximum(np.frexp(value)[1] - 1, smallest)
    error = ulps * np.ldexp(1.0, exponent - computed.mantissa)
    tiny = np.ldexp(1.0, smallest)
    # A result that is not normal may be flushed to 0.
    error = where(np.abs(value) < tiny, np.maximum(error, tiny), error)
    error = where(np.isfinite(value), error, 0.0)
    return error + _ERF_ERROR if name == "approx.erf" else error


def _wave(exact: Callable[..., Any], x: Enclosure) -> Enclosure:
    """sin and cos move by no more than their argument."""
    value = exact(x.low)
    if x.is_point:
        return point(value)
    width = x.high - x.low
    result = enclosed(value - width, value + width, x.loose, f64)
    return free_where(result, np.isinf(width), f64)


def _power(exact: Callable[..., Any], base: Enclosure, exponent: Enclosure) -> Enclosure:
    result = at_corners(exact, base, exponent, f64)
    if result.is_point:
        return result
    # Monotone in each operand over positive bases alone; and NaN to the 0 is 1, as is 1 to the NaN.
    unsure = (base.low != base.high) | (exponent.low != exponent.high)
    return free_where(result, ~(base.low > 0) & unsure | is_nan(exponent.low) & unsure, f64)
