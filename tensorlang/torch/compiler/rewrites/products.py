"""Matrix products of one tensor with several frozen matrices are one product.

q = x @ wq; k = x @ wk; v = x @ wv   ->   q, k, v = split(x @ cat(wq, wk, wv))
"""

from collections.abc import Collection
from itertools import accumulate
from typing import Any

from tensorlang.torch.compiler.kinds import is_vector_product
from tensorlang.torch.compiler.nodes import Graph, Node, aten, hint, is_call, meta_of
from tensorlang.torch.compiler.rewrites.editing import call, is_result, replace
from tensorlang.torch.compiler.rewrites.frozen import constants_of


def merge_products(graph: Graph, parameters: Collection[Node]) -> None:
    """Join the products that share their first factor, with biases or without."""
    constants = constants_of(graph, parameters)
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        known = is_call(node) and not node.kwargs and node.target in _FACTORS
        # A part of a larger tensor is no result of its own; products of vectors share a launch.
        if known and not is_result(node) and not is_vector_product(node):
            bias, x, w = _parts(node)
            if w in constants and (bias is None or _is_row(bias, w, constants)):
                groups.setdefault((x, bias is None, meta_of(w).dtype), []).append(node)
    for nodes in groups.values():
        if len(nodes) > 1:
            _merge(graph, nodes)


_FACTORS: dict[Any, int] = {aten.mm.default: 0, aten.addmm.default: 1}


def _parts(node: Node) -> tuple[Node | None, Node, Node]:
    """The bias, if any, and the factors."""
    first = _FACTORS[node.target]
    bias = node.args[0] if first else None
    return bias, node.args[first], node.args[first + 1]


def _is_row(bias: Node, w: Node, constants: Collection[Node]) -> bool:
    return bias in constants and meta_of(bias).shape == meta_of(w).shape[1:]


def _merge(graph: Graph, nodes: list[Node]) -> None:
    first = nodes[0]
    parts = [_parts(node) for node in nodes]
    # Constants may stand before everything that reads them.
    order = {n: k for k, n in enumerate(graph.nodes)}
    for node in nodes:
        for part in _parts(node):
            _before(part, first, order)
    # Columns of a transposed matrix are rows in memory: these are joined, and stay transposed.
    turned = [call(graph, first, aten.permute.default, w, [1, 0]) for _, _, w in parts]
    joined = call(graph, first, aten.cat.default, turned)
    weight = call(graph, first, aten.permute.default, joined, [1, 0])
    if parts[0][0] is None:
        made = call(graph, first, aten.mm.default, parts[0][1], weight)
    else:
        bias = call(graph, first, aten.cat.default, [b for b, _, _ in parts])
        made = call(graph, first, aten.addmm.default, bias, parts[0][1], weight)
    ends = list(accumulate(hint(meta_of(w).shape[1]) for _, _, w in parts))
    starts = [0, *ends]
    slices = [
        call(graph, first, aten.slice.Tensor, made, 1, start, end)
        for start, end in zip(starts, ends, strict=False)
    ]
    for node, one in zip(nodes, slices, strict=True):
        replace(node, one)


def _before(node: Node | None, place: Node, order: dict[Node, int]) -> None:
    """Move a constant, and what it is made of, before a node."""
    if node is None or not is_call(node) or order[node] < order[place]:
        return
    for a in node.all_input_nodes:
        _before(a, place, order)
    place.prepend(node)
    order[node] = order[place] - 1
