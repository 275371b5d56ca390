"""a*b + c with one rounding, which NumPy does not have.

Rounding to odd is what makes an intermediate rounding harmless: an inexact sum takes the neighbour
whose last bit is 1, so that no tie appears that was none.
See: Boldo and Melquiond, Emulation of a FMA and correctly rounded sums (IEEE TC 2008).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

_where: Any = np.where  # whose overloads do not know Any


def fma_f32(a: Any, b: Any, c: Any) -> Any:
    """In float64 the product is exact and the sum, rounded to odd, has 29 bits to spare."""
    product = a.astype(np.float64) * b.astype(np.float64)
    total, error = _two_sum(product, c.astype(np.float64))
    return _to_odd(total, error).astype(np.float32)


def fma_f64(a: Any, b: Any, c: Any) -> Any:
    """Exact product and sums of float64s where nothing can over- or underflow, else fractions."""
    shape = np.broadcast_shapes(a.shape, b.shape, c.shape)
    a, b, c = (np.broadcast_to(x, shape).reshape(-1) for x in (a, b, c))
    high, low = _two_product(a, b)
    middle, least = _two_sum(c, low)
    top, rest = _two_sum(high, middle)
    result = top + _to_odd(*_two_sum(least, rest))
    # An exact zero takes the sign of the plain expression, which is exact there too.
    result = _where(result == 0, a * b + c, result)
    for k in np.flatnonzero(~_is_tame(a, b, c)):
        result[k] = _exactly(float(a[k]), float(b[k]), float(c[k]))
    return result.reshape(shape)[()]


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _to_odd(total: Any, error: Any) -> Any:
    """The exact value total + error, rounded to odd."""
    bits = total.view(np.int64)
    # Magnitude grows with the bits, so the sign decides which way the error points.
    step = _where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    inexact = np.isfinite(total) & np.isfinite(error) & (error != 0) & (bits & np.int64(1) == 0)
    return (bits + _where(inexact, step, np.int64(0))).view(np.float64)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded product and its exact error (Dekker), from halves of 26 bits."""
    product = a * b
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


def _halves(a: Any) -> tuple[Any, Any]:
    scaled = a * np.float64(2**27 + 1)
    high = scaled - (scaled - a)
    return high, a - high


def _is_tame(a: Any, b: Any, c: Any) -> Any:
    """Where all exponents leave room for the errors of the product and of the sums."""
    ea, eb, ec = (np.abs(_where(x == 0, 0, np.frexp(x)[1])) for x in (a, b, c))
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    return finite & (ea < 400) & (eb < 400) & (ec < 800)


def _exactly(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c  # and not a*b + c, where a*b may overflow to the other infinity
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
