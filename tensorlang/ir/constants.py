"""Operations on constants, exactly as the docstring of `expr` defines them."""

import math
from collections.abc import Callable

from tensorlang.ir.conversion import convert
from tensorlang.ir.expr import Binary, Call, Cast, Compare, Const, Expr, Select, Unary
from tensorlang.ir.types import DType, Kind, Scalar, bf16, f16, f32, f64, round_float

_COMPUTED = (f16, bf16, f32, f64)


def fold_constants(e: Expr) -> Expr:
    """The Const that `e` is, when its operands are Consts and its meaning is exact; else `e`."""
    if isinstance(e, Select):
        return (e.a if e.condition.value else e.b) if isinstance(e.condition, Const) else e
    values = [child.value for child in e.children if isinstance(child, Const)]
    if not values or len(values) != len(e.children):
        return e
    result = _fold(e, values)
    return e if result is None else Const(result, e.dtype)


def _fold(e: Expr, values: list[Scalar]) -> Scalar | None:
    match e:
        case Cast():
            return convert(values[0], e.dtype)
        case Unary(op="neg"):
            return -values[0]
        case Unary():
            return not values[0] if e.dtype.is_bool else ~int(values[0])
        case Compare():
            return _COMPARE[e.op](values[0], values[1])
        case Binary() if e.dtype.is_float:
            return _float_binary(e.op, float(values[0]), float(values[1]), e.dtype)
        case Binary():
            return integer_binary(e.op, int(values[0]), int(values[1]), e.dtype)
        case Call() if len(values) == 1:
            return _call(e, values[0])
        case _:
            return None


_COMPARE: dict[str, Callable[[Scalar, Scalar], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}

_INTEGER: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def integer_binary(op: str, a: int, b: int, dtype: DType) -> int | None:
    """a op b before it wraps; None where a shift has no meaning."""
    if op in _INTEGER:
        return _INTEGER[op](a, b)
    if b < 0 or dtype.kind is Kind.INDEX:
        return None
    if op == "shl":
        return a << b if b < dtype.bits else 0
    return a >> min(b, dtype.bits) if op == "shr" else None


def _float_binary(op: str, a: float, b: float, dtype: DType) -> float | None:
    if dtype not in _COMPUTED:
        return None
    result = _FLOAT[op](a, b)
    # Half types compute in f32; doubles round once to f32 without double rounding.
    return result if dtype is f64 else round_float(result, f32)


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _smaller(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else min(a, b)


def _larger(a: float, b: float) -> float:
    return math.nan if math.isnan(a) or math.isnan(b) else max(a, b)


_FLOAT: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _divide,
    "min": _smaller,
    "max": _larger,
}


def _call(e: Call, a: Scalar) -> Scalar | None:
    if isinstance(a, int):
        return abs(a) if e.function == "abs" else None
    if e.args[0].dtype not in _COMPUTED:
        return None
    match e.function:
        case "abs":
            return math.fabs(a)
        case "isnan":
            return math.isnan(a)
        case "isinf":
            return math.isinf(a)
        case "sqrt":
            return math.sqrt(a) if a >= 0 else math.nan
        case "floor" | "ceil" | "round":
            return _integral(e.function, a)
        case _:
            return None


def _integral(function: str, a: float) -> float:
    if not math.isfinite(a):
        return a
    whole = {"floor": math.floor, "ceil": math.ceil, "round": round}[function](a)
    return math.copysign(float(whole), a)
