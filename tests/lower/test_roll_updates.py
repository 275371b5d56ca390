"""rolling_update as a pass: the group in one loop, right before and after every later pass."""

import numpy as np
import pytest

import tensorlang
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, exp, f32, max, sum
from tensorlang.ir.stmt import Allocate, For, Stage, walk
from tests.lower.between import around, programs, run, text

M, N = Size("M"), Size("N")
i = Var("i")


def log_sum_exp(causal: bool = False) -> Pipeline:
    """m = max(A), l = sum(exp(A - m)), g = l * exp(m) for each row."""
    a, m, total, g = Input("A", f32, [M, N]), Func("m"), Func("l"), Func("g")
    r, q = RDom("r", N), RDom("q", N)
    if causal:
        r, q = r.where(r <= i), q.where(q <= i)
    m[i] = max(a[i, r], over=r)
    total[i] = sum(exp(a[i, q] - m[i]), over=q)
    g[i] = total[i] * exp(m[i])
    return Pipeline("log_sum_exp", inputs=[a], outputs={g: [M]})


def rolled(p: Pipeline, tile: int = 4) -> Schedule:
    s = Schedule(p)
    s["l"].update().split("q", "qo", "qi", tile).reorder("qo", "i", "qi")
    s["m"].rolling_update("l", "qo")
    return s


def rows(m: int, n: int) -> np.ndarray:
    return np.random.default_rng(m + n).standard_normal((m, n)).astype(np.float32)


def test_one_loop_keeps_the_max_updates_it_and_repairs_the_sum(golden) -> None:
    p = log_sum_exp()
    before, after = around(p, rolled(p), "roll_updates")
    golden(text(after))
    order = [(s.func, s.number) for s in walk(before.body) if isinstance(s, Stage)]
    assert order.index(("m", 1)) < order.index(("l", 1))
    loop = next(s for s in walk(after.body) if isinstance(s, For) and s.var == "l.qo")
    inside = [s.func for s in walk(loop.body) if isinstance(s, Stage)]
    assert "m" in inside
    kept = [s.buffer.name for s in walk(after.body) if isinstance(s, Allocate)]
    assert any("before" in name for name in kept)


@pytest.mark.parametrize(("m", "n"), [(3, 10), (1, 1), (5, 4), (0, 3)])
@pytest.mark.parametrize("causal", [False, True])
def test_every_pass_after_it_keeps_the_value(m: int, n: int, causal: bool) -> None:
    p = log_sum_exp(causal)
    a = rows(m, n)
    where = np.arange(n) <= np.arange(m)[:, None] if causal else np.True_
    expected = np.where(where, np.exp(a.astype(np.float64)), 0).sum(1)
    made = programs(p, rolled(p))
    names = list(made)
    for name in names[names.index("roll_updates") :]:
        (out,) = run(p, made[name], a)
        assert np.allclose(out, expected, rtol=1e-5), name


def test_without_a_rolling_update_nothing_changes() -> None:
    p = log_sum_exp()
    before, after = around(p, Schedule(p), "roll_updates")
    assert after is before


@pytest.mark.parametrize("kind", ["serial", "parallel"])
@pytest.mark.parametrize("m", [2, 3, 5, 8])
def test_a_point_that_its_loops_meet_twice_is_repaired_once(m: int, kind: str) -> None:
    p = log_sum_exp()
    s = rolled(p)
    s["l"].split("i", "io", "ii", 4).split("ii", "iio", "iii", 3, tail="shift_inwards")
    getattr(s["l"], kind)("iio")
    # The max rises from tile to tile, so that each repair counts.
    a = rows(m, 10) + np.arange(10, dtype=np.float32)
    (out,) = run(p, p.lower(s), a)
    assert np.allclose(out, np.exp(a.astype(np.float64)).sum(1), rtol=1e-5)


def test_what_reads_no_member_may_stand_before_the_loop() -> None:
    p = log_sum_exp()
    h, k = Func("h"), Func("k")
    a = Input("A", f32, [M, N])
    h[i] = a[i, 0] * 2
    k[i] = sum(a[i, RDom("z", N)], over=RDom("z", N))
    other = Pipeline("other", inputs=[a], outputs={h: [M], k: [M]})
    text = str(p).replace("-> g[M] {", "-> g[M], h[M], k[M] {")
    body = "\n".join(str(other).splitlines()[1:-1])
    joined = tensorlang.parse(text.replace(" {\n", f" {{\n{body}\n", 1)).pipelines["log_sum_exp"]
    values = rows(3, 10)
    found = run(joined, joined.lower(rolled(joined)), values)
    assert np.allclose(found[0], np.exp(values.astype(np.float64)).sum(1), rtol=1e-5)
    assert np.array_equal(found[1], values[:, 0] * 2)


def test_a_domain_may_begin_at_a_size() -> None:
    a, m, total, first = Input("A", f32, [M, N]), Func("m"), Func("l"), Size("first")
    r, q = RDom("r", (first, N - first)), RDom("q", (first, N - first))
    m[i] = max(a[i, r], over=r)
    total[i] = sum(exp(a[i, q] - m[i]), over=q)
    p = Pipeline("part", inputs=[a], outputs={total: [M]})
    values = rows(3, 10)
    out = p.compile(rolled(p, 4), target="interpreter")(values, sizes={"first": 3})
    part = values[:, 3:].astype(np.float64)
    assert np.allclose(out, np.exp(part - part.max(1, keepdims=True)).sum(1), rtol=1e-5)


def test_a_row_of_minus_infinities_is_told_from_one_without_points() -> None:
    a, keep, m, total = Input("A", f32, [M, N]), Input("keep", f32, [M, N]), Func("m"), Func("l")
    r, q = RDom("r", N), RDom("q", N)
    r, q = r.where(keep[i, r] > 0), q.where(keep[i, q] > 0)
    m[i] = max(a[i, r], over=r)
    total[i] = sum(exp(a[i, q] - m[i]), over=q)
    p = Pipeline("masked", inputs=[a, keep], outputs={total: [M]})
    a = np.array([[-np.inf] * 6, [-np.inf] * 6, [0, 1, 2, 0, 1, 2]], np.float32)
    keep = np.array([[0] * 6, [0, 0, 0, 0, 0, 1], [1] * 6], np.float32)
    out = p.compile(rolled(p, 4), target="interpreter")(a, keep)
    assert np.allclose(out, [0, np.nan, 2 + 2 / np.e + 2 / np.e**2], equal_nan=True)


def test_a_rolled_sum_may_stand_at_a_fixed_place_of_a_dimension() -> None:
    a, both, variance, c = Input("A", f32, [M, N]), Func("both"), Func("variance"), Var("c")
    r, q = RDom("r", N), RDom("q", N)
    both[i, c] = f32(0)
    both[i, 0] = both[i, 0] + a[i, r]
    apart = a[i, q] - both[i, 0] / f32(N)
    variance[i] = f32(0)
    variance[i] = variance[i] + apart * apart
    p = Pipeline("variance", inputs=[a], outputs={variance: [M]})
    s = Schedule(p)
    s[variance].update().reorder(q, i)
    s[both].rolling_update(variance, q)
    values = rows(3, 10)
    out = p.compile(s, target="interpreter")(values)
    assert np.allclose(out, values.astype(np.float64).var(1) * 10, rtol=1e-5)
