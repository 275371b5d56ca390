"""Attention of an inference: read from a cache where it is, by a kernel of our own."""

import operator

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tensorlang.torch.compiler.attended import attend
from tensorlang.torch.compiler.attention import Attending, attend_to_caches, attention_regions

aten = torch.ops.aten
flash = aten._scaled_dot_product_flash_attention.default


def graph_of(queries: int, cached: int, new: int, *, causal=False, also_read=False, heads=4):
    """cat(keys, new), cat(values, new), attention, as they are captured on a GPU."""
    graph = torch.fx.Graph()
    shapes = {
        "q": (heads, queries),
        "a": (2, cached),
        "b": (2, new),
        "c": (2, cached),
        "d": (2, new),
    }
    with FakeTensorMode(), torch.device("cuda"):
        given = []
        for name, (h, n) in shapes.items():
            given.append(graph.placeholder(name))
            given[-1].meta["val"] = torch.empty(1, h, n, 64, dtype=torch.bfloat16)

        def call(target, *args):
            node = graph.call_function(target, args)
            fakes = torch.fx.map_arg(args, lambda n: n.meta["val"])
            node.meta["val"] = target(*fakes)
            return node

        q, a, b, c, d = given
        k, v = call(aten.cat.default, [a, b], 2), call(aten.cat.default, [c, d], 2)
        found = call(flash, q, k, v, 0.0, causal)
        out = call(operator.getitem, found, 0)
    graph.output((out, k) if also_read else (out,))
    return graph


def targets(graph):
    return [n.target for n in graph.nodes if n.op == "call_function"]


def rewritten(graph):
    attend_to_caches(graph)
    graph.eliminate_dead_code()
    return graph


def test_what_joins_a_cache_and_what_is_new_is_gone():
    graph = rewritten(graph_of(1, 20, 1))
    assert targets(graph) == [attend]
    (region,) = attention_regions(graph)
    assert [n.name for n in region.inputs] == ["q", "a", "c", "b", "d"]


def test_a_cache_that_is_a_result_too_is_read_whole():
    graph = rewritten(graph_of(1, 20, 1, also_read=True))
    assert targets(graph).count(aten.cat.default) == 2
    assert attend in targets(graph)


@pytest.mark.parametrize("case", [(20, 20, 1, False), (1, 20, 1, True), (200, 20, 1, True)])
def test_other_shapes_are_left_to_the_library(case):
    queries, cached, new, causal = case
    graph = rewritten(graph_of(queries, cached, new, causal=causal))
    assert flash in targets(graph)


@pytest.mark.parametrize(("queries", "cached", "new"), [(1, 75, 1), (1, 130, 1)])
def test_the_kernel_computes_what_torch_does(queries, cached, new):
    graph = rewritten(graph_of(queries, cached, new))
    (region,) = attention_regions(graph)
    attending = Attending(region.nodes[0], "triton")
    torch.manual_seed(0)
    shapes = [(4, queries), (2, cached), (2, cached), (2, new), (2, new)]
    given = [torch.randn(1, h, n, 64).to(torch.bfloat16) for h, n in shapes]
    want = attend(*given, 64**-0.5)
    torch.testing.assert_close(attending.kernel(*given), want, rtol=2e-2, atol=2e-2)
