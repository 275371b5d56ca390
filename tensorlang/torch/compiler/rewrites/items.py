"""A number that is read out of a tensor is read where it is used: nothing waits for the device."""

from typing import Any

from tensorlang.torch.compiler.nodes import Graph, Node, aten, fx, is_call, meta_of, tensor_of
from tensorlang.torch.compiler.rewrites.editing import call, is_like, is_result, replace
from tensorlang.torch.libraries import torch


def read_items(graph: Graph) -> None:
    """add(x, item(t))         ->   add(x, t)
    full([4], item(t))      ->   clone(expand(t, [4]))
    select(x, 0, item(t))   ->   squeeze(index_select(x, 0, t), 0)
    """
    for item in list(graph.nodes):
        if is_call(item) and item.target is aten._local_scalar_dense.default:
            for user in list(item.users):
                made = _reading(user, item, item.args[0])
                if made is not None:
                    replace(user, made)


def _reading(user: Node, item: Node, source: Node) -> Node | None:
    """What `user` computes, from the tensor that a number is read out of; None: of the number."""
    if not is_call(user) or not isinstance(meta_of(user), torch.Tensor):
        return None
    if tensor_of(user).device != tensor_of(source).device:
        return None
    graph = user.graph
    if user.target is aten.full.default and user.args[1] is item:
        value = call(graph, user, aten._to_copy.default, source, dtype=tensor_of(user).dtype)
        spread = call(graph, user, aten.expand.default, value, list(user.args[0]))
        made = call(graph, user, aten.clone.default, spread,
                    memory_format=torch.contiguous_format)  # fmt: skip
    elif user.target is aten.select.int and user.args[2] is item:
        x, d, _ = user.args
        row = call(graph, user, aten.index_select.default, x, d, source)
        made = call(graph, user, aten.squeeze.dim, row, d)
    else:
        made = _of_tensors(user, item, source)
    if made is None or meta_of(made).dtype != meta_of(user).dtype:
        return None
    is_view = user.target is aten.select.int and not is_result(user)
    return made if is_view or is_like(made, user) else None


def _of_tensors(user: Node, item: Node, source: Node) -> Node | None:
    """The same call with the tensor for the number, if the operator takes tensors there."""
    schema: Any = getattr(user.target, "_schema", None)
    places = [k for k, a in enumerate(user.args) if a is item]
    if schema is None or item in user.kwargs.values():
        return None
    kinds = [schema.arguments[k].type for k in places]
    if not places or any(not isinstance(kind, torch.TensorType) for kind in kinds):
        return None
    args = [source if a is item else a for a in user.args]
    if not any(isinstance(a, fx.Node) and a is not source for a in args):
        return None
    return call(user.graph, user, user.target, *args, **user.kwargs)
