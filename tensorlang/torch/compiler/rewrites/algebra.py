"""Rules that hold for every value, NaN, infinities and the sign of a zero among them.

x * 1, x / 1, x - 0, x ** 1, -(-x), a cast to its own dtype, a view that changes nothing   ->   x

What does not hold is not here: x + 0 (of -0.0 it is 0.0), x * 0 (of inf it is NaN), x - x.
"""

from collections.abc import Callable
from typing import Any

from tensorlang.torch.compiler.definitions import VIEWS
from tensorlang.torch.compiler.nodes import Graph, Node, aten, is_call, is_tensor, meta_of, prims
from tensorlang.torch.compiler.rewrites.editing import is_like, is_result, replace

# Of a node the one that it is equal to, or None.
Rule = Callable[[Node], Node | None]


def _second_is(number: float) -> Rule:
    """f(x, number)   ->   x"""

    def rule(node: Node) -> Node | None:
        x, second, *rest = node.args
        same = isinstance(second, (int, float)) and not isinstance(second, bool)
        is_it = same and second == number and str(second)[0] != "-"
        return x if is_it and not rest and not node.kwargs else None

    return rule


def _first(node: Node) -> Node | None:
    """f(x)   ->   x"""
    return node.args[0]


def _twice(node: Node) -> Node | None:
    """-(-x)   ->   x"""
    inner = node.args[0]
    return inner.args[0] if inner.target is node.target else None


RULES: dict[Any, Rule] = {
    aten.mul.Tensor: _second_is(1),
    aten.mul.Scalar: _second_is(1),
    aten.div.Tensor: _second_is(1),
    aten.div.Scalar: _second_is(1),
    aten.sub.Tensor: _second_is(0),
    aten.sub.Scalar: _second_is(0),
    aten.pow.Tensor_Scalar: _second_is(1),
    aten.neg.default: _twice,
    aten._to_copy.default: _first,
    prims.convert_element_type.default: _first,
    # Views that are equal to what they view.
    **{op: _first for op in VIEWS if "split" not in str(op) and "unbind" not in str(op)},
}


def simplify_algebra(graph: Graph) -> None:
    """b = a * 1; c = f(b)   ->   c = f(a)      where both have one dtype, shape and layout"""
    for node in list(graph.nodes):
        rule = RULES.get(node.target) if is_call(node) else None
        other = None if rule is None or is_result(node) else rule(node)
        if other is not None and is_tensor(other) and _same_device(node, other):
            if is_like(node, other) and _starts_alike(node, other):
                replace(node, other)


def _same_device(a: Node, b: Node) -> bool:
    return meta_of(a).device == meta_of(b).device


def _starts_alike(a: Node, b: Node) -> bool:
    """Whether both have the same elements: of a view with the same extents, all of them."""
    return a.target not in (aten.permute.default, aten.transpose.int, aten.t.default) or (
        list(_order(a)) == list(range(len(meta_of(b).shape)))
    )


def _order(node: Node) -> list[int]:
    """The dimensions of a permuted tensor in terms of its own."""
    rank = len(meta_of(node).shape)
    order = list(range(rank))
    if node.target is aten.permute.default:
        return [d % rank for d in node.args[1]]
    p, q = (node.args[1] % rank, node.args[2] % rank) if len(node.args) > 2 else (0, rank - 1)
    order[p], order[q] = order[q], order[p]
    return order
