"""What a reduction may come to when its terms are combined in any order.

A float sum of n terms in a dtype of unit roundoff u differs from the exact one by at most
`n*u*sum(|terms|)`; twice that is granted, which covers the fused multiply-accumulate, matrix units
that truncate, and the f64 sum that is compared with.  A sum of whole numbers that stays below
2^(mantissa + 1) is exact in every order, as is every min, max and integer reduction.  The dot of
f8 keeps 14 bits while it adds up to 128 products, and may err by 2^-13 of their size at each.
"""

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from tensorlang.backends.rounding import lowest_exponent, rounder
from tensorlang.ir.types import DType
from tensorlang.testing.enclosures import Enclosure, enclosed, free_where, is_nan, point, where

_UFUNCS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


class Places(Protocol):
    """Which elements some terms go to."""

    def fold(self, ufunc: np.ufunc, state: Any, values: Any) -> None:
        """state[place] = ufunc(state[place], value), for every term."""
        ...


@dataclass(frozen=True, slots=True)
class Along:
    """The terms along some axes go to one element; `at` are the elements of all."""

    at: tuple[slice, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]

    def fold(self, ufunc: np.ufunc, state: Any, values: Any) -> None:
        values = np.broadcast_to(values, self.shape)
        state[self.at] = ufunc(
            state[self.at], ufunc.reduce(values, axis=self.axes, dtype=state.dtype)
        )


@dataclass(frozen=True, slots=True)
class Scattered:
    """Each term goes to the element that its indices name."""

    places: tuple[Any, ...]

    def fold(self, ufunc: np.ufunc, state: Any, values: Any) -> None:
        ufunc.at(state, self.places, np.broadcast_to(values, self.places[0].shape))


class Folding(Protocol):
    """A reduction under way."""

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        """Combine some terms; what is not `counted` is the identity."""
        ...

    def result(self) -> Enclosure:
        """What every order of the terms so far may come to."""
        ...


def folding(op: str, dtype: DType, start: Enclosure, *, imprecise: bool = False) -> Folding:
    """A reduction by `op` of values of `dtype` that starts from `start`.

    Args: imprecise: a sum of products of f8.
    """
    if dtype.is_float and op == "add":
        return _Sum(dtype, start, imprecise=imprecise)
    if dtype.is_float and op == "mul":
        return _Product(dtype, start)
    if op in ("min", "max", "add") or (dtype.is_bool and op in ("and", "or")):
        return _Ends(op, dtype, start)
    return _Exact(op, dtype, start)


def _loose(start: Enclosure) -> Any:
    shape = np.shape(start.low)
    return np.zeros(shape, bool) if start.loose is None else np.array(start.loose)


class _Ends:
    """An operation that grows with its terms and is associative: both ends are reduced."""

    def __init__(self, op: str, dtype: DType, start: Enclosure) -> None:
        self.ufunc, self.dtype, self.is_point = _UFUNCS[op], dtype, start.is_point
        self.low, self.high = np.array(start.low), np.array(start.high)
        self.loose = _loose(start)

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        places.fold(self.ufunc, self.low, terms.low)
        places.fold(self.ufunc, self.high, terms.high)
        if terms.loose is not None:
            places.fold(np.logical_or, self.loose, terms.loose)
        self.is_point &= terms.is_point

    def result(self) -> Enclosure:
        if self.is_point:
            return point(self.low)
        return enclosed(self.low, self.high, self.loose, self.dtype)


class _Exact:
    """An operation whose result is known only where every term is."""

    def __init__(self, op: str, dtype: DType, start: Enclosure) -> None:
        self.ufunc, self.dtype = _UFUNCS[op], dtype
        self.value = np.array(start.low)
        self.open = np.array(np.broadcast_to(start.is_open, self.value.shape))

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        places.fold(self.ufunc, self.value, terms.low)
        if not terms.is_point:
            places.fold(np.logical_or, self.open, terms.is_open)

    def result(self) -> Enclosure:
        return free_where(point(self.value), self.open, self.dtype)


