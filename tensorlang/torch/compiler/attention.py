"""Attention of an inference by kernels of our own: with a schedule of its own, as a region alone.

    cat(keys, new)                                            `attend(q, keys, values,
    cat(values, more)                                    ->           new, more)`
    scaled_dot_product_attention(q, the first, the second)

So what a cache will hold is read where it is, and not copied first.
"""

import math
from collections.abc import Mapping
from typing import Any

from tensorlang import arrays
from tensorlang.kernel import Kernel
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_schedules import FEW_QUERIES, decode, flash
from tensorlang.pipeline import Pipeline
from tensorlang.target import Target
from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.extents import same
from tensorlang.torch.compiler.nodes import Graph, Node, aten, hint, is_getitem, tensor_of
from tensorlang.torch.compiler.regions import Region
from tensorlang.torch.compiler.translation import Placing, Translation
from tensorlang.torch.libraries import Tensor, torch

_HALVES = (torch.bfloat16, torch.float16)
# Features of a head that the schedules have tiles for, and the queries from which tiles pay.
_FEATURES = (64, 128)
_MANY_QUERIES = 128
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
    """Whether our schedules are made for such an attention."""
    q, k, v = (tensor_of(a) for a in node.args[:3])
    queries, features = hint(q.shape[2]), q.shape[3]
    causal, dropout, biased = _options(node)
    square = same(q.shape[2], k.shape[2])
    many = queries >= _MANY_QUERIES
    return (
        q.device.type == "cuda"
        and q.dtype in _HALVES
        and q.dtype == k.dtype == v.dtype
        and features in _FEATURES
        and v.shape[3] == features
        and all(isinstance(n, int) for n in (*q.shape[1:], k.shape[1]))
        and q.shape[1] % k.shape[1] == 0
        and not (dropout or biased)
        and (square or not causal)
        and (many or (queries <= FEW_QUERIES and not causal))
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
    causal, *_ = _options(node)
    if hint(tensor_of(q).shape[2]) <= FEW_QUERIES:
        split = [_appended(k), _appended(v)]
        if split[0] and split[1] and _alike(split[0], split[1]):
            (k, new[0]), (v, new[1]) = split[0], split[1]
    scale = node.kwargs.get("scale") or 1 / math.sqrt(tensor_of(q).shape[3])
    with graph.inserting_before(result):
        made = graph.call_function(attend, (q, k, v, *new, float(scale), causal))
    made.meta = dict(result.meta)
    result.replace_all_uses_with(made)
    for user in list(node.users):
        graph.erase_node(user)
    graph.erase_node(node)


def _appended(node: Node) -> tuple[Node, Node] | None:
    """The cache and what follows it, where a tensor is both, and is only read here."""
    if node.target is not aten.cat.default or len(node.users) != 1 or len(node.args[0]) != 2:
        return None
    dim = node.args[1] if len(node.args) > 1 else 0
    cache, new = node.args[0]
    few = isinstance(tensor_of(new).shape[2], int)
    return (cache, new) if dim % 4 == 2 and few else None


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
    """The kernel of an attention as a function of its tensors."""

    def __init__(self, node: Node, target: str) -> None:
        q, k, v, new, _, scale, causal = node.args
        fakes = [tensor_of(x) for x in (q, k, v)]
        (dtype,) = {d for x in fakes if (d := arrays.dtype_of_torch(x.dtype)) is not None}
        heads, groups = fakes[0].shape[1], fakes[1].shape[1]
        self.pipeline: Pipeline = attention(
            dtype,
            dtype,
            dtype,
            features=fakes[0].shape[3],
            values=fakes[2].shape[3],
            groups=heads // groups,
            scale=scale,
            causal="top_left" if causal else "",
            appended=0 if new is None else tensor_of(new).shape[2],
        )
        sizes = [hint(n) for n in (fakes[1].shape[0], groups, fakes[1].shape[2])]
        self.sizes = dict(zip("BGN", sizes, strict=True)) | {"M": hint(fakes[0].shape[2])}
        self.kernel = _kernel(self.pipeline, target, self.sizes)
        # The layout in memory that torch expects: heads of one query side by side.
        self._turned = tensor_of(node).stride()[1] < tensor_of(node).stride()[2]
        self._turned &= self.sizes["M"] > 1

    @property
    def translation(self) -> Translation:
        """Its tensors as they are, and one result."""
        order = (0, 1, 2, 3)
        inputs = self.pipeline.algorithm.inputs
        return Translation(
            self.pipeline.algorithm, (order,) * len(inputs), (Placing(order, ()),), ()
        )

    def __call__(self, *tensors: Tensor) -> Tensor:
        """softmax(Q K^T) V"""
        if not self._turned:
            return self.kernel(*tensors)
        q, v = tensors[0], tensors[2]
        b, h, m, _ = q.shape
        out = torch.empty((b, m, h, v.shape[3]), dtype=q.dtype, device=q.device)
        return self.kernel(*tensors, out=out.transpose(1, 2))


def _kernel(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Kernel:
    if sizes["M"] > FEW_QUERIES:
        return pipeline.compile(flash(pipeline, target), target)
    programs = _PARTS_EACH * Target.of(target).sms
    part = sizes["N"] * sizes["B"] * sizes["G"] // max(programs, 1)
    part = min(_LONGEST_PART, max(_LEAST_PART, 1 << max(part, 1).bit_length() - 1))
    return pipeline.compile(decode(pipeline, target, part=part), target)
