"""What users of scheduling languages have reported: each with its value known beforehand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    f32,
    i32,
    min,
    sum,
)

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")

Run = Callable[..., np.ndarray[Any, Any]]


@pytest.fixture(params=["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"])
def run(request: pytest.FixtureRequest) -> Run:
    """run(schedule, *inputs): the output on one target."""

    def call(p: Pipeline, s: Schedule, *inputs: Any, **rest: Any) -> np.ndarray[Any, Any]:
        return np.asarray(p.compile(s, target=request.param)(*inputs, **rest))

    return call


def test_a_factored_minimum_starts_from_no_zero(run):
    """Partial results begin with the identity, not with 0, where a split leaves a tail."""
    a, k, f = Input("A", i32, [9]), RDom("k", 9), Func("f")
    f[()] = min(a[k], over=k)
    p = Pipeline("least", inputs=[a], outputs={f: []})
    s = Schedule(p)
    s["f"].update(0).split("k", "ko", "ki", 4).split("ki", "kj", "kk", 3)
    part = s["f"].update(0).rfactor("ko", "u")
    s[part].compute_root()
    assert run(p, s, np.arange(5, 14, dtype=np.int32)) == 5


def test_a_reduction_factored_twice_counts_each_term_once(run):
    k, f = RDom("k", 129), Func("f")
    f[()] = sum(i32(k.as_expr()), over=k)
    p = Pipeline("total", inputs=[], outputs={f: []})
    s = Schedule(p)
    s["f"].update(0).split("k", "ko", "ki", 16)
    outer = s["f"].update(0).rfactor("ko", "u")
    s[outer].update(0).split("ki", "kj", "kk", 4)
    inner = s[outer].update(0).rfactor("kj", "v")
    s[outer].compute_root()
    s[inner].compute_root()
    assert run(p, s) == 8256


def test_tiles_of_a_triangular_update_leave_the_other_triangle_alone(run):
    n = 7
    a, c, r = Input("A", f32, [n, K]), Func("C"), RDom("r", n, n, K)
    r = r.where(r[1] <= r[0])
    c[i, j] = f32(-1)
    c[r[0], r[1]] = c[r[0], r[1]] + a[r[0], r[2]] * a[r[1], r[2]]
    p = Pipeline("syrk", inputs=[a], outputs={c: [n, n]})
    s = Schedule(p)
    update = s["C"].update(0).tile("r_0", "r_1", "io", "jo", "ii", "ji", 4, 2)
    update.reorder("jo", "io", "r_2", "ji", "ii")
    x = np.random.default_rng(0).integers(-3, 4, (n, 5)).astype(np.float32)
    expected = np.tril(x @ x.T) - 1
    assert np.array_equal(run(p, s, x), expected)


def test_a_staged_window_wider_than_what_is_written_keeps_the_rest(run):
    a, f, g, r = Input("A", i32, [N]), Func("f"), Func("g"), RDom("r", 3)
    f[i] = a[i]
    f[r] = f[r] * 2
    g[i] = f[i]
    p = Pipeline("window", inputs=[a], outputs={g: [N]})
    s = Schedule(p)
    s[g].split(i, "io", "ii", 4)
    s[f].compute_at(g, "io")
    staged = s[f].in_(g)
    s[staged].compute_at(g, "io")
    assert run(p, s, np.array([1, 2, 3, 9], np.int32)).tolist() == [2, 4, 6, 9]


@pytest.mark.parametrize("stages", [0, 1, 2, 3])
def test_what_a_loop_reads_before_it_writes_is_the_same_however_deep_it_is_pipelined(run, stages):
    a, f, r = Input("A", i32, [M, N + 1]), Func("f"), RDom("r", N)
    f[i, j] = a[i, j]
    f[i, r] = f[i, r + 1] * 2 + f[i, r]
    p = Pipeline("behind", inputs=[a], outputs={f: [M, N + 1]})
    s = Schedule(p)
    s["f"].gpu_blocks(i).vectorize(j)
    s["f"].update(0).gpu_blocks(i)
    if stages:
        s["f"].update(0).pipeline("r", stages)
    x = np.arange(30, dtype=np.int32).reshape(3, 10)
    expected = x.copy()
    expected[:, :-1] += 2 * x[:, 1:]
    assert np.array_equal(run(p, s, x), expected)


PLACEMENTS = {
    "inline": lambda s: s["f"].compute_inline(),
    "root": lambda s: s["f"].compute_root(),
    "at the outer loop": lambda s: s["f"].compute_at("g", "io"),
    "at the inner loop": lambda s: s["f"].compute_at("g", "ii"),
}


@pytest.mark.parametrize("place", PLACEMENTS)
def test_two_stages_give_four_times_the_place_and_four(run, place):
    a, f, g = Input("A", i32, [N + 2]), Func("f"), Func("g")
    f[i] = a[i] + a[i + 1]
    g[i] = f[i] + f[i + 1]
    p = Pipeline("blur", inputs=[a], outputs={g: [N]})
    s = Schedule(p)
    s["g"].split(i, "io", "ii", 8)
    PLACEMENTS[place](s)
    out = run(p, s, np.arange(15, dtype=np.int32))
    assert out.tolist() == [4 * n + 4 for n in range(13)]


BK = 16


@pytest.mark.parametrize("k", [0, 1, BK, BK + 1])
def test_matmuls_of_few_terms_end_and_are_right(run, k):
    a, b, r, c = Input("A", f32, [M, K]), Input("B", f32, [K, N]), RDom("k", K), Func("C")
    c[i, j] = sum(a[i, r] * b[r, j], over=r)
    p = Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]})
    s = Schedule(p)
    for stage in (s["C"], s["C"].update(0)):
        stage.tile(i, j, "io", "jo", "ii", "ji", 8, 8)
    s["C"].gpu_blocks("io", "jo").vectorize("ii").vectorize("ji")
    update = s["C"].update(0).split("k", "ko", "ki", BK)
    update.reorder("io", "jo", "ko", "ii", "ji", "ki").gpu_blocks("io", "jo")
    update.vectorize("ii").vectorize("ji").vectorize("ki").pipeline("ko", 3)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((9, k), (k, 5)))
    assert np.array_equal(run(p, s, x, y), x @ y)


def test_programs_that_start_programs_are_refused():
    a, f, g = Input("A", f32, [M, N]), Func("f"), Func("g")
    f[i, j] = a[i, j] * 2
    g[i, j] = f[i, j] + 1
    p = Pipeline("nested", inputs=[a], outputs={g: [M, N]})
    s = Schedule(p)
    s["g"].gpu_blocks(i)
    s["f"].compute_at("g", i).gpu_blocks(j)
    with pytest.raises(ScheduleError, match="nested-gpu-blocks"):
        p.lower(s)


def test_a_schedule_saved_for_one_shape_is_right_on_another(run, tmp_path):
    a, f, g = Input("A", i32, [M + 2, N]), Func("f"), Func("g")
    f[i, j] = a[i, j] + a[i + 1, j] + a[i + 2, j]
    g[i, j] = f[i, j] * 2
    p = Pipeline("rows", inputs=[a], outputs={g: [M, N]})
    s = Schedule(p)
    s["g"].tile(i, j, "io", "jo", "ii", "ji", 8, 16).gpu_blocks("io", "jo")
    s["g"].vectorize("ii").vectorize("ji")
    s["f"].compute_at("g", "jo").vectorize(i).vectorize(j)
    s.save(tmp_path / "rows.schedule")
    read = Schedule.load(tmp_path / "rows.schedule", p)
    for m, n in ((8, 16), (9, 15), (1, 40), (0, 3)):
        x = np.arange((m + 2) * n, dtype=np.int32).reshape(m + 2, n)
        assert np.array_equal(run(p, read, x), 2 * (x[:-2] + x[1:-1] + x[2:]))
