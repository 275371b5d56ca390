"""Convolutions of frozen weights: what is done to each channel of their result joins the weights.

conv(x, w, b) * s   ->   conv(x, w * s, b * s)        conv(x, w, b) + t   ->   conv(x, w, b + t)

So the batch norm of an inference, a shift and a scale for each channel, is gone.
"""

from collections.abc import Collection
from typing import Any

from tensorlang.torch.compiler.nodes import Graph, Node, aten, meta_of
from tensorlang.torch.compiler.rewrites.editing import call, is_result, replace
from tensorlang.torch.compiler.rewrites.frozen import constants_of

_OPS: dict[Any, str] = {aten.mul.Tensor: "mul", aten.add.Tensor: "add", aten.sub.Tensor: "sub"}


def fold_into_convolutions(graph: Graph, parameters: Collection[Node]) -> None:
    """y = conv(x, w); z = (y - m) * s + t   ->   z = conv(x, w * s, t - m * s)"""
    convs = [n for n in graph.nodes if n.target is aten.convolution.default]
    while convs:
        made = _fold(graph, convs.pop(), parameters)
        if made is not None:
            convs.append(made)


def _fold(graph: Graph, conv: Node, parameters: Collection[Node]) -> Node | None:
    """The convolution with one more step in its weights, in the place of that step."""
    x, weight, bias, *rest = conv.args
    constants = constants_of(graph, parameters)
    if len(conv.users) != 1 or weight not in constants or rest[3] or is_result(conv):
        return None
    (user,) = conv.users
    op = _OPS.get(user.target)
    if op is None or len(user.args) != 2 or user.args[0] is not conv or user.kwargs:
        return None
    channel = user.args[1]
    known = channel in constants and (bias is None or bias in constants)
    if not known or not _is_by_channel(conv, channel) or meta_of(user).dtype != meta_of(conv).dtype:
        return None
    flat = call(graph, user, aten.reshape.default, channel, [meta_of(weight).shape[0]])
    if op == "mul":
        shape = [meta_of(weight).shape[0]] + [1] * (meta_of(weight).ndim - 1)
        scale = call(graph, user, aten.reshape.default, flat, shape)
        weight = call(graph, user, aten.mul.Tensor, weight, scale)
    by = _OPERATORS[op]
    if bias is not None:
        bias = call(graph, user, by, bias, flat)
    elif op != "mul":
        bias = flat if op == "add" else call(graph, user, aten.neg.default, flat)
    made = call(graph, user, aten.convolution.default, x, weight, bias, *rest)
    replace(user, made)
    graph.erase_node(conv)
    return made


_OPERATORS: dict[str, Any] = {op: target for target, op in _OPS.items()}


def _is_by_channel(conv: Node, other: Node) -> bool:
    """Whether a tensor has one element for each channel, as [C, 1, 1] or [1, C, 1, 1]."""
    shape, own = meta_of(other).shape, meta_of(conv).shape
    at = len(shape) - (len(own) - 1)
    return at >= 0 and shape[at] == own[1] and all(n == 1 for d, n in enumerate(shape) if d != at)
