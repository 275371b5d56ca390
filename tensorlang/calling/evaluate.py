"""Expressions over sizes and params as numbers: what a call knows before anything runs."""

from collections.abc import Mapping
from typing import Any

from tensorlang.backends import numerics
from tensorlang.errors import InternalError
from tensorlang.ir.conversion import convert
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.types import DType, Kind, Scalar
from tensorlang.ir.walk import fold


def evaluate(
    e: Expr, names: Mapping[str, Scalar], memo: dict[Expr, Scalar] | None = None
) -> Scalar:
    """The value of `e`, which reads no array: exact for index, with the dtype's rounding else.

    Args: names: the values of the names in `e`; memo: values already known under these names.
    """

    def step(e: Expr, operands: list[Scalar]) -> Scalar:
        return _value(e, operands, names)

    return fold(e, step, memo)


def _value(e: Expr, operands: list[Scalar], names: Mapping[str, Scalar]) -> Scalar:
    match e:
        case Const():
            return e.value
        case Name():
            return names[e.name]
        case Select():
            return operands[1] if operands[0] else operands[2]
        case Promise():
            return operands[0]
        case Cast():
            return _cast(e.a.dtype, e.dtype, operands[0])
        case Unary() | Binary() | Compare() | Call():
            return _operation(e, operands)
        case _:
            raise InternalError(f"{e!r} has no value before a program runs")


def _is_exact(dtype: DType) -> bool:
    return dtype.kind is Kind.INDEX


def _cast(source: DType, target: DType, value: Scalar) -> Scalar:
    if _is_exact(source) or _is_exact(target):
        return convert(value, target)
    with numerics.quiet():
        return numerics.cast(source, target)(numerics.constant(value, source)).item()


def _operation(e: Unary | Binary | Compare | Call, operands: list[Scalar]) -> Scalar:
    source = e.children[0].dtype
    if not _is_exact(source):
        with numerics.quiet():
            carried = (
                numerics.constant(value, child.dtype)
                for value, child in zip(operands, e.children, strict=True)
            )
            return _carried_operation(e, source)(*carried).item()
    exact: list[Any] = operands
    match e:
        case Unary():
            return -exact[0] if e.op == "neg" else ~exact[0]
        case Binary():
            return numerics.EXACT[e.op](exact[0], exact[1])
        case Compare():
            return numerics.comparison(e.op)(*exact)
        case Call():
            # The only function of an index that stays one; others take floats or i64.
            return abs(exact[0])


def _carried_operation(e: Unary | Binary | Compare | Call, source: DType) -> numerics.Operation:
    match e:
        case Unary():
            return numerics.unary(e.op, source)
        case Binary():
            return numerics.binary(e.op, source)
        case Compare():
            return numerics.comparison(e.op)
        case Call():
            return numerics.function(e.function, source)
