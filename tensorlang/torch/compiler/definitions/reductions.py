"""Reductions and scans along dimensions.  Sums of narrow floats are accumulated in f32."""

from collections.abc import Callable, Sequence
from typing import Any

from tensorlang import arrays
from tensorlang.ir.expr import Const, Expr, cast
from tensorlang.ir.functions import maximum
from tensorlang.ir.types import DType, bool_, i64, index
from tensorlang.reductions import all as every
from tensorlang.reductions import any as some
from tensorlang.reductions import argmax, argmin, cumsum, max, min, prod, sum
from tensorlang.torch.compiler.building import Builder, Made, Operand, Rule, constant, wide
from tensorlang.torch.compiler.extents import is_one
from tensorlang.torch.compiler.nodes import Node, aten, dtype_of, meta_of, tensor_of
from tensorlang.torch.compiler.values import ZERO, Index, NoDefinitionError, Value
from tensorlang.torch.libraries import torch

Term = Callable[[Expr], Expr]
Reduce = Callable[..., Expr]


def reduced(
    b: Builder,
    name: str,
    value: Value,
    dims: Sequence[int],
    keepdim: bool,
    op: Reduce,
    term: Term,
    dtype: DType,
) -> Value:
    """name[i] = op(term(value[i, r]), over=r), of that dtype

    The reduction stands alone: what is then done to its result is a Func of its own.
    """
    rank = len(value.shape)
    over = sorted(d % rank for d in dims if rank)
    shape = tuple(
        _one() if d in over else n for d, n in enumerate(value.shape) if keepdim or d not in over
    )
    if not over:
        return b.make(name, shape, dtype, lambda i: cast(dtype, term(value.at(i))))
    domain = b.domain([value.shape[d] for d in over])
    variables = dict(zip(over, domain, strict=True))

    def body(i: Index) -> Expr:
        kept = iter(i)
        at: list[Any] = []
        for d in range(rank):
            own = next(kept) if keepdim or d not in variables else ZERO
            at.append(variables.get(d, own))
        return op(term(value.at(tuple(at))), over=domain)

    return b.make(name, shape, dtype, body)


def _one() -> Expr:
    """The extent of a dimension that was reduced and kept."""
    return Const(1, index)


def _dims(value: Value, dim: Any) -> list[int]:
    """The dimensions that are meant; none named means all."""
    if isinstance(dim, int):
        return [dim]
    return list(dim or range(len(value.shape)))


def _finished(b: Builder, node: Node, made: Value) -> Value:
    """The accumulated value in the dtype of the result."""
    dtype = dtype_of(node)
    assert dtype is not None
    if made.dtype is dtype:
        return made
    return b.make("rounded", made.shape, dtype, lambda i: cast(dtype, made.at(i)))