class _Sum:
    """A sum of floats: its low end, width and magnitude in f64, and the number of terms."""

    def __init__(self, dtype: DType, start: Enclosure, *, imprecise: bool) -> None:
        shape = np.shape(start.low)
        self.dtype, self.imprecise = dtype, imprecise
        self.low, self.width = np.zeros(shape), np.zeros(shape)
        self.magnitude, self.count = np.zeros(shape), np.zeros(shape, np.int64)
        self.whole, self.loose = np.ones(shape, bool), np.zeros(shape, bool)
        everywhere = Along(tuple(slice(None) for _ in shape), (len(shape),), (*shape, 1))
        self.add(everywhere, Enclosure(*(_last_axis(x) for x in start)), start.low[..., None] != 0)

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        places.fold(np.add, self.low, terms.low)
        places.fold(np.add, self.count, counted)
        size, whole = np.abs(terms.low), terms.low == np.rint(terms.low)
        if not terms.is_point:
            size = np.maximum(size, np.abs(terms.high))
            same = terms.low == terms.high
            whole &= same
            width = terms.high.astype(np.float64) - terms.low
            places.fold(np.add, self.width, where(same, 0.0, width))
        places.fold(np.add, self.magnitude, where(np.isfinite(size), size, 0))
        places.fold(np.logical_and, self.whole, whole)
        if terms.loose is not None:
            places.fold(np.logical_or, self.loose, terms.loose)

    def result(self) -> Enclosure:
        dtype = self.dtype
        unit = 2.0 ** -(dtype.mantissa + 1)
        smallest = 2.0 ** (lowest_exponent(dtype) - dtype.mantissa)
        error = 2 * self.count * (unit * self.magnitude + smallest)
        if self.imprecise:
            error = error + np.minimum(self.count, 128) * 2.0**-13 * self.magnitude
        # Nothing is rounded: neither whole numbers that are small enough, nor a lone term.
        exact = self.whole & (self.magnitude <= 2.0 ** (dtype.mantissa + 1))
        error = where((exact & (not self.imprecise)) | (self.count <= 1), 0.0, error)
        rounded = rounder(dtype)
        low, high = rounded(self.low - error), rounded(self.low + self.width + error)
        result = enclosed(low, high, self.loose, dtype)
        overflows = self.magnitude + error > dtype.largest
        return free_where(result, overflows & ~is_nan(low), dtype)


def _last_axis(x: Any) -> Any:
    return None if x is None else np.asarray(x)[..., None]


class _Product:
    """A product of floats: its value in f64, the relative error of the terms, and its range.

    Another order may overflow or underflow on the way, which is then free.
    """

    def __init__(self, dtype: DType, start: Enclosure) -> None:
        shape = np.shape(start.low)
        self.dtype = dtype
        self.value, self.relative = np.ones(shape), np.zeros(shape)
        self.growth, self.shrinking = np.zeros(shape), np.zeros(shape)
        self.count, self.free = np.zeros(shape, np.int64), np.zeros(shape, bool)
        everywhere = Along(tuple(slice(None) for _ in shape), (len(shape),), (*shape, 1))
        self.add(everywhere, Enclosure(*(_last_axis(x) for x in start)), start.low[..., None] != 1)

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        low, high = np.asarray(terms.low, np.float64), np.asarray(terms.high, np.float64)
        places.fold(np.multiply, self.value, low)
        places.fold(np.add, self.count, counted)
        size = np.minimum(np.abs(low), np.abs(high))
        # NaN, infinity and zero do the same in every order.
        plain = np.isfinite(low) & (size > 0)
        logarithm = where(plain, np.log2(where(plain, size, 1.0)), 0.0)
        places.fold(np.add, self.growth, np.maximum(logarithm, 0.0))
        places.fold(np.add, self.shrinking, np.maximum(-logarithm, 0.0))
        if terms.is_point:
            return
        width = high - low
        known = where(plain & (np.sign(low) == np.sign(high)), width / size, 0.0)
        places.fold(np.add, self.relative, known)
        unknown = (low != high) & ~(is_nan(low) & is_nan(high)) & ~(plain & (low * high > 0))
        places.fold(np.logical_or, self.free, unknown | terms.is_free)

    def result(self) -> Enclosure:
        dtype = self.dtype
        unit = 2.0 ** -(dtype.mantissa + 1)
        relative = np.expm1(self.relative) + 2 * self.count * unit
        error = where(np.isfinite(self.value), np.abs(self.value) * relative, 0.0)
        rounded = rounder(dtype)
        result = enclosed(rounded(self.value - error), rounded(self.value + error), None, dtype)
        strayed = self.growth >= math.log2(dtype.largest) - 1
        strayed |= self.shrinking + self.growth >= -lowest_exponent(dtype)
        return free_where(result, self.free | strayed & (self.count > 1), dtype)
