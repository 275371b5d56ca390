"""Launches that need nothing of one another are one."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Var, f32, sum
from tensorlang.testing import assert_equivalent

i, j = Var("i"), Var("j")


def products(*rows: int) -> tuple[Pipeline, Schedule]:
    """Products of several matrices with one vector, each a launch of a row a program."""
    x, outputs = Input("X", f32, [16]), {}
    inputs = [x]
    for n, extent in enumerate(rows):
        w, y, k = Input(f"W{n}", f32, [extent, 16]), Func(f"y{n}"), RDom(f"k{n}", 16)
        y[i] = sum(w[i, k] * x[k], over=k)
        inputs.append(w)
        outputs[y] = [extent]
    pipeline = Pipeline("products", inputs=inputs, outputs=outputs)
    schedule = Schedule(pipeline)
    for n in range(len(rows)):
        stage = schedule[f"y{n}"].gpu_blocks(i).update(0).gpu_blocks(i).vectorize(f"k{n}")
        stage.compute_with(f"y{n}", i)
    return pipeline, schedule


def arrays(pipeline: Pipeline) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [
        random.standard_normal([int(n.value) for n in a.shape]).astype(np.float32)
        for a in pipeline.algorithm.inputs
    ]


@pytest.mark.parametrize("rows", [(3, 5), (1, 4, 2), (2, 2, 2, 2, 2)])
def test_products_of_one_vector_share_a_grid(rows: tuple[int, ...]) -> None:
    pipeline, schedule = products(*rows)
    source = pipeline.compile(schedule, "triton").source
    # Four parts a launch at most.
    assert source.count("@triton.jit") == -(-len(rows) // 4)
    assert_equivalent(pipeline, schedule, "triton", arrays(pipeline))


def test_what_reads_a_result_waits_for_it() -> None:
    x, f, g, h = Input("X", f32, [8]), Func("f"), Func("g"), Func("h")
    f[i] = x[i] + 1
    g[i] = f[7 - i] * 2
    h[i] = x[i] * 3
    pipeline = Pipeline("chain", inputs=[x], outputs={g: [8], h: [8]})
    schedule = Schedule(pipeline)
    schedule["f"].compute_root()
    for name in "fgh":
        schedule[name].gpu_blocks(i)
    kernel = pipeline.compile(schedule, "triton")
    first, second = [line for line in kernel.source.splitlines() if "host.launch(" in line]
    assert "chain_f_and_h" in first
    assert "chain_g" in second
    assert_equivalent(pipeline, schedule, "triton", arrays(pipeline))


def test_a_grid_of_two_loops_is_numbered_on() -> None:
    x, f, g = Input("X", f32, [4, 6]), Func("f"), Func("g")
    f[i, j] = x[i, j] + 1
    g[i, j] = x[j, i] * 2
    pipeline = Pipeline("two", inputs=[x], outputs={f: [4, 6], g: [6, 4]})
    schedule = Schedule(pipeline)
    for name in "fg":
        schedule[name].gpu_blocks(i, j)
    assert pipeline.compile(schedule, "triton").source.count("@triton.jit") == 1
    assert_equivalent(pipeline, schedule, "triton", arrays(pipeline))


@pytest.mark.parametrize("hint", ["warps", "stages"])
def test_what_would_hold_more_than_it_needs_stays_apart(hint: str) -> None:
    pipeline, schedule = products(3, 5)
    if hint == "warps":
        schedule["y0"].gpu_warps(2)
        schedule["y1"].gpu_warps(8)
    else:
        update = schedule["y1"].update(0).serial("k1").split("k1", "ko", "ki", 8)
        update.vectorize("ki").pipeline("ko", 2)
    assert pipeline.compile(schedule, "triton").source.count("@triton.jit") == 2
