"""Casts that can be left out, and integer data read as an index."""

import math

from tensorlang.ir.expr import Binary, Cast, Const, Expr, Promise, Select
from tensorlang.ir.ranges import fits, range_of
from tensorlang.ir.types import DType, index
from tensorlang.ir.walk import fold


def simplify_cast(e: Cast) -> Expr:
    """A cast of a cast as one where the first keeps every value; index arithmetic lifted."""
    if e.a.dtype is e.dtype:
        return e.a
    if isinstance(e.a, Cast):
        middle, source = e.a.dtype, e.a.a.dtype
        if _is_redundant(source, middle, e.dtype):
            return e.a.a if source is e.dtype else Cast(e.dtype, e.a.a)
    return _lifted(e) if e.dtype is index else e


def _is_redundant(source: DType, middle: DType, target: DType) -> bool:
    """Whether source -> middle -> target is source -> target."""
    if middle.is_bool:
        return source.is_bool
    if holds(middle, source):
        # From a float an integer is saturated, from an integer it is wrapped.
        same_rule = target.is_float or target.is_bool or middle.is_float == source.is_float
        return same_rule or holds(target, source)
    integers = source.is_integer and middle.is_integer and target.is_integer
    return integers and target is not index and target.bits <= middle.bits


def holds(wide: DType, narrow: DType) -> bool:
    """Whether `wide` represents every value of `narrow`."""
    if wide is narrow or narrow.is_bool:
        return True
    if wide.is_bool:
        return False
    if wide.is_float and narrow.is_float:
        # Subnormals: the smallest steps of the two types have to nest as well.
        return (
            wide.mantissa >= narrow.mantissa
            and wide.largest >= narrow.largest
            and _smallest_step(wide) <= _smallest_step(narrow)
            and (wide.bits > 8 or narrow.bits == 8)
        )
    if wide.is_float:
        return narrow is not index and narrow.bits - narrow.is_signed <= wide.mantissa + 1
    if narrow.is_float:
        return False
    if wide is index or narrow is index:
        # An index is stored as i64, and no index overflows it.
        return wide in (index, index.storage)
    return wide.lowest <= narrow.lowest and narrow.highest <= wide.highest


def _smallest_step(dtype: DType) -> int:
    """log2 of the smallest positive value."""
    exponent = math.frexp(dtype.largest)[1]
    return 2 - exponent + (dtype.name == "f8e4m3") - dtype.mantissa


_LIFTED = ("add", "sub", "mul", "min", "max", "floordiv", "mod")


def _lifted(e: Cast) -> Expr:
    """index(a op b) -> index(a) op index(b) for data that cannot wrap; select and promise too."""
    a = e.a
    if isinstance(a, Select):
        return Select(a.condition, Cast(index, a.a), Cast(index, a.b))
    if isinstance(a, Promise):
        return Promise(_as_index(a.a), _as_index(a.lo), _as_index(a.hi))
    if isinstance(a, Binary) and a.op in _LIFTED and a.dtype.is_integer:
        if a.op in ("min", "max") or _cannot_wrap(a):
            return Binary(a.op, _as_index(a.a), _as_index(a.b))
    return e


def _as_index(e: Expr) -> Expr:
    return Const(int(e.value), index) if isinstance(e, Const) else Cast(index, e)


def _cannot_wrap(a: Binary) -> bool:
    ranges = {child: fold(child, range_of) for child in a.children}
    exact = Binary(a.op, Cast(index, a.a), Cast(index, a.b))
    return fits(range_of(exact, [ranges[a.a], ranges[a.b]]), a.dtype)
