"""What a dtype makes of a Python number: Cast of a literal, on every backend."""

import math

from tensorlang.ir.types import DType, Kind, Scalar, float_of


def convert(value: Scalar, dtype: DType) -> Scalar:
    """What Cast makes of a value: float to integer truncates and saturates, NaN to 0."""
    if isinstance(value, float) and not (dtype.is_float or dtype.is_bool):
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return dtype.highest if value > 0 else dtype.lowest
        return min(max(int(value), dtype.lowest), dtype.highest)
    return _held(value, dtype)


def _held(value: Scalar, dtype: DType) -> Scalar:
    if dtype.is_bool:
        return bool(value)
    if dtype.is_float:
        return float_of(value, dtype)
    return wrap(int(value), dtype)


def wrap(value: int, dtype: DType) -> int:
    """`value` modulo 2^bits, in the range of an integer dtype; an index is left as it is."""
    if dtype.kind is Kind.INDEX:
        return value
    value &= (1 << dtype.bits) - 1
    return value - (1 << dtype.bits) if value > dtype.highest else value
