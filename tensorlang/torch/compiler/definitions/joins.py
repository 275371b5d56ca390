"""Tensors put together of others by where an index lies: cat, pad, flip, scattered slices."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorlang.ir.expr import Const, Expr, cast
from tensorlang.ir.functions import select
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import bool_
from tensorlang.torch.compiler.building import Builder, Operand, Rule, constant
from tensorlang.torch.compiler.extents import expr_of, is_one, shape_exprs
from tensorlang.torch.compiler.nodes import Node, aten, dtype_of, tensor_of
from tensorlang.torch.compiler.values import ZERO, Index, NoDefinitionError, Value


def choose(condition: Any, inside: Callable[[], Expr], outside: Expr) -> Expr:
    """select(condition, inside(), outside); one of them alone where the condition is a constant.

    An element that is never chosen may lie outside its tensor.
    """
    known = simplify(condition)
    if isinstance(known, Const):
        return inside() if known.value else outside
    return select(condition, inside(), outside)


def _cat(b: Builder, node: Node, tensors: Sequence[Operand], dim: int = 0) -> Value:
    """out[i] = first[i] where i < n0, second[i - n0] where i < n0 + n1, ..."""
    rank = len(tensor_of(node).shape)
    result = dtype_of(node)
    # torch still takes the empty tensor of one dimension for nothing at all.
    parts = [t for t in tensors if len(tensor_of(t).shape) == rank]
    values = [b.value(t) for t in parts]
    d = dim % rank
    if result is None:
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} have no dtype here")
    dtype = result

    def body(i: Index) -> Expr:
        ends: list[Any] = [0]
        for t in parts:
            ends.append(ends[-1] + tensor_of(t).shape[d])

        def part(number: int) -> Expr:
            moved = i[d] - expr_of(ends[number])
            return cast(dtype, values[number].at((*i[:d], moved, *i[d + 1 :])))

        made = part(len(values) - 1)
        for number in reversed(range(len(values) - 1)):
            made = choose(i[d] < expr_of(ends[number + 1]), partial(part, number), made)
        return made

    return b.define(node, body)


def _pad(b: Builder, node: Node, x: Operand, pad: Sequence[Any], value: Operand = 0) -> Value:
    """A border of one value; a negative width cuts off."""
    source = b.value(x)
    rank = len(source.shape)
    widths = b.extents(pad)
    before: list[Expr] = [ZERO] * rank
    for k in range(len(widths) // 2):
        before[rank - 1 - k] = expr_of(widths[2 * k])
    outside = constant(source.dtype, b.number(value))

    def body(i: Index) -> Expr:
        moved = tuple(p - w for p, w in zip(i, before, strict=True))
        inside: Any = Const(True, bool_)
        for d in range(rank):
            if before[d] is not ZERO or not _is_same(node, x, d):
                inside = inside & (moved[d] >= 0) & (moved[d] < source.shape[d])
        return choose(inside, lambda: source.at(moved), outside)

    return b.define(node, body)


def _is_same(node: Node, x: Operand, d: int) -> bool:
    return shape_exprs(tensor_of(node).shape)[d] is shape_exprs(tensor_of(x).shape)[d]


def _flip(b: Builder, node: Node, x: Operand, dims: Sequence[int]) -> Value:
    value = b.value(x)
    # A number has no dimension, though torch lets it be flipped.
    flipped = {d % len(value.shape) for d in dims if value.shape}

    def body(i: Index) -> Expr:
        pairs = enumerate(zip(i, value.shape, strict=True))
        return value.at(tuple(n - 1 - p if d in flipped else p for d, (p, n) in pairs))

    return b.define(node, body)


def _repeat(b: Builder, node: Node, x: Operand, repeats: Sequence[Any]) -> Value:
    value = b.value(x)

    def body(i: Index) -> Expr:
        own = i[len(i) - len(value.shape) :]
        pairs = zip(own, value.shape, strict=True)
        return value.at(tuple(ZERO if is_one(n) else p % n for p, n in pairs))

    return b.define(node, body)


def _select_scatter(
    b: Builder, node: Node, x: Operand, src: Operand, dim: int, index: int
) -> Value:
    """x with one slice replaced."""
    value, other = b.value(x), b.value(src)
    d = dim % len(value.shape)
    at = expr_of(index) if index >= 0 else value.shape[d] + index

    def body(i: Index) -> Expr:
        def new() -> Expr:
            return cast(value.dtype, other.at((*i[:d], *i[d + 1 :])))

        return choose(_equal(i[d], at), new, value.at(i))

    return b.define(node, body)


def _slice_scatter(
    b: Builder,
    node: Node,
    x: Operand,
    src: Operand,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Value:
    """x with a run of slices replaced."""
    value, other = b.value(x), b.value(src)
    d = dim % len(value.shape)
    if not all(n is None or isinstance(n, int) for n in (start, end, step)):
        raise NoDefinitionError("where its slice begins is known only when it runs")
    extent = value.shape[d]
    first = expr_of(start or 0) if (start or 0) >= 0 else extent + start

    def body(i: Index) -> Expr:
        moved = i[d] - first
        number = moved // step if step > 1 else moved
        inside = (moved >= 0) & (number < other.shape[d])
        if step > 1:
            inside = inside & _equal(moved % step, ZERO)

        def new() -> Expr:
            return cast(value.dtype, other.at((*i[:d], number, *i[d + 1 :])))

        return choose(inside, new, value.at(i))

    return b.define(node, body)


def _equal(a: Expr, b: Expr) -> Any:
    return (a >= b) & (a <= b)


RULES: dict[Any, Rule] = {
    aten.cat.default: _cat,
    aten.constant_pad_nd.default: _pad,
    aten.flip.default: _flip,
    aten.repeat.default: _repeat,
    aten.select_scatter.default: _select_scatter,
    aten.slice_scatter.default: _slice_scatter,
}
