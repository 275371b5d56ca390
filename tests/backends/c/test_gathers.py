"""What goes lane by lane goes in one loop, and data in its indices has vectors of its own."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, clamp, f32, i32, select

pytestmark = pytest.mark.cc

N = Size("N")
i = Var("i")


def test_gathers_through_the_same_data_share_their_index() -> None:
    level, table, out = Input("level", f32, [N]), Input("table", f32, [8]), Func("out")
    at = clamp(i32(level[i] * 6.0), 0, 6)
    out[i] = table[at] + (table[at + 1] - table[at]) * f32(i % 4)
    pipeline = Pipeline("mixed", inputs=[level, table], outputs={out: [N]})
    schedule = Schedule(pipeline)
    schedule[out].split(i, "io", "ii", 8).vectorize("ii")
    kernel = pipeline.compile(schedule, target="c")
    body = kernel.source[kernel.source.index("int tensorlang_") :]
    steady = body[: body.index("store_")]
    assert steady.count("for (int l") == 1
    assert "i32_from_f32_x8" in steady
    rng = np.random.default_rng(0)
    x, t = rng.uniform(-0.5, 1.5, 37).astype(np.float32), rng.random(8, dtype=np.float32)
    index = np.clip((x * np.float32(6)).astype(np.int32), 0, 6)
    want = t[index] + (t[index + 1] - t[index]) * (np.arange(37) % 4).astype(np.float32)
    np.testing.assert_allclose(kernel(x, t), want, rtol=1e-6)


def test_a_guarded_gather_stays_behind_its_guard() -> None:
    at, table, out = Input("at", i32, [N]), Input("table", f32, [4]), Func("out")
    inside = (at[i] >= 0) & (at[i] < 4)
    out[i] = select(inside, table[at[i]], -1.0) + f32(i // 2)
    pipeline = Pipeline("guarded", inputs=[at, table], outputs={out: [N]})
    schedule = Schedule(pipeline)
    schedule[out].split(i, "io", "ii", 8).vectorize("ii")
    x = np.array([0, 3, -1, 4, 2**31 - 1, -(2**31), 1, 2, 2, 9, 3], np.int32)
    t = np.array([5, 6, 7, 8], np.float32)
    valid = (x >= 0) & (x < 4)
    want = np.where(valid, t[np.where(valid, x, 0)], -1) + np.arange(11) // 2
    np.testing.assert_array_equal(pipeline.compile(schedule, target="c")(x, t), want)
