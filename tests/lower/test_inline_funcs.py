"""f[i + 1]   ->   the definition of f at i + 1."""

from itertools import pairwise

import numpy as np

from tensorlang import Func, Input, Pipeline, Schedule, i32
from tests.lower.algorithms import N, i, two_stages
from tests.lower.between import around, run, text


def test_a_pure_func_is_substituted_where_it_is_read(golden) -> None:
    pipeline = two_stages()
    before, after = around(pipeline, Schedule(pipeline), "inline_funcs")
    golden(text(after))
    values = np.array([5, 1, 2, 8], np.int32)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_a_chain_is_substituted_producers_first(golden) -> None:
    a, f, g, h = Input("A", i32, [N + 2]), Func("f"), Func("g"), Func("h")
    f[i] = a[i] + 1
    g[i] = f[i] * f[i + 1]
    h[i] = g[i] - g[i + 1]
    pipeline = Pipeline("chain", inputs=[a], outputs={h: [N]})
    before, after = around(pipeline, Schedule(pipeline), "inline_funcs")
    golden(text(after))
    values = np.array([5, 1, 2, 8], np.int32)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_a_func_that_is_computed_somewhere_is_left_alone() -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["f"].compute_root()
    before, after = around(pipeline, s, "inline_funcs")
    assert after is before


def test_a_shared_expression_stays_shared() -> None:
    # f twice in g, g twice in h, ...: a tree of 2^20 nodes, and a graph of 20.
    a = Input("A", i32, [N])
    funcs = [Func(f"f{n}") for n in range(20)]
    funcs[0][i] = a[i]
    for below, f in pairwise(funcs):
        f[i] = below[i] + below[i]
    pipeline = Pipeline("doublings", inputs=[a], outputs={funcs[-1]: [N]})
    _, after = around(pipeline, Schedule(pipeline), "inline_funcs")
    assert run(pipeline, after, np.array([3], np.int32))[0].tolist() == [3 << 19]
