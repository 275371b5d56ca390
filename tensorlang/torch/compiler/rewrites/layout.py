"""One layout for a chain of convolutions: channels last, from its first input to its last result.

Between them nothing is transposed: what is computed of a tensor has its layout.
"""

from collections.abc import Collection

from tensorlang.torch.compiler.nodes import Graph, Node, aten, fx, is_call, meta_of
from tensorlang.torch.compiler.rewrites.editing import call, propagate
from tensorlang.torch.compiler.rewrites.frozen import constants_of
from tensorlang.torch.libraries import torch

# Below this many convolutions two copies cost more than they save.
_LEAST = 2


def choose_layout(graph: Graph, parameters: Collection[Node]) -> None:
    """conv(x, w); conv(y, v)   ->   conv(channels_last(x), channels_last(w)); conv(y, ...)

    The results of the graph keep the layout that they have.
    """
    constants = constants_of(graph, parameters)
    convs = [n for n in graph.nodes if n.target is aten.convolution.default and _is_flat(n)]
    if len(convs) < _LEAST or not all(n.args[1] in constants for n in convs):
        return
    trial = fx.Graph()
    copies: dict[Node, Node] = {}
    results = trial.graph_copy(graph, copies)
    output = trial.output(results)
    for node in graph.nodes:
        if node in copies:
            copies[node].meta = dict(node.meta)
    try:
        _change(trial, [copies[n] for n in convs], output)
    except RuntimeError:
        # A view of a tensor in that layout may not exist: then the layout stays.
        return
    _take_over(graph, trial, copies)


def _is_flat(node: Node) -> bool:
    """Whether it is a convolution of images, not transposed."""
    return meta_of(node).ndim == 4 and not node.args[6]


def _change(graph: Graph, convs: list[Node], output: Node) -> None:
    wanted = [meta_of(n).stride() if isinstance(n, fx.Node) else None for n in output.args[0]]
    for node in list(graph.nodes):
        if node in convs:
            for position in (0, 1):
                _turn(graph, node, position)
        if is_call(node):
            propagate(node)
    results = list(output.args[0])
    for k, (node, strides) in enumerate(zip(results, wanted, strict=True)):
        if strides is not None and meta_of(node).ndim == 4 and meta_of(node).stride() != strides:
            results[k] = call(
                graph, output, aten.clone.default, node, memory_format=torch.contiguous_format
            )
        if strides is not None and meta_of(results[k]).stride() != strides:
            raise RuntimeError("a result would have another layout")
    output.args = (tuple(results),)


def _turn(graph: Graph, conv: Node, position: int) -> None:
    """Let a convolution read a tensor with its channels last."""
    source = conv.args[position]
    if not meta_of(source).is_contiguous(memory_format=torch.channels_last):
        turned = call(graph, conv, aten.clone.default, source, memory_format=torch.channels_last)
        conv.update_arg(position, turned)


def _take_over(graph: Graph, trial: Graph, copies: dict[Node, Node]) -> None:
    """Let a graph have the nodes of another, but its own arguments."""
    arguments = [n for n in graph.nodes if n.op == "placeholder"]
    back = {copies[n]: n for n in arguments}
    for node in reversed(list(graph.nodes)):
        if node.op != "placeholder":
            graph.erase_node(node)
    for node in trial.nodes:
        if node.op == "placeholder":
            back[node].meta = node.meta
        else:
            back[node] = graph.node_copy(node, back.__getitem__)
            back[node].meta = dict(node.meta)
