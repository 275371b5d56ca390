"""Views: the elements of another tensor, at other indices.  They cost nothing inside a region."""

from collections.abc import Sequence
from typing import Any

from tensorlang.ir.expr import Expr
from tensorlang.torch.compiler.building import Builder, Made, Operand, Rule
from tensorlang.torch.compiler.extents import Extent, expr_of, same, shape_exprs
from tensorlang.torch.compiler.nodes import Node, aten, meta_of, tensor_of
from tensorlang.torch.compiler.values import ZERO, Index, NoDefinitionError, Value


def _reshape(b: Builder, node: Node, x: Operand, *_: Any, **__: Any) -> Value:
    """Dimensions split and joined: only those that change are taken apart by // and %."""
    value = b.value(x)
    old, new = tensor_of(x).shape, tensor_of(node).shape
    groups = _groups(list(old), list(new))

    def at(i: Index) -> Expr:
        index: list[Expr] = []
        for froms, tos in groups:
            flat = _flat([i[d] for d in tos], [new[d] for d in tos])
            index += _apart(flat, [old[d] for d in froms])
        return value.at(tuple(index))

    return Value(shape_exprs(new), value.dtype, at)


def _groups(old: list[Extent], new: list[Extent]) -> list[tuple[list[int], list[int]]]:
    """Runs of dimensions with the same number of elements before and after, shortest first."""
    groups: list[tuple[list[int], list[int]]] = []
    start_a = start_b = 0
    while start_a < len(old) or start_b < len(new):
        end_a, end_b = _shortest(old, new, start_a, start_b)
        groups.append((list(range(start_a, end_a)), list(range(start_b, end_b))))
        start_a, start_b = end_a, end_b
    return groups


def _shortest(old: list[Extent], new: list[Extent], at_a: int, at_b: int) -> tuple[int, int]:
    products_b: list[Extent] = [1]
    for n in new[at_b:]:
        products_b.append(products_b[-1] * n)
    product: Extent = 1
    for a in range(at_a, len(old) + 1):
        if a > at_a:
            product = product * old[a - 1]
        for b, other in enumerate(products_b):
            if (a > at_a or b > 0) and same(product, other):
                return a, at_b + b
    return len(old), len(new)


def _flat(index: Sequence[Expr], extents: Sequence[Extent]) -> Expr:
    """The number of an element of a block in row-major order."""
    number: Expr | None = None
    for i, extent in zip(index, extents, strict=True):
        number = i if number is None else number * expr_of(extent) + i
    return ZERO if number is None else number


def _apart(number: Expr, extents: Sequence[Extent]) -> list[Expr]:
    """The index in a block of the element with this number."""
    index: list[Expr] = []
    for d in reversed(range(len(extents))):
        if same(extents[d], 1):
            index.append(ZERO)
            continue
        is_last = all(same(n, 1) for n in extents[:d])
        index.append(number if is_last else number % expr_of(extents[d]))
        number = number if is_last else number // expr_of(extents[d])
    return index[::-1]


def _permute(b: Builder, node: Node, x: Operand, dims: Sequence[int]) -> Value:
    value = b.value(x)
    order = [d % len(dims) for d in dims]

    def at(i: Index) -> Expr:
        source: list[Expr] = [ZERO] * len(order)
        for to, d in enumerate(order):
            source[d] = i[to]
        return value.at(tuple(source))

    return Value(tuple(value.shape[d] for d in order), value.dtype, at)


def _transpose(b: Builder, node: Node, x: Operand, dim0: int, dim1: int) -> Value:
    rank = len(b.value(x).shape)
    order = list(range(rank))
    if rank:
        p, q = dim0 % rank, dim1 % rank
        order[p], order[q] = order[q], order[p]
    return _permute(b, node, x, order)


def _t(b: Builder, node: Node, x: Operand) -> Value:
    return _permute(b, node, x, range(len(b.value(x).shape))[::-1])


def _unsqueeze(b: Builder, node: Node, x: Operand, dim: int) -> Value:
    value = b.value(x)
    d = dim % (len(value.shape) + 1)
    shape = shape_exprs(tensor_of(node).shape)
    return Value(shape, value.dtype, lambda i: value.at((*i[:d], *i[d + 1 :])))


