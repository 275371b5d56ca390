"""Enclosures: for every value, the interval of what a correct execution may compute.

A value that every execution computes in the same bits is a point.  Where rounding may differ (a
function within its ulp, a sum in another order) it is an interval [low, high] of the value's own
dtype; since rounding is monotone, `[op(lows), op(highs)]`, each rounded to nearest, encloses every
correct result.

A value is *loose* where two executions may take different ways: a comparison, floor, cast to
an integer or argmax whose operands straddle.  Both outcomes are then accepted, and the oracle caps
the share of such values.  Where nothing at all is known the value is free: a loose NaN (or the
whole range of an integer), which accepts anything.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tensorlang.backends import numerics
from tensorlang.ir.types import DType

where: Any = np.where  # whose overloads do not know Any


class Enclosure(NamedTuple):
    """Arrays that broadcast against each other; `loose` is None where nothing is."""

    low: Any
    high: Any
    loose: Any = None

    @property
    def is_point(self) -> bool:
        """Whether low and high are one array: nothing but strict operations made it."""
        return self.low is self.high and self.loose is None

    @property
    def is_open(self) -> Any:
        """Where low and high differ, or nothing is known."""
        return False if self.is_point else (self.low != self.high) & ~self.is_certain_nan

    @property
    def is_free(self) -> Any:
        """Where a float may be anything."""
        return False if self.loose is None else self.loose & is_nan(self.low)

    @property
    def is_certain_nan(self) -> Any:
        """Where a float is NaN whatever the execution."""
        nan = is_nan(self.low)
        return nan if self.loose is None else nan & ~self.loose


def point(value: Any) -> Enclosure:
    """A value that every execution computes in the same bits."""
    return Enclosure(value, value)


def is_nan(value: Any) -> Any:
    """Where a value is NaN; nowhere for integers and bools."""
    return np.isnan(value) if np.asarray(value).dtype.kind == "f" else np.False_


def either(*masks: Any) -> Any:
    """Where any of some masks holds; None and False hold nowhere."""
    found: Any = None
    for mask in masks:
        if mask is not None and mask is not False:
            found = mask if found is None else found | mask
    return found


def looseness(operands: Sequence[Enclosure]) -> Any:
    """Where any operand is loose."""
    return either(*(x.loose for x in operands))


def enclosed(low: Any, high: Any, loose: Any, dtype: DType) -> Enclosure:
    """[low, high]: a lone NaN, or an integer that wrapped on one side only, is free.

    What is loose no more, because both outcomes came to the same, is a point again.
    """
    odd = is_nan(low) != is_nan(high) if dtype.is_float else low > high
    free = odd if loose is None else odd | (loose & is_nan(low))
    if np.any(free):
        lowest, highest = anything(dtype)
        low, high = where(free, lowest, low), where(free, highest, high)
    loose = either(loose, free if np.any(free) else None)
    if loose is not None:
        loose = loose & (low != high)
        loose = loose if np.any(loose) else None
    return Enclosure(low, high, loose)


def anything(dtype: DType) -> tuple[Any, Any]:
    """The ends of what is free."""
    made: Any = numerics.carrier(dtype).type
    if dtype.is_float:
        return made(np.nan), made(np.nan)
    return (made(False), made(True)) if dtype.is_bool else (made(dtype.lowest), made(dtype.highest))


def free_where(x: Enclosure, mask: Any, dtype: DType) -> Enclosure:
    """The same, but anything where the mask holds."""
    if mask is None or not np.any(mask):
        return x
    lowest, highest = anything(dtype)
    low, high = where(mask, lowest, x.low), where(mask, highest, x.high)
    return Enclosure(low, high, either(x.loose, mask))


def hull(a: Enclosure, b: Enclosure, dtype: DType) -> Enclosure:
    """Either of two values: loose wherever they are not one."""
    low, high = np.minimum(a.low, b.low), np.maximum(a.high, b.high)
    # A NaN beside a number: minimum gives NaN for both ends, and it is anything.
    differs = (low != high) & ~(is_nan(a.low) & is_nan(b.low))
    return enclosed(low, high, either(looseness((a, b)), differs), dtype)


def choose(condition: Enclosure, a: Enclosure, b: Enclosure, dtype: DType) -> Enclosure:
    """a where the condition holds, else b, and either of them where that is not certain."""
    low, high = where(condition.low, a.low, b.low), where(condition.low, a.high, b.high)
    loose = None
    if a.loose is not None or b.loose is not None:
        no = np.False_
        loose = where(
            condition.low, no if a.loose is None else a.loose, no if b.loose is None else b.loose
        )
    if condition.is_point:
        if a.is_point and b.is_point:
            return point(low[()])
        return Enclosure(low[()], high[()], loose)
    unsure = condition.low != condition.high
    both = hull(a, b, dtype)
    low, high = where(unsure, both.low, low), where(unsure, both.high, high)
    both_loose = np.False_ if both.loose is None else both.loose
    chosen_loose = np.False_ if loose is None else loose
    return Enclosure(low, high, where(unsure, both_loose, chosen_loose))


def monotone(
    operation: Callable[..., Any], operands: Sequence[Enclosure], dtype: DType, signs: str = "+++"
) -> Enclosure:
    """An operation that grows ('+') or falls ('-') with each of its operands."""
    if all(x.is_point for x in operands):
        return point(operation(*[x.low for x in operands]))
    pairs = list(zip(operands, signs, strict=False))
    low = operation(*[x.low if sign == "+" else x.high for x, sign in pairs])
    high = operation(*[x.high if sign == "+" else x.low for x, sign in pairs])
    return enclosed(low, high, looseness(operands), dtype)


def at_corners(
    operation: Callable[..., Any], a: Enclosure, b: Enclosure, dtype: DType
) -> Enclosure:
    """An operation that is monotone in each operand, one way or the other."""
    if a.is_point and b.is_point:
        return point(operation(a.low, b.low))
    corners = [operation(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    low, high, undefined, defined = corners[0], corners[0], is_nan(corners[0]), None
    defined = ~undefined
    for corner in corners[1:]:
        low, high = np.minimum(low, corner), np.maximum(high, corner)
        undefined, defined = undefined | is_nan(corner), defined | ~is_nan(corner)
    result = enclosed(low, high, looseness((a, b)), dtype)
    return free_where(result, undefined & defined, dtype)


def spans_zero(x: Enclosure) -> Any:
    """Where an interval of more than one value contains 0."""
    return (x.low <= 0) & (x.high >= 0) & (x.low < x.high)


def as_f64(x: Enclosure) -> Enclosure:
    """The same numbers in f64."""
    if x.is_point:
        return point(np.asarray(x.low, np.float64))
    return Enclosure(np.asarray(x.low, np.float64), np.asarray(x.high, np.float64), x.loose)
