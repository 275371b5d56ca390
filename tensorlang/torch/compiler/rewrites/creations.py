"""Constants and copies take from a tensor only its shape: they forget it."""

from typing import Any

from tensorlang.torch.compiler.nodes import Graph, Node, aten, is_call, is_static, meta_of, prims
from tensorlang.torch.compiler.rewrites.editing import call, is_like, replace
from tensorlang.torch.libraries import torch

_NUMBERS: dict[Any, int] = {aten.zeros_like.default: 0, aten.ones_like.default: 1}


def forget_shapes(graph: Graph) -> None:
    """full_like(x, 2)   ->   full([4, 4], 2)        copy(x, y)   ->   clone(expand(y))"""
    for node in list(graph.nodes):
        if not is_call(node):
            continue
        if node.target is aten.full_like.default:
            _as_full(node, node.args[1])
        elif node.target in _NUMBERS:
            _as_full(node, _NUMBERS[node.target])
        elif node.target is aten.copy.default:
            _as_clone(node)


def _as_full(node: Node, number: Any) -> None:
    made = meta_of(node)
    if not is_static(made) or not made.is_contiguous():
        return
    kwargs = {"dtype": made.dtype, "device": made.device, "pin_memory": False}
    replace(node, call(node.graph, node, aten.full.default, list(made.shape), number, **kwargs))


def _as_clone(node: Node) -> None:
    _, source = node.args[:2]
    made = meta_of(node)
    if not is_static(made) or meta_of(source).device != made.device:
        return
    graph = node.graph
    if meta_of(source).shape != made.shape:
        source = call(graph, node, aten.expand.default, source, list(made.shape))
    if meta_of(source).dtype != made.dtype:
        source = call(graph, node, prims.convert_element_type.default, source, made.dtype)
    clone = call(graph, node, aten.clone.default, source)
    if not is_like(clone, node):
        graph.erase_node(clone)
        clone = call(graph, node, aten.clone.default, source, memory_format=torch.contiguous_format)
    if is_like(clone, node):
        replace(node, clone)
