"""The meaning of every operation of ir/expr.py and ir/functions.py, in NumPy.

Each name of a table becomes a Python function of NumPy scalars and arrays alike.  Values are
*carried* as `carrier(dtype)`: integers and f16, f32, f64 as themselves, index as int64, and bf16,
tf32 and f8 as float32s that are values of that dtype.  Arrays *store* `storage(dtype)`: `unpack`
turns what is stored into what is carried, and `pack` back.

Inexact results of f16, bf16, tf32 and f8 are computed in f32 and rounded to nearest even (f8
saturates), so that f16's fma rounds twice, as it does on every machine.  Functions that are not
strict are computed in f64 and rounded, or by NumPy where the dtype is f64.

Overflow, division by zero and NaN are values here, not warnings: call these under `quiet()`.
"""

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tensorlang.backends.fma import fma_f32, fma_f64
from tensorlang.backends.philox import random_uniform
from tensorlang.backends.rounding import NARROW, decode, encode, rounder, saturate
from tensorlang.ir.types import DType, Scalar, bf16, f32, f64

Operation: TypeAlias = Callable[..., Any]
Unary: TypeAlias = Callable[[Any], Any]
Exact: TypeAlias = Callable[[int, int], int]

_python: Any = operator  # of whose types its stubs say nothing

_STORED = {
    "bool": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f8e4m3": np.uint8, "f8e5m2": np.uint8, "f16": np.float16, "bf16": np.uint16,
    "tf32": np.float32, "f32": np.float32, "f64": np.float64, "index": np.int64,
}  # fmt: skip


def quiet() -> Any:
    """A context in which NumPy does not warn of overflow, division by zero or NaN."""
    return np.errstate(all="ignore")


def storage(dtype: DType) -> np.dtype[Any]:
    """The element type of arrays of `dtype`: bits for bf16 and f8."""
    return np.dtype(_STORED[dtype.name])


def carrier(dtype: DType) -> np.dtype[Any]:
    """The NumPy type in which values of `dtype` are computed."""
    return np.dtype(np.float32) if dtype.name in NARROW else storage(dtype)


def constant(value: Scalar, dtype: DType) -> Any:
    """A Const's value as it is carried."""
    return carrier(dtype).type(value)


def _same(a: Any) -> Any:
    return a


def _is_bits(dtype: DType) -> bool:
    return dtype is bf16 or (dtype.is_float and dtype.bits == 8)


def unpack(dtype: DType) -> Unary:
    """What is stored -> what is carried."""
    return decode(dtype) if _is_bits(dtype) else _same


def pack(dtype: DType) -> Unary:
    """What is carried -> what is stored."""
    return encode(dtype) if _is_bits(dtype) else _same


_ARITHMETIC: dict[str, Operation] = {
    "add": _python.add,
    "sub": _python.sub,
    "mul": _python.mul,
    "div": _python.truediv,
    # NumPy floors, gives 0 for a // 0 and a % 0, 0 for a shift beyond the width, and wraps.
    "floordiv": _python.floordiv,
    "mod": _python.mod,
    "shl": _python.lshift,
    "shr": _python.rshift,
    "and": _python.and_,
    "or": _python.or_,
    "xor": _python.xor,
    # These propagate NaN.
    "min": np.minimum,
    "max": np.maximum,
}
_ROUNDED = ("add", "sub", "mul", "div")

_COMPARISONS: dict[str, Operation] = {
    "lt": _python.lt,
    "le": _python.le,
    "eq": _python.eq,
    "ne": _python.ne,
}

# The same for index as exact Python ints.
EXACT: dict[str, Exact] = {
    "add": _python.add,
    "sub": _python.sub,
    "mul": _python.mul,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "shl": lambda a, b: a << b if 0 <= b < 64 else 0,
    "shr": lambda a, b: a >> (b if 0 <= b < 64 else 64),
    "and": _python.and_,
    "or": _python.or_,
    "xor": _python.xor,
    "min": min,
    "max": max,
}


@lru_cache
def unary(op: str, dtype: DType) -> Unary:
    """Unary(op) of `dtype`."""
    if op == "neg":
        return _python.neg
    return np.logical_not if dtype.is_bool else _python.invert


@lru_cache
def binary(op: str, dtype: DType) -> Operation:
    """Binary(op) of two values of `dtype`."""
    operation = _ARITHMETIC[op]
    if dtype.name in NARROW and op in _ROUNDED:
        return _then(operation, rounder(dtype))
    return operation


def comparison(op: str) -> Operation:
    """Compare(op): false of NaN, but for `ne`."""
    return _COMPARISONS[op]


def _then(operation: Operation, rounding: Unary) -> Operation:
    return lambda *operands: rounding(operation(*operands))


@lru_cache
def cast(source: DType, target: DType) -> Unary:
    """Cast from `source` to `target`, rounding once."""
    if source is target:
        return _same
    if target.is_bool:
        return lambda a: a != 0
    if target.is_float:
        return rounder(target)
    made = carrier(target)
    if source.is_float:
        return saturate(target, made)
    return lambda a: a.astype(made)


_each_erf: Any = np.frompyfunc(math.erf, 1, 1)


def _erf(a: Any) -> Any:
    return np.asarray(_each_erf(a), np.float64)[()]


def _rsqrt(a: Any) -> Any:
    return 1.0 / np.sqrt(a)


def _sigmoid(a: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-a))


# Computed in f64 and rounded.
_ACCURATE: dict[str, Unary | np.ufunc] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": _erf,
    "sigmoid": _sigmoid,
    "pow": np.power,
    # The approximate forms may be as good as they like.
    "approx.tanh": np.tanh,
    "approx.exp2": np.exp2,
    "approx.erf": _erf,
    "approx.rcp": np.reciprocal,
}
_EXACT: dict[str, Unary] = {
    "abs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "isnan": np.isnan,
    "isinf": np.isinf,
}


@lru_cache
def function(name: str, dtype: DType) -> Operation:
    """FUNCTIONS[name] of arguments of `dtype`."""
    if name in _EXACT:
        return _EXACT[name]
    if name == "random_uniform":
        return random_uniform
    if name in _ACCURATE:
        return _in_f64(_ACCURATE[name], rounder(dtype))
    if name == "sqrt":
        # f32's root has enough bits that rounding it again is harmless.
        return _then(np.sqrt, rounder(dtype)) if dtype.name in NARROW else np.sqrt
    if name == "fma":
        return _fused(dtype)
    raise KeyError(name)


def _in_f64(operation: Operation, rounding: Unary) -> Operation:
    return lambda *args: rounding(operation(*(a.astype(np.float64) for a in args)))


def _fused(dtype: DType) -> Operation:
    if dtype is f64:
        return fma_f64
    return fma_f32 if dtype is f32 else _then(fma_f32, rounder(dtype))