def _sum(
    b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value:
    return _folded(b, node, x, dim, keepdim, sum)


def _prod(
    b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value:
    return _folded(b, node, x, dim, keepdim, prod)


def _folded(b: Builder, node: Node, x: Operand, dim: Any, keepdim: bool, op: Reduce) -> Value:
    value, result = b.value(x), dtype_of(node)
    if result is None:
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} have no dtype here")
    inner = wide(result)
    made = reduced(
        *(b, "sum" if op is sum else "prod", value, _dims(value, dim), keepdim, op),
        lambda e: cast(inner, e),
        inner,
    )
    return _finished(b, node, made)


def _count(value: Value, dims: Sequence[int], dtype: DType) -> Expr:
    """How many elements are reduced to one."""
    n: Expr = _one()
    for d in dims if value.shape else ():
        n = n * value.shape[d]
    return cast(dtype, n)


def _mean(
    b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value:
    value, result = b.value(x), dtype_of(node)
    if result is None:
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} have no dtype here")
    dims, inner = _dims(value, dim), wide(result)
    total = reduced(b, "sum", value, dims, keepdim, sum, lambda e: cast(inner, e), inner)
    n = _count(value, dims, inner)
    return b.make("mean", total.shape, result, lambda i: cast(result, total.at(i) / n))


def _extreme(op: Reduce, name: str) -> Rule:
    def rule(b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False) -> Value:
        value = b.value(x)
        if value.dtype.is_bool:
            op_ = some if op is max else every
            return reduced(b, name, value, _dims(value, dim), keepdim, op_, _itself, bool_)
        return reduced(b, name, value, _dims(value, dim), keepdim, op, _itself, value.dtype)

    return rule


def _itself(e: Expr) -> Expr:
    return e


def _truth(op: Reduce, name: str) -> Rule:
    def rule(b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False) -> Value:
        if tensor_of(node).dtype is not torch.bool:
            raise NoDefinitionError("the truth of bytes is torch's own")
        value = b.value(x)

        def term(e: Expr) -> Expr:
            return e if e.dtype.is_bool else e != constant(e.dtype, 0)

        return reduced(b, name, value, _dims(value, dim), keepdim, op, term, bool_)

    return rule


def _place(op: Reduce, name: str) -> Rule:
    """argmax and argmin: along one dimension, or of all elements in row-major order."""

    def rule(b: Builder, node: Node, x: Operand, dim: Any = None, keepdim: bool = False) -> Value:
        value = b.value(x)
        if dim is None and len(value.shape) > 1:
            raise NoDefinitionError("the place in all dimensions at once is torch's own")
        if not value.shape:
            return b.define(node, lambda _: constant(i64, 0))
        return _placed(b, name, value, _dims(value, dim), keepdim, op)

    return rule


def _placed(
    b: Builder, name: str, value: Value, dims: Sequence[int], keepdim: bool, op: Reduce
) -> Value:
    def term(e: Expr) -> Expr:
        return cast(i64, e) if e.dtype.is_bool else e

    return reduced(b, name, value, dims, keepdim, op, term, i64)


def _with_place(op: Reduce, at: Reduce) -> Rule:
    """max and min along a dimension: the value, and where it stands."""

    def rule(b: Builder, node: Node, x: Operand, dim: int, keepdim: bool = False) -> Made:
        value = b.value(x)
        if not value.shape or value.dtype.is_bool:
            raise NoDefinitionError("of a number or of truths it is torch's own")
        best = reduced(b, "best", value, [dim], keepdim, op, _itself, value.dtype)
        return best, _placed(b, "place", value, [dim], keepdim, at)

    return rule


def _variance(
    b: Builder, node: Node, x: Operand, dim: Any, correction: Any, keepdim: bool
) -> tuple[Value, Value]:
    """(variance, mean) in the dtype that is computed in: the mean first, then its distances."""
    value = b.value(x)
    if not value.dtype.is_float:
        raise NoDefinitionError("variance is of floats")
    dims, inner = _dims(value, dim), wide(value.dtype)
    total = reduced(b, "sum", value, dims, True, sum, lambda e: cast(inner, e), inner)
    n = _count(value, dims, inner)
    mean = b.make("mean", total.shape, inner, lambda i: total.at(i) / n)

    def square(i: Index) -> Expr:
        d = cast(inner, value.at(i)) - mean.broadcast(i)
        return d * d

    squares = reduced(
        *(b, "squares", Value(value.shape, inner, square), dims, keepdim, sum, _itself, inner)
    )
    by = constant(inner, 1 if correction is None else b.number(correction))
    over = sorted(d % len(value.shape) for d in dims if value.shape)

    def without(i: Index) -> Expr:
        rest = iter(i)
        whole = tuple(ZERO if d in over else next(rest) for d in range(len(value.shape)))
        return mean.at(i if keepdim else whole)

    variance = b.make("var", squares.shape, inner, lambda i: squares.at(i) / max_of(n - by, inner))
    return variance, Value(squares.shape, inner, without)


def max_of(n: Expr, dtype: DType) -> Expr:
    """The divisor of a variance is not negative."""
    return maximum(n, constant(dtype, 0))


def _var(
    b: Builder,
    node: Node,
    x: Operand,
    dim: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
) -> Value:
    variance, _ = _variance(b, node, x, dim, correction, keepdim)
    return _finished(b, node, variance)


def _var_mean(
    b: Builder,
    node: Node,
    x: Operand,
    dim: Any = None,
    *,
    correction: Any = None,
    keepdim: bool = False,
) -> Made:
    made = _variance(b, node, x, dim, correction, keepdim)
    result = arrays.dtype_of_torch(meta_of(node)[0].dtype)
    assert result is not None

    def finished(value: Value, name: str) -> Value:
        return b.make(name, value.shape, result, lambda i: cast(result, value.at(i)))

    return finished(made[0], "var"), finished(made[1], "mean")


def _cumsum(b: Builder, node: Node, x: Operand, dim: int, **_: Any) -> Value:
    """A scan along one dimension; the variable of the domain is an index on the left."""
    value, result = b.value(x), dtype_of(node)
    if result is None or not value.shape:
        raise NoDefinitionError("the running sum of a number is torch's own")
    d, inner = dim % len(value.shape), wide(result)
    if is_one(value.shape[d]):
        return b.define(node, lambda i: cast(result, value.at(i)))
    made = b.make_scan(
        "cumsum", value.shape, d, lambda i, domain: cumsum(cast(inner, value.at(i)), over=domain)
    )
    return _finished(b, node, made)


RULES: dict[Any, Rule] = {
    aten.sum.default: _sum,
    aten.sum.dim_IntList: _sum,
    aten.prod.default: _prod,
    aten.prod.dim_int: _prod,
    aten.mean.default: _mean,
    aten.mean.dim: _mean,
    aten.amax.default: _extreme(max, "amax"),
    aten.amin.default: _extreme(min, "amin"),
    aten.max.default: _extreme(max, "max"),
    aten.min.default: _extreme(min, "min"),
    aten.max.dim: _with_place(max, argmax),
    aten.min.dim: _with_place(min, argmin),
    aten.argmax.default: _place(argmax, "argmax"),
    aten.argmin.default: _place(argmin, "argmin"),
    aten.any.default: _truth(some, "any"),
    aten.any.dim: _truth(some, "any"),
    aten.any.dims: _truth(some, "any"),
    aten.all.default: _truth(every, "all"),
    aten.all.dim: _truth(every, "all"),
    aten.all.dims: _truth(every, "all"),
    aten.var.correction: _var,
    aten.var_mean.correction: _var_mean,
    aten.cumsum.default: _cumsum,
}
