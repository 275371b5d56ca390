"""A Func at the loop that computes it, its storage at the loop that keeps it."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, ScheduleError, i32
from tests.lower.algorithms import N, i, j, matmul, rows, two_stages
from tests.lower.between import around, run, text


def test_a_func_is_computed_just_inside_the_loop_named(golden) -> None:
    pipeline = rows()
    s = Schedule(pipeline)
    s["f"].compute_at("g", i)
    before, after = around(pipeline, s, "place_stages")
    golden(text(after))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_what_masks_the_consumer_masks_its_producer_too(golden) -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["g"].split(i, "io", "ii", 4)
    s["f"].compute_at("g", "ii")
    golden(text(around(pipeline, s, "place_stages")[1]))


def test_storage_kept_outside_has_a_region_of_its_own(golden) -> None:
    pipeline = rows()
    s = Schedule(pipeline)
    s["f"].store_at("g", i).compute_at("g", j)
    before, after = around(pipeline, s, "place_stages")
    golden(text(after))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(run(pipeline, before, values), run(pipeline, after, values))


def test_a_program_with_everything_at_root_is_left_alone() -> None:
    pipeline = matmul()
    before, after = around(pipeline, Schedule(pipeline), "place_stages")
    assert after is before


def test_a_use_outside_the_loop_is_refused() -> None:
    a, f, g, h = Input("A", i32, [N]), Func("f"), Func("g"), Func("h")
    f[i] = a[i] + 1
    g[i] = f[i] * 2
    h[i] = f[i] * 3
    pipeline = Pipeline("p", inputs=[a], outputs={g: [N], h: [N]})
    s = Schedule(pipeline)
    s["f"].compute_at("g", i)
    with pytest.raises(ScheduleError, match="consumer-outside") as caught:
        pipeline.lower(s)
    assert caught.value.span is not None
    assert caught.value.span.path == __file__
