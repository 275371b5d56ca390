"""Sums of exact products, by the matrix routines of NumPy.

A product of two f32s that were f16, bf16, tf32 or f8 has few enough bits to be exact in f32, unless
it over- or underflows.  Then the sum of products in f64 is that of the definition.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlang.ir.expr import Binary, Cast, Expr
from tensorlang.ir.types import f32, f64

# A factor of more lanes than this is not held as a whole.
LARGEST_FACTOR = 1 << 25
# Products of such factors, of at most 22 bits, are exact between these.
_LOW, _HIGH = 2.0**-126, 2.0**126


def exact_factors(term: Expr) -> tuple[Expr, Expr] | None:
    """The factors of a product that needs no rounding, or None."""
    if not isinstance(term, Binary) or term.op != "mul" or term.dtype not in (f32, f64):
        return None
    a, b = term.a, term.b
    if not (isinstance(a, Cast) and isinstance(b, Cast)):
        return None
    if not (a.a.dtype.is_float and b.a.dtype.is_float):
        return None
    # A product has the bits of both mantissas, each with its hidden bit.
    bits = a.a.dtype.mantissa + b.a.dtype.mantissa + 2
    return (a, b) if bits <= term.dtype.mantissa + 1 else None


def contract(a: Any, b: Any, extents: Sequence[int], rank: int) -> Any | None:
    """The sum of a*b, in f64, over the axes from `rank` on, or None when there is more to it.

    Args: a, b: factors that broadcast to `extents`; an axis along which one does not vary may be 1.
    """
    axes: list[list[int]] = []
    factors: list[Any] = []
    for factor in (a, b):
        if np.ndim(factor) != len(extents):
            return None
        if not factor.size:
            return None
        own = [k for k, n in enumerate(extents) if factor.shape[k] == n]
        factors.append(factor.reshape([extents[k] for k in own]).astype(np.float64))
        axes.append(own)
    if {*axes[0], *axes[1]} != set(range(len(extents))) or not _is_exact(*factors):
        return None
    return np.einsum(factors[0], axes[0], factors[1], axes[1], list(range(rank)), optimize=True)


def _is_exact(a: Any, b: Any) -> bool:
    """Whether no product over- or underflows an f32; NaN and inf are left to the long way."""
    sizes = [np.abs(factor[factor != 0]) for factor in (a, b)]
    if not all(size.size for size in sizes):
        return bool(np.isfinite(a).all() and np.isfinite(b).all())
    low, high = (float(np.prod([of(size) for size in sizes])) for of in (np.min, np.max))
    return low >= _LOW and high <= _HIGH
