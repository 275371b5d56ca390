"""Nodes that no result needs are dropped."""

from tensorlang.torch.compiler.kinds import is_random, writes
from tensorlang.torch.compiler.nodes import Graph, is_call


def drop_dead_code(graph: Graph) -> None:
    """a = f(x); b = g(x); return b   ->   b = g(x); return b

    What draws random numbers stays: those after it would be others.
    """
    for node in reversed(list(graph.nodes)):
        if is_call(node) and not node.users and not is_random(node) and not writes(node):
            graph.erase_node(node)
