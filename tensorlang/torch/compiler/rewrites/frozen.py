"""Parameters as constants: what depends on them alone is computed once, until they change."""

import operator
from collections.abc import Callable, Collection
from threading import Lock
from typing import Any

from tensorlang.torch.compiler.definitions import VIEWS
from tensorlang.torch.compiler.kinds import is_random, writes
from tensorlang.torch.compiler.nodes import Graph, Node, fx, is_array, is_call
from tensorlang.torch.compiler.running import callable_in_graphs
from tensorlang.torch.libraries import Tensor, torch


class Frozen:
    """A function of parameters, whose results are kept until one of them is written to.

    A write through `.data` is not seen: it leaves no trace in the tensor.
    """

    def __init__(self, compute: Callable[..., Any]) -> None:
        callable_in_graphs(self, "frozen")
        self._compute = compute
        self._state: Any = None
        self._results: Any = None
        self._lock = Lock()

    def __call__(self, *parameters: Tensor) -> Any:
        """The results, computed if the parameters are others than before."""
        state = tuple([(p.data_ptr(), p._version) for p in parameters])
        with self._lock:
            if state != self._state:
                self._results = self._compute(*parameters)
                self._state = state
            return self._results


def constants_of(graph: Graph, parameters: Collection[Node]) -> set[Node]:
    """The nodes that depend on nothing but frozen parameters and numbers."""
    found = set(parameters)
    for node in graph.nodes:
        if is_call(node) and not is_random(node) and not writes(node) and node.all_input_nodes:
            if all(a in found for a in node.all_input_nodes):
                found.add(node)
    return found


def fold_constants(graph: Graph, parameters: Collection[Node]) -> None:
    """w2 = w * s; y = f(x, w2)   ->   w2 = frozen(w, s); y = f(x, w2)"""
    constants = constants_of(graph, parameters)
    inside = [n for n in graph.nodes if n in constants and is_call(n)]
    # A view alone costs nothing, and keeps what it views.
    worth = [n for n in inside if n.target not in VIEWS]
    read = [n for n in inside if any(u not in constants for u in n.users) and is_array(n)]
    if not worth or not read:
        return

    def is_outside(user: Node) -> bool:
        return user not in constants

    used = [p for p in parameters if any(u in constants for u in p.users)]
    body = fx.Graph()
    copies = {p: body.placeholder(p.name) for p in used}
    for node in inside:
        copies[node] = body.node_copy(node, copies.__getitem__)
    body.output(tuple(copies[n] for n in read))
    frozen = Frozen(_without_grad(fx.GraphModule(torch.nn.Module(), body).forward))
    first = next(n for n in graph.nodes if is_call(n))
    with graph.inserting_before(first):
        call = graph.call_function(frozen, tuple(used))
        call.meta["val"] = tuple(n.meta["val"] for n in read)
        for k, node in enumerate(read):
            one = graph.call_function(operator.getitem, (call, k))
            one.meta = dict(node.meta)
            node.replace_all_uses_with(one, delete_user_cb=is_outside)
    for node in reversed(inside):
        if not node.users:
            graph.erase_node(node)


def _without_grad(compute: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*parameters: Tensor) -> Any:
        with torch.no_grad():
            return tuple(compute(*parameters))

    return computed
