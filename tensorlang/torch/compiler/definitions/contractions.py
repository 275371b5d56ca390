"""Matrix products, where they are computed inside a region rather than by a library."""

from typing import Any

from tensorlang.ir.expr import Expr, cast
from tensorlang.reductions import sum
from tensorlang.torch.compiler.building import Builder, Operand, Rule, constant, wide
from tensorlang.torch.compiler.nodes import Node, aten, dtype_of, tensor_of
from tensorlang.torch.compiler.values import Index, NoDefinitionError, Value


def _product(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    """out[..., i, j] = sum(x[..., i, k] * y[..., k, j], over=k), accumulated in f32"""
    p, q, dtype = b.value(x), b.value(y), dtype_of(node)
    if dtype is None or not dtype.is_float:
        raise NoDefinitionError(f"products of {tensor_of(node).dtype} are torch's own")
    inner, domain = wide(dtype), b.domain([p.shape[-1]])
    (k,) = domain

    def body(i: Index) -> Expr:
        left = cast(inner, p.at((*i[:-1], k)))
        return sum(left * cast(inner, q.at((*i[:-2], k, i[-1]))), over=domain)

    shape = (*p.shape[:-1], q.shape[-1])
    return b.make("product", shape, inner, body)


def _rounded(b: Builder, node: Node, made: Value) -> Value:
    dtype = dtype_of(node)
    assert dtype is not None
    if made.dtype is dtype:
        return made
    return b.define(node, lambda i: cast(dtype, made.at(i)))


def _mm(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    return _rounded(b, node, _product(b, node, x, y))


def _addmm(
    b: Builder,
    node: Node,
    bias: Operand,
    x: Operand,
    y: Operand,
    *,
    beta: Any = 1,
    alpha: Any = 1,
) -> Value:
    made, addend = _product(b, node, x, y), b.value(bias)
    scale, share = (constant(made.dtype, b.number(n)) for n in (alpha, beta))
    dtype = dtype_of(node)
    assert dtype is not None

    def body(i: Index) -> Expr:
        product = made.at(i) if alpha == 1 else scale * made.at(i)
        if beta == 0:
            return cast(dtype, product)
        term = cast(made.dtype, addend.broadcast(i))
        return cast(dtype, product + (term if beta == 1 else share * term))

    return b.define(node, body)


RULES: dict[Any, Rule] = {
    aten.mm.default: _mm,
    aten.bmm.default: _mm,
    aten.addmm.default: _addmm,
    aten.baddbmm.default: _addmm,
}