def _squeeze(b: Builder, node: Node, x: Operand, dim: Any = None) -> Value:
    value, old = b.value(x), tensor_of(x).shape
    asked = range(len(old)) if dim is None else [dim] if isinstance(dim, int) else dim
    dropped = {d % len(old) for d in asked if same(old[d], 1)} if old else set[int]()

    def at(i: Index) -> Expr:
        rest = iter(i)
        return value.at(tuple(ZERO if d in dropped else next(rest) for d in range(len(old))))

    return Value(shape_exprs(tensor_of(node).shape), value.dtype, at)


def _expand(b: Builder, node: Node, x: Operand, size: Any, **_: Any) -> Value:
    value = b.value(x)
    shape = shape_exprs(tensor_of(node).shape)
    return Value(shape, value.dtype, value.broadcast)


def _slice(
    b: Builder,
    node: Node,
    x: Operand,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
) -> Value:
    value, old = b.value(x), tensor_of(x).shape
    d = dim % len(old)
    first = expr_of(_start(b, start, old[d]))

    def at(i: Index) -> Expr:
        moved = i[d] * step + first
        return value.at((*i[:d], moved, *i[d + 1 :]))

    return Value(shape_exprs(tensor_of(node).shape), value.dtype, at)


def _start(b: Builder, start: Any, extent: Extent) -> Extent:
    (start,) = b.extents([0 if start is None else start])
    if start < 0:
        start = start + extent
    if start < 0:
        return 0
    return min(start, extent)


def _select(b: Builder, node: Node, x: Operand, dim: int, index: Any) -> Value:
    value, old = b.value(x), tensor_of(x).shape
    d = dim % len(old)
    (at_,) = b.extents([index])
    chosen = expr_of(at_ + old[d] if at_ < 0 else at_)
    return Value(
        shape_exprs(tensor_of(node).shape),
        value.dtype,
        lambda i: value.at((*i[:d], chosen, *i[d:])),
    )


def _alias(b: Builder, node: Node, x: Operand) -> Value:
    return b.value(x)


def _split(b: Builder, node: Node, x: Operand, sizes: Any, dim: int = 0) -> Made:
    """One view for each part, one after the other along a dimension."""
    value, parts = b.value(x), meta_of(node)
    d = dim % len(value.shape)
    made: list[Value] = []
    start: Extent = 0
    for part in parts:
        made.append(_part(value, shape_exprs(part.shape), d, expr_of(start)))
        start = start + part.shape[d]
    return tuple(made)


def _part(value: Value, shape: tuple[Expr, ...], d: int, first: Expr) -> Value:
    def at(i: Index) -> Expr:
        return value.at((*i[:d], i[d] + first, *i[d + 1 :]))

    return Value(shape, value.dtype, at)


def _unbind(b: Builder, node: Node, x: Operand, dim: int = 0) -> Made:
    value, parts = b.value(x), meta_of(node)
    d = dim % len(value.shape)

    def part(number: int) -> Value:
        chosen = expr_of(number)
        shape = shape_exprs(parts[number].shape)
        return Value(shape, value.dtype, lambda i: value.at((*i[:d], chosen, *i[d:])))

    return tuple(map(part, range(len(parts))))


def _diagonal(
    b: Builder, node: Node, x: Operand, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Value:
    value = b.value(x)
    p, q = dim1 % len(value.shape), dim2 % len(value.shape)
    if offset:
        raise NoDefinitionError("a diagonal beside the main one is torch's own")

    def at(i: Index) -> Expr:
        rest, index = iter(i[:-1]), list[Expr]()
        for d in range(len(value.shape)):
            index.append(i[-1] if d in (p, q) else next(rest))
        return value.at(tuple(index))

    return Value(shape_exprs(tensor_of(node).shape), value.dtype, at)


RULES: dict[Any, Rule] = {
    aten.view.default: _reshape,
    aten._unsafe_view.default: _reshape,
    aten.reshape.default: _reshape,
    aten.permute.default: _permute,
    aten.transpose.int: _transpose,
    aten.t.default: _t,
    aten.unsqueeze.default: _unsqueeze,
    aten.squeeze.default: _squeeze,
    aten.squeeze.dim: _squeeze,
    aten.squeeze.dims: _squeeze,
    aten.expand.default: _expand,
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.alias.default: _alias,
    aten.detach.default: _alias,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: _unbind,
    aten.diagonal.default: _diagonal,
}
