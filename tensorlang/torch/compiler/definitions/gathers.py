"""Elements by number: embedding, gather, index.  A number outside is brought to the nearest end."""

from collections.abc import Sequence
from typing import Any

from tensorlang.ir.expr import Expr, cast
from tensorlang.ir.functions import clamp, select
from tensorlang.ir.types import index
from tensorlang.torch.compiler.building import Builder, Operand, Rule
from tensorlang.torch.compiler.nodes import Node, aten, tensor_of
from tensorlang.torch.compiler.values import Index, NoDefinitionError, Value


def _bounded(number: Expr, extent: Expr) -> Expr:
    """A position of data: a negative one counts from the end."""
    at = cast(index, number)
    if number.dtype.is_signed:
        at = select(at < 0, at + extent, at)
    return clamp(at, 0, extent - 1)


def _embedding(b: Builder, node: Node, weight: Operand, indices: Operand, *_: Any) -> Value:
    table, numbers = b.value(weight), b.value(indices)

    def body(i: Index) -> Expr:
        row = clamp(cast(index, numbers.at(i[:-1])), 0, table.shape[0] - 1)
        return table.at((row, i[-1]))

    return b.define(node, body)


def _gather(b: Builder, node: Node, x: Operand, dim: int, at: Operand, **_: Any) -> Value:
    value, numbers = b.value(x), b.value(at)
    if not value.shape:
        return b.define(node, value.broadcast)
    d = dim % len(value.shape)

    def body(i: Index) -> Expr:
        return value.at((*i[:d], _bounded(numbers.at(i), value.shape[d]), *i[d + 1 :]))

    return b.define(node, body)


def _index_select(b: Builder, node: Node, x: Operand, dim: int, at: Operand) -> Value:
    value, numbers = b.value(x), b.value(at)
    if not value.shape:
        return b.define(node, value.broadcast)
    d = dim % len(value.shape)

    def body(i: Index) -> Expr:
        number = numbers.at((i[d],) if numbers.shape else ())
        return value.at((*i[:d], _bounded(number, value.shape[d]), *i[d + 1 :]))

    return b.define(node, body)


def _index(b: Builder, node: Node, x: Operand, indices: Sequence[Operand | None]) -> Value:
    """x[:, a, b]: the dimensions of the numbers stand where they do, or first if apart."""
    value = b.value(x)
    given = {d: b.value(a) for d, a in enumerate(indices) if a is not None}
    if any(v.dtype.is_bool for v in given.values()):
        raise NoDefinitionError("how many elements a mask chooses is known only when it runs")
    places = sorted(given)
    rank = max(len(v.shape) for v in given.values())
    together = places == list(range(places[0], places[0] + len(places)))
    first = places[0] if together else 0
    assert len(tensor_of(node).shape) == len(value.shape) - len(given) + rank

    def body(i: Index) -> Expr:
        numbers, rest = i[first : first + rank], iter((*i[:first], *i[first + rank :]))
        position: list[Expr] = []
        for d, extent in enumerate(value.shape):
            chosen = given.get(d)
            element = None if chosen is None else chosen.broadcast(numbers)
            position.append(next(rest) if element is None else _bounded(element, extent))
        return value.at(tuple(position))

    return b.define(node, body)


RULES: dict[Any, Rule] = {
    aten.embedding.default: _embedding,
    aten.gather.default: _gather,
    aten.index_select.default: _index_select,
    aten.index.Tensor: _index,
    aten._unsafe_index.Tensor: _index,
}
