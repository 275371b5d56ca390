"""Changing a graph: new nodes with what torch knows of them, and results that stay apart."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from tensorlang.torch.compiler.definitions import VIEWS
from tensorlang.torch.compiler.nodes import Graph, Node, fx, meta_of
from tensorlang.torch.libraries import torch

guards: Any = import_module("torch._guards")


def call(graph: Graph, before: Node, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
    """A new node before another one, with its fake result."""
    with graph.inserting_before(before):
        node = graph.call_function(target, args, kwargs)
    propagate(node)
    return node


def propagate(node: Node) -> None:
    """Let a node have the fake result that its arguments give."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), meta_of)
    fakes = [meta_of(a) for a in node.all_input_nodes]
    mode = guards.detect_fake_mode(fakes)
    if mode is None:
        node.meta["val"] = node.target(*args, **kwargs)
        return
    with mode, torch.no_grad():
        node.meta["val"] = node.target(*args, **kwargs)


def replace(node: Node, other: Node) -> None:
    """Let all that reads a node read another, and drop it."""
    node.replace_all_uses_with(other)
    node.graph.erase_node(node)


def is_result(node: Node) -> bool:
    """Whether a node, or a view of it, is a result of the graph.

    Results are tensors of their own: what writes to one must not change another, or an argument.
    """
    stack = [node]
    while stack:
        for user in stack.pop().users:
            if user.op == "output":
                return True
            if user.target in VIEWS or "getitem" in str(user.target):
                stack.append(user)
    return False


def is_like(a: Node, b: Node) -> bool:
    """Whether two nodes make tensors of the same dtype, shape and strides."""
    p, q = meta_of(a), meta_of(b)
    return p.dtype == q.dtype and p.shape == q.shape and p.stride() == q.stride()
