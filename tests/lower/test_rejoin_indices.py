"""Indices that put a fused loop together again."""

import numpy as np

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32
from tensorlang.ir.stmt import Allocate, walk
from tensorlang.testing import assert_equivalent
from tests.lower.between import programs

M, N = Size("M"), Size("N")
i, j, t = Var("i"), Var("j"), Var("t")


def flat() -> Pipeline:
    """out[i, j] = f[i*N + j], where f is over all elements one after the other."""
    x, f, out = Input("x", f32, [M, N]), Func("f"), Func("out")
    f[t] = x[t // N, t % N] * 2
    out[i, j] = f[i * N + j] + 1
    return Pipeline("flat", inputs=[x], outputs={out: [M, N]})


def test_a_tile_of_a_fused_loop_needs_a_tile_of_what_is_flat():
    p = flat()
    s = Schedule(p)
    s["out"].fuse(i, j, "e").split("e", "eo", "ei", 8)
    s["f"].compute_at("out", "eo")
    program = programs(p, s)["simplify_program"]
    (buffer,) = (a.buffer for a in walk(program.body) if isinstance(a, Allocate))
    assert [str(d.extent.value) for d in buffer.dims] == ["8"]
    assert_equivalent(p, s, target="interpreter")


def test_a_program_without_fused_loops_stays_the_same_object():
    p = flat()
    between = programs(p, Schedule(p))
    assert between["rejoin_indices"] is between["place_stages"]


def test_what_does_not_meet_is_left_alone():
    x, f, out = Input("x", f32, [M, N]), Func("f"), Func("out")
    f[t] = x[t // N, t % N]
    out[i, j] = f[j * M + i]
    p = Pipeline("transposed", inputs=[x], outputs={out: [N, M]})
    s = Schedule(p)
    s["out"].fuse(i, j, "e").split("e", "eo", "ei", 8)
    s["f"].compute_at("out", "eo")
    kernel = p.compile(s, target="interpreter")
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    want = a.reshape(-1)[np.arange(4)[:, None] + np.arange(3)[None, :] * 3]
    np.testing.assert_array_equal(kernel(a), want)
