"""What an expression is worth: the docstring of ir/expr.py as a program, one node at a time."""

import math
from collections.abc import Mapping
from zlib import crc32

from tensorlang.ir.conversion import convert, wrap
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.types import DType, Scalar, round_float
from tensorlang.ir.walk import fold

Environment = Mapping[str, Scalar]


class BrokenPromiseError(Exception):
    """A Promise does not hold in this environment."""


def value_of(root: Expr, names: Environment) -> Scalar:
    """The value of `root`; a Load gives a value that depends on its buffer and indices alone."""
    return fold(root, lambda e, operands: _value(e, operands, names))


def _value(e: Expr, operands: list[Scalar], names: Environment) -> Scalar:
    match e:
        case Const():
            return e.value
        case Name():
            return names[e.name]
        case Unary(op="neg"):
            return _held(-operands[0], e.dtype)
        case Unary(op="not"):
            return not operands[0] if e.dtype.is_bool else _held(~operands[0], e.dtype)
        case Binary():
            return _held(_binary(e.op, *operands, e.dtype), e.dtype)
        case Compare():
            a, b = operands
            return {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[e.op]
        case Select():
            return operands[1] if operands[0] else operands[2]
        case Cast():
            return convert(operands[0], e.dtype)
        case Call(function="abs"):
            return _held(abs(operands[0]), e.dtype)
        case Load():
            return _element(e, operands)
        case Promise():
            if not operands[1] <= operands[0] <= operands[2]:
                raise BrokenPromiseError
            return operands[0]
    raise AssertionError(f"no meaning for {e!r}")


def _held(value: Scalar, dtype: DType) -> Scalar:
    if dtype.is_bool:
        return bool(value)
    return round_float(value, dtype) if dtype.is_float else wrap(value, dtype)


def _element(e: Load, indices: list[Scalar]) -> Scalar:
    mixed = crc32(repr((e.buffer, indices)).encode())
    return convert(float(mixed % 7) - 3, e.dtype) if e.dtype.is_float else wrap(mixed, e.dtype)


def _binary(op: str, a: Scalar, b: Scalar, dtype: DType) -> Scalar:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div":
            return _divide(a, b)
        case "floordiv":
            return a // b if b else 0
        case "mod":
            return a % b if b else 0
        case "min" | "max":
            if dtype.is_float and (math.isnan(a) or math.isnan(b)):
                return math.nan
            return min(a, b) if op == "min" else max(a, b)
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return a << b if 0 <= b < dtype.bits else 0
        case "shr":
            return a >> min(b, dtype.bits) if b >= 0 else 0
    raise AssertionError(op)


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def same(a: Scalar, b: Scalar) -> bool:
    """Equal as bits, but for the payload of NaN."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
    return type(a) is type(b) and a == b
