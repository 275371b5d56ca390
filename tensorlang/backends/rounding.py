"""The floats that NumPy lacks: rounding to them, their bits, and saturating casts to integers.

A bf16, tf32 or f8 value is carried as a float32 that is one of that dtype's values.  Arrays store
bf16 as uint16 bits, f8 as uint8 bits and tf32 as float32.  Everything here takes scalars and arrays
alike, and expects NumPy's floating-point warnings to be off (`numerics.quiet`).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from tensorlang.ir.types import DType, bf16, f8e4m3, f16, f32, f64, tf32

_where: Any = np.where  # whose overloads do not know Any
_NATIVE = {f16: np.float16, f32: np.float32, f64: np.float64}
# Bits of a float32's mantissa that the dtype does not have.
_DROPPED = {bf16: 16, tf32: 13}
NARROW = ("bf16", "tf32", "f8e4m3", "f8e5m2")


def rounder(dtype: DType) -> Callable[[Any], Any]:
    """A number -> the nearest value of `dtype`, ties to even; f8 saturates, also from inf."""
    if dtype in _NATIVE:
        made = _NATIVE[dtype]
        return lambda x: x.astype(made)
    if dtype not in _DROPPED:
        return lambda x: _round_by_quantum(x, dtype)
    drop = _DROPPED[dtype]

    def nearest(x: Any) -> Any:
        return _round_bits(x, drop) if x.dtype == np.float32 else _round_by_quantum(x, dtype)

    return nearest


def _round_bits(x: Any, drop: int) -> Any:
    """A float32 without its last `drop` mantissa bits: adding half carries into the exponent."""
    bits = x.view(np.uint32)
    odd = (bits >> np.uint32(drop)) & np.uint32(1)
    bits = (bits + np.uint32((1 << (drop - 1)) - 1) + odd) & np.uint32(0x1_0000_0000 - (1 << drop))
    # A NaN whose payload lies in the dropped bits would become inf.
    return _where(np.isnan(x), np.float32(np.nan), bits.view(np.float32))[()]


def lowest_exponent(dtype: DType) -> int:
    """The exponent of the smallest normal number."""
    # The range is symmetric about 1 but for e4m3, which gives its top code to numbers.
    return 2 - math.frexp(dtype.largest)[1] + (dtype is f8e4m3)


def _round_by_quantum(x: Any, dtype: DType) -> Any:
    """rint(x / q) * q in f64, where q is the distance of neighbours at x; only the rint rounds."""
    wide = x.astype(np.float64)
    exponent = np.maximum(np.frexp(wide)[1] - 1, lowest_exponent(dtype))
    quantum = np.ldexp(1.0, exponent - dtype.mantissa)
    nearest = np.rint(wide / quantum) * quantum
    beyond = np.copysign(dtype.largest if dtype.bits == 8 else np.inf, wide)
    held = _where(np.abs(nearest) > dtype.largest, beyond, nearest)
    return held.astype(np.float32)[()]


@lru_cache
def f8_values(dtype: DType) -> "np.ndarray[Any, np.dtype[np.float32]]":
    """The float32 value of each of the 256 codes of an 8-bit float."""
    exponent_bits = 7 - dtype.mantissa
    codes = np.arange(256)
    exponent = (codes >> dtype.mantissa) & ((1 << exponent_bits) - 1)
    fraction = (codes & ((1 << dtype.mantissa) - 1)) / (1 << dtype.mantissa)
    normal = exponent > 0
    scale = np.maximum(exponent, 1) - 1 + lowest_exponent(dtype)
    values = np.ldexp(_where(normal, 1 + fraction, fraction), scale)
    top = exponent == (1 << exponent_bits) - 1
    if dtype is f8e4m3:
        values[top & (fraction == 0.875)] = np.nan
    else:
        values[top] = _where(fraction[top] == 0, np.inf, np.nan)
    made = _where(codes >= 128, -values, values).astype(np.float32)
    made.flags.writeable = False
    return made


def decode(dtype: DType) -> Callable[[Any], Any]:
    """bits as stored -> the values that they stand for; only for bf16 and f8."""
    if dtype is bf16:
        return lambda bits: (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    table = f8_values(dtype)
    return lambda bits: table[bits]


def encode(dtype: DType) -> Callable[[Any], Any]:
    """Values of the dtype -> bits as stored; only for bf16 and f8.  NaN becomes the quiet NaN."""
    if dtype is bf16:
        return lambda x: (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    magnitudes: Any = f8_values(dtype)[:127]

    def bits(x: Any) -> Any:
        code = _where(np.isnan(x), 127, np.searchsorted(magnitudes, np.abs(x)))
        return _where(np.signbit(x), code | 128, code).astype(np.uint8)[()]

    return bits


def saturate(dtype: DType, made: np.dtype[Any]) -> Callable[[Any], Any]:
    """A float -> the integer `dtype` as a `made`: truncated, held in its range, NaN to 0."""
    # Powers of two, hence exact in f64, unlike the highest value of a 64-bit integer.
    above, lowest = float(dtype.highest + 1), float(dtype.lowest)

    def integer(x: Any) -> Any:
        wide = np.trunc(x.astype(np.float64))
        inside = (wide >= lowest) & (wide < above)
        result = _where(inside, wide, 0.0).astype(made)
        result = _where(wide >= above, made.type(dtype.highest), result)
        return _where(wide < lowest, made.type(dtype.lowest), result)[()]

    return integer
