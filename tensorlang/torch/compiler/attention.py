"""Attention of a step of decoding by a kernel of our own: a region with a schedule of its own.

    cat(keys, new)                                            attend(q, keys, values,
    cat(values, more)                                    ->          new, more)
    scaled_dot_product_attention(q, the first, the second)

So what a cache will hold is read where it is, and not copied first.
"""

import math
from collections.abc import Mapping
from typing import Any

from tensorlang import arrays
from tensorlang.algorithm import Algorithm
from tensorlang.kernel import Kernel
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_schedules import decode
from tensorlang.nn.cached_attention import cached_attention, decode_cached
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target
from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.nodes import Graph, Node, aten, hint, is_getitem, tensor_of
from tensorlang.torch.compiler.regions import Region
from tensorlang.torch.compiler.translation import Placing, Translation
from tensorlang.torch.libraries import torch

_HALVES = (torch.bfloat16, torch.float16)
# Features of a head that the schedule has tiles for.
_FEATURES = (64, 128)
# Keys of a part, at least and at most; parts that fill each multiprocessor.
_LEAST_PART, _LONGEST_PART, _PARTS_EACH = 64, 512, 2

# Operators of torch, and where they have causality: all have Q, K and V first.
_OPERATORS: dict[Any, int] = {
    aten._scaled_dot_product_flash_attention.default: 4,
    aten._scaled_dot_product_efficient_attention.default: 6,
    aten._scaled_dot_product_cudnn_attention.default: 6,
}


def attend_to_caches(graph: Graph) -> None:
    """o = sdpa(q, cat(a, b), cat(c, d))[0]   ->   o = attend(q, a, c, b, d)"""
    for node in list(graph.nodes):
        if node.target in _OPERATORS:
            result = _only_result(node)
            if result is not None and _fits(node):
                _replace(graph, node, result)


def _only_result(node: Node) -> Node | None:
    """The output, where nobody reads anything else, such as what a gradient needs."""
    read = [user for user in node.users if user.users]
    (result, *others) = read or [None]
    if result is None or others or not is_getitem(result) or result.args[1] != 0:
        return None
    return result


def _fits(node: Node) -> bool:
    """Whether our schedule is made for such an attention: a query a head, of 16 bits."""
    q, k, v = (tensor_of(a) for a in node.args[:3])
    return (
        q.device.type == "cuda"
        and q.dtype in _HALVES
        and q.dtype == k.dtype == v.dtype
        and q.shape[3] in _FEATURES
        and v.shape[3] == q.shape[3]
        and all(isinstance(n, int) for n in (*q.shape[1:], k.shape[1]))
        and q.shape[2] == 1
        and q.shape[1] % k.shape[1] == 0
        and not any(_options(node))
    )


def _options(node: Node) -> tuple[bool, float, bool]:
    """Whether it is causal, the share that is dropped, and whether scores get a bias."""
    at = _OPERATORS[node.target]
    causal = node.args[at] if len(node.args) > at else node.kwargs.get("is_causal", False)
    dropout = node.args[at - 1] if len(node.args) > at - 1 else node.kwargs.get("dropout_p", 0.0)
    biased = at == 6 and (node.args[3] if len(node.args) > 3 else None) is not None
    return bool(causal), float(dropout), biased


def _replace(graph: Graph, node: Node, result: Node) -> None:
    q, k, v = node.args[:3]
    new: list[Node | None] = [None, None]
    split = _appended(k), _appended(v)
    if split[0] and split[1] and _alike(split[0], split[1]):
        (k, new[0]), (v, new[1]) = split[0], split[1]
    scale = node.kwargs.get("scale") or 1 / math.sqrt(tensor_of(q).shape[3])
    with graph.inserting_before(result):
        made = graph.call_function(attend, (q, k, v, *new, float(scale)))
    made.meta = dict(result.meta)
    result.replace_all_uses_with(made)
    for user in list(node.users):
        graph.erase_node(user)
    graph.erase_node(node)


def _appended(node: Node) -> tuple[Node, Node] | None:
    """The cache and the key that follows it, where a tensor is both, and is only read here."""
    if node.target is not aten.cat.default or len(node.users) != 1 or len(node.args[0]) != 2:
        return None
    dim = node.args[1] if len(node.args) > 1 else 0
    cache, new = node.args[0]
    is_one = isinstance(tensor_of(new).shape[2], int) and tensor_of(new).shape[2] == 1
    return (cache, new) if dim % 4 == 2 and is_one else None


def _alike(a: tuple[Node, Node], b: tuple[Node, Node]) -> bool:
    return all(tensor_of(x).shape == tensor_of(y).shape for x, y in zip(a, b, strict=True))


def attention_regions(graph: Graph) -> list[Region]:
    """Each attention as a region."""
    return [
        Region((node,), tuple(node.all_input_nodes), (node,))
        for node in graph.nodes
        if node.target is attend
    ]


class Attending:
    """The Pipeline and kernel of an attention, and what they are to a region."""

    def __init__(self, node: Node, target: str) -> None:
        q, k, _, new, _, scale = node.args
        shape, kept = tensor_of(q).shape, tensor_of(k).shape
        dtype = arrays.dtype_of_torch(tensor_of(q).dtype)
        assert dtype is not None
        constants: Mapping[str, Any] = {
            "features": shape[3],
            "groups": shape[1] // kept[1],
            "scale": scale,
        }
        self.sizes = {"B": hint(shape[0]), "G": kept[1], "M": 1, "N": hint(kept[2])}
        part = _part(self.sizes, target)
        if new is None:
            self.pipeline = attention(dtype, dtype, dtype, values=shape[3], **constants)
            schedule = decode(self.pipeline, target, part=part)
        else:
            self.pipeline = cached_attention(dtype, **constants)
            schedule = decode_cached(self.pipeline, target, part=part)
        self.kernel = _compiled(self.pipeline, schedule, target)

    @property
    def translation(self) -> Translation:
        """Its tensors as they are, and one result."""
        order = (0, 1, 2, 3)
        inputs = self.pipeline.algorithm.inputs
        placing = Placing(order, ())
        return Translation(self.pipeline.algorithm, (order,) * len(inputs), (placing,), ())


_kernels: dict[tuple[Algorithm, str, str], Kernel] = {}


def _compiled(pipeline: Pipeline, schedule: Schedule | None, target: str) -> Kernel:
    """The kernel; equal ones, as of the layers of a model, are one."""
    key = pipeline.algorithm, str(schedule), target
    if key not in _kernels:
        _kernels[key] = pipeline.compile(schedule, target)
    return _kernels[key]


def _part(sizes: Mapping[str, int], target: str) -> int:
    """How many keys a program reads, so that there are programs for each multiprocessor."""
    programs = _PARTS_EACH * max(Target.of(target).sms, 1)
    part = sizes["N"] * sizes["B"] * sizes["G"] // programs
    return min(_LONGEST_PART, max(_LEAST_PART, 1 << max(part, 1).bit_length() - 1))
