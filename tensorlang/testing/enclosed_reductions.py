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
    if op in ("min", "max") or (dtype.is_bool and op in ("and", "or")):
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


def _everywhere(start: Enclosure) -> Along:
    """Every element gets a term of its own: the start."""
    shape = np.shape(start.low)
    return Along(tuple(slice(None) for _ in shape), (len(shape),), (*shape, 1))


def _last_axis(x: Any) -> Any:
    return None if x is None else np.asarray(x)[..., None]


class _Odd:
    """Which elements have a term that is, or may be, NaN, zero, inf or -inf."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.masks: dict[str, Any] = {}
        self.shape = shape

    def __getitem__(self, name: str) -> Any:
        return self.masks.get(name, np.zeros(self.shape, bool))

    def add(self, places: Places, terms: Enclosure) -> None:
        """Note what is odd among some terms."""
        low, high = terms.low, terms.high
        for name, mask in (
            ("nan", terms.is_certain_nan),
            ("free", terms.is_free),
            ("zero", (low == 0) & (high == 0)),
            ("zero?", (low <= 0) & (high >= 0)),
            ("inf", low == np.inf),
            ("inf?", high == np.inf),
            ("-inf", high == -np.inf),
            ("-inf?", low == -np.inf),
        ):
            if np.any(mask):
                held = self.masks.setdefault(name, np.zeros(self.shape, bool))
                places.fold(np.logical_or, held, mask)


def _with_nan(result: Enclosure, nan: Any, free: Any, dtype: DType) -> Enclosure:
    """The result where it is neither certainly NaN nor free."""
    low, high = (where(nan, np.nan, end).astype(end.dtype) for end in (result.low, result.high))
    loose = None if result.loose is None else result.loose & ~nan
    return free_where(Enclosure(low, high, loose), free & ~nan, dtype)


class _Sum:
    """A sum of floats: its low end, width and magnitude in f64, and the number of terms."""

    def __init__(self, dtype: DType, start: Enclosure, *, imprecise: bool) -> None:
        shape = np.shape(start.low)
        self.dtype, self.imprecise = dtype, imprecise
        self.low, self.width = np.zeros(shape), np.zeros(shape)
        self.magnitude, self.count = np.zeros(shape), np.zeros(shape, np.int64)
        self.whole, self.loose = np.ones(shape, bool), np.zeros(shape, bool)
        self.odd = _Odd(shape)
        terms = Enclosure(*(_last_axis(x) for x in start))
        self.add(_everywhere(start), terms, terms.low != 0)

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        """Add the finite ends; what is not finite is noted."""
        self.odd.add(places, terms)
        places.fold(np.add, self.count, counted)
        low = where(np.isfinite(terms.low), terms.low, 0)
        size, whole = np.abs(low), low == np.rint(low)
        if not terms.is_point:
            high = where(np.isfinite(terms.high), terms.high, 0)
            size = np.maximum(size, np.abs(high))
            whole &= low == high
            places.fold(np.add, self.width, high.astype(np.float64) - low)
        places.fold(np.add, self.low, low)
        places.fold(np.add, self.magnitude, size)
        places.fold(np.logical_and, self.whole, whole)
        if terms.loose is not None:
            places.fold(np.logical_or, self.loose, terms.loose)

    def result(self) -> Enclosure:
        dtype, odd, error = self.dtype, self.odd, self._error()
        low, high = self.low - error, self.low + self.width + error
        low = where(odd["inf"], np.inf, where(odd["-inf?"], -np.inf, low))
        high = where(odd["-inf"], -np.inf, where(odd["inf?"], np.inf, high))
        rounded = rounder(dtype)
        result = enclosed(rounded(low), rounded(high), self.loose, dtype)
        overflows = self.magnitude + error > dtype.largest
        free = overflows | odd["free"] | (odd["inf?"] & odd["-inf?"])
        return _with_nan(result, odd["nan"] | (odd["inf"] & odd["-inf"]), free, dtype)

    def _error(self) -> Any:
        mantissa = self.dtype.mantissa
        unit = 2.0 ** -(mantissa + 1)
        smallest = 2.0 ** (lowest_exponent(self.dtype) - mantissa)
        error = 2 * self.count * (unit * self.magnitude + smallest)
        # Nothing is rounded: neither whole numbers that are small enough, nor a lone term.
        exact = self.whole & (self.magnitude <= 2.0 ** (mantissa + 1)) & (not self.imprecise)
        error = where(exact | (self.count <= 1), 0.0, error)
        if self.imprecise:
            error = error + np.minimum(self.count, 128) * 2.0**-13 * self.magnitude
        return error


class _Product:
    """A product of floats: its value in f64, the relative error of the terms, and its range.

    Another order may overflow or underflow on the way, which is then free.
    """

    def __init__(self, dtype: DType, start: Enclosure) -> None:
        shape = np.shape(start.low)
        self.dtype = dtype
        self.value, self.relative = np.ones(shape), np.zeros(shape)
        self.growth, self.shrinking = np.zeros(shape), np.zeros(shape)
        self.count, self.unknown = np.zeros(shape, np.int64), np.zeros(shape, bool)
        self.odd = _Odd(shape)
        terms = Enclosure(*(_last_axis(x) for x in start))
        self.add(_everywhere(start), terms, terms.low != 1)

    def add(self, places: Places, terms: Enclosure, counted: Any) -> None:
        """Multiply what is finite and not zero; the rest is noted."""
        self.odd.add(places, terms)
        low, high = np.asarray(terms.low, np.float64), np.asarray(terms.high, np.float64)
        places.fold(np.multiply, self.value, low)
        places.fold(np.add, self.count, counted)
        plain = np.isfinite(low) & np.isfinite(high) & (low * high > 0)
        ends = where(plain, np.abs(low), 1.0), where(plain, np.abs(high), 1.0)
        size = np.minimum(*ends)
        places.fold(np.add, self.growth, np.maximum(np.log2(np.maximum(*ends)), 0.0))
        places.fold(np.add, self.shrinking, np.maximum(-np.log2(size), 0.0))
        if not terms.is_point:
            known = where(plain, (high - low) / size, 0.0)
            places.fold(np.add, self.relative, known)
            places.fold(np.logical_or, self.unknown, (low != high) & ~plain & ~is_nan(low))

    def result(self) -> Enclosure:
        dtype, odd = self.dtype, self.odd
        unit = 2.0 ** -(dtype.mantissa + 1)
        relative = np.expm1(self.relative) + 2 * self.count * unit
        plain = np.isfinite(self.value) & (self.value != 0)
        error = where(plain, np.abs(self.value) * relative, 0.0)
        rounded = rounder(dtype)
        result = enclosed(rounded(self.value - error), rounded(self.value + error), None, dtype)
        strayed = self.growth >= math.log2(dtype.largest) - 1
        strayed |= self.shrinking + self.growth >= -lowest_exponent(dtype)
        infinite, may_be = odd["inf"] | odd["-inf"], odd["inf?"] | odd["-inf?"]
        free = self.unknown | odd["free"] | (strayed & (self.count > 1)) | (odd["zero?"] & may_be)
        return _with_nan(result, odd["nan"] | (odd["zero"] & infinite), free, dtype)
