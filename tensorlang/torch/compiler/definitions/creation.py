"""Tensors made of nothing: constants and counts.  Each region that reads one makes its own."""

from typing import Any

from tensorlang.ir.expr import Expr, cast
from tensorlang.ir.types import f64
from tensorlang.torch.compiler.building import Builder, Operand, Rule, constant
from tensorlang.torch.compiler.extents import shape_exprs
from tensorlang.torch.compiler.nodes import Node, aten, dtype_of, prims, tensor_of
from tensorlang.torch.compiler.values import Index, NoDefinitionError, Value


def _filled(b: Builder, node: Node, number: Any) -> Value:
    """The number at every index, with no Func."""
    dtype = dtype_of(node)
    if dtype is None:
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} have no dtype here")
    value = b.number(number)
    element = cast(dtype, value) if isinstance(value, Expr) else constant(dtype, value)
    return Value(shape_exprs(tensor_of(node).shape), dtype, lambda _: element)


def _full(b: Builder, node: Node, size: Any, fill_value: Operand, **_: Any) -> Value:
    return _filled(b, node, fill_value)


def _scalar(b: Builder, node: Node, s: Operand, **_: Any) -> Value:
    return _filled(b, node, s)


def _zeros(b: Builder, node: Node, *_: Any, **__: Any) -> Value:
    return _filled(b, node, 0)


def _ones(b: Builder, node: Node, *_: Any, **__: Any) -> Value:
    return _filled(b, node, 1)


def _arange(b: Builder, node: Node, start: Any, end: Any, step: Any = 1, **_: Any) -> Value:
    return _counted(b, node, start, step)


def _iota(b: Builder, node: Node, length: Any, *, start: Any, step: Any, **_: Any) -> Value:
    return _counted(b, node, start, step)


def _counted(b: Builder, node: Node, start: Any, step: Any) -> Value:
    """start + i * step"""
    dtype = dtype_of(node)
    if dtype is None:
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} have no dtype here")
    first, by = b.number(start), b.number(step)
    exact = f64 if dtype.is_float else dtype

    def at(i: Index) -> Expr:
        if first == 0 and by == 1:
            return cast(dtype, i[0])
        return cast(dtype, _in(exact, first) + cast(exact, i[0]) * _in(exact, by))

    return Value(shape_exprs(tensor_of(node).shape), dtype, at)


def _in(dtype: Any, number: Any) -> Expr:
    return cast(dtype, number) if isinstance(number, Expr) else constant(dtype, number)


RULES: dict[Any, Rule] = {
    aten.full.default: _full,
    aten.full_like.default: _full,
    aten.scalar_tensor.default: _scalar,
    aten.zeros.default: _zeros,
    aten.zeros_like.default: _zeros,
    aten.ones.default: _ones,
    aten.ones_like.default: _ones,
    aten.arange.start_step: _arange,
    aten.arange.start: _arange,
    prims.iota.default: _iota,
}
