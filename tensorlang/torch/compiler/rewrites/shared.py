"""What is computed twice from the same tensors is computed once."""

from typing import Any

from tensorlang.torch.compiler.kinds import is_random, writes
from tensorlang.torch.compiler.nodes import Graph, Node, fx, is_call
from tensorlang.torch.compiler.rewrites.editing import is_result, replace
from tensorlang.torch.libraries import pytree


def share_subexpressions(graph: Graph) -> None:
    """a = f(x); b = f(x); c = g(a, b)   ->   a = f(x); c = g(a, a)"""
    seen: dict[Any, Node] = {}
    for node in list(graph.nodes):
        if not is_call(node) or is_random(node) or writes(node):
            continue
        key = _key(node)
        first = seen.setdefault(key, node)
        if first is not node and not is_result(node):
            replace(node, first)


def _key(node: Node) -> Any:
    """What is called with what; a number counts with its type: 1 == True == 1.0, 0.0 == -0.0."""
    leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
    known = tuple(
        leaf if isinstance(leaf, fx.Node) else (type(leaf).__name__, repr(leaf)) for leaf in leaves
    )
    return node.target, known, str(spec)
