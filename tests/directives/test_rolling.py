"""rolling_update: softmax and attention in one pass, by repairs derived from the definitions."""

from functools import cache
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    exp,
    exp2,
    f32,
    fma,
    log,
    max,
    maximum,
    select,
    sum,
)  # fmt: skip
from tensorlang.ir.expr import Binary, Call, Expr, Load
from tensorlang.ir.printer import print_expr
from tensorlang.ir.repair import NoRepairError, Rolled, repair_of
from tensorlang.kernel import Kernel

M, N, D = Size("M"), Size("N"), Size("D")
i, j, d = Var("i"), Var("j"), Var("d")
TARGETS = ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]


def weighted(scaled: bool = False, causal: bool = False, later: bool = False) -> Pipeline:
    """O[i, d] = sum_j softmax_j(S[i, j]) V[j, d], over j <= i where causal, j >= i where later"""
    s, v = Input("S", f32, [M, N]), Input("V", f32, [N, D])
    m, p, total, out = Func("m"), Func("p"), Func("l"), Func("O")

    def over(name: str) -> RDom:
        r = RDom(name, N)
        return r.where(r <= i) if causal else r.where(r >= i) if later else r

    a, b, c = over("a"), over("b"), over("c")
    m[i] = max(s[i, a], over=a)
    if scaled:
        scale = Param("scale", f32)
        p[i, j] = exp2(fma(s[i, j], scale, -m[i] * scale))
    else:
        p[i, j] = exp(s[i, j] - m[i])
    total[i] = sum(p[i, b], over=b)
    out[i, d] = sum(p[i, c] * v[c, d], over=c) / total[i]
    return Pipeline("weighted", inputs=[s, v], outputs={out: [M, D]})


def rolled(p: Pipeline, tile: int, *, between: bool = False) -> Schedule:
    s = Schedule(p)
    s["O"].split(i, "io", "ii", 4)
    s["O_sum"].compute_at("O", "io")
    s["O_sum"].update().split("c", "co", "ci", tile).reorder("co", "i", "d", "ci")
    s["m"].rolling_update("O_sum", "co")
    if between:
        s["p"].compute_at("O_sum", "co")
    return s


def expected(s: np.ndarray, v: np.ndarray, scale: float | None = None, causal: bool = False):
    s = s.astype(np.float64) * (1 if scale is None else scale * np.log(2))
    if causal:
        s = np.where(np.arange(s.shape[1]) <= np.arange(s.shape[0])[:, None], s, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(1, keepdims=True))
        return (e @ v.astype(np.float64)) / e.sum(1, keepdims=True)


def draw(m: int, n: int, size: float = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m * 100 + n)
    scores = rng.standard_normal((m, n)) * size
    return scores.astype(np.float32), rng.standard_normal((n, 5)).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize(("m", "n"), [(7, 19), (3, 1)])
def test_one_pass_over_slices_gives_the_definition(target, between, m, n):
    p = weighted()
    kernel = p.compile(rolled(p, 8, between=between), target)
    s, v = draw(m, n)
    got = np.asarray(kernel(s, v))
    np.testing.assert_allclose(got, expected(s, v), rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_known_weights_by_slices_of_one(target):
    p = weighted()
    s = Schedule(p)
    s["O_sum"].compute_root().update().reorder("c", "i", "d")
    s["m"].rolling_update("O_sum", "c")
    scores = np.log(np.array([[1, 2, 4]], np.float32))
    got = p.compile(s, target)(scores, np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(got, [[1 / 7, 2 / 7, 4 / 7]], rtol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_leading_masked_slices_add_nothing_and_masked_rows_are_nan(target):
    p = weighted()
    kernel = p.compile(rolled(p, 4), target)
    s, v = draw(6, 13)
    s[1, :9] = -np.inf
    s[2] = -np.inf
    s[3, 4:] = -np.inf
    s[4, 0] = 1e14
    s[4, 1:] = -1.7e14
    s[5] = -1000 - np.arange(13)
    np.testing.assert_allclose(kernel(s, v), expected(s, v), rtol=2e-6, atol=2e-6)
    assert np.isnan(np.asarray(kernel(s, v))[2]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_a_scaled_exponent_is_repaired_by_the_same_scale(target):
    p = weighted(scaled=True)
    s, v = draw(7, 21)
    got = p.compile(rolled(p, 8), target)(s, v, scale=0.25)
    np.testing.assert_allclose(got, expected(s, v, 0.25), rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_domain_with_a_predicate_is_rolled_with_it(target):
    p = weighted(causal=True)
    s, v = draw(11, 11)
    s[7, :8] = -np.inf
    got = p.compile(rolled(p, 4), target)(s, v)
    np.testing.assert_allclose(got, expected(s, v, causal=True), rtol=2e-6, atol=2e-6)


def attention(causal: bool = True) -> Pipeline:
    """Scaled dot products with a domain that depends on the row."""
    q, k, v = Input("Q", f32, [M, 16]), Input("K", f32, [N, 16]), Input("V", f32, [N, 16])
    e = RDom("e", 16)
    score, m, p, total, out = Func("S"), Func("m"), Func("p"), Func("l"), Func("O")

    def over(name: str) -> RDom:
        r = RDom(name, N)
        return r.where(r <= i) if causal else r

    a, b, c = over("a"), over("b"), over("c")
    score[i, j] = sum(q[i, e] * k[j, e], over=e)
    m[i] = max(score[i, a], over=a)
    p[i, j] = exp(score[i, j] - m[i])
    total[i] = sum(p[i, b], over=b)
    out[i, d] = sum(p[i, c] * v[c, d], over=c) / total[i]
    return Pipeline("attention", inputs=[q, k, v], outputs={out: [M, 16]})


def tiled(p: Pipeline, rows: int, slices: int) -> Schedule:
    """Every step on tiles, as on a GPU."""
    s = Schedule(p)
    s["O"].split(i, "io", "ii", rows).reorder("io", "ii", d).gpu_blocks("io")
    s["O"].vectorize("ii").vectorize(d)
    s["O_sum"].compute_at("O", "io").vectorize(i).vectorize(d)
    s["O_sum"].update().split("c", "co", "ci", slices).reorder("co", i, d, "ci")
    s["O_sum"].update().vectorize(i).vectorize(d).vectorize("ci")
    s["m"].rolling_update("O_sum", "co")
    s["m"].vectorize(i).update().vectorize(i).vectorize("a")
    s["l"].vectorize(i).update().vectorize(i).vectorize("b")
    s["S"].compute_at("O_sum", "co").vectorize(i).vectorize(j)
    s["S"].update().vectorize(i).vectorize(j).vectorize("e")
    s["p"].compute_at("O_sum", "co").vectorize(i).vectorize(j)
    return s


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("m", "n"), [(19, 19), (5, 30), (30, 5)])
def test_tiles_of_a_domain_with_a_predicate_stay_whole_and_are_masked(target, m, n):
    p = attention()
    rng = np.random.default_rng(m)
    q, k, v = (rng.standard_normal((x, 16)).astype(np.float32) for x in (m, n, n))
    got = p.compile(tiled(p, 8, 4), target)(q, k, v)
    want = expected(q @ k.T, v, causal=True)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_a_definition_that_takes_nothing_for_zero_has_no_nan(target):
    """With a sink beside the scores: the largest of all is a function of the largest score."""
    s, v, sink = Input("S", f32, [M, N]), Input("V", f32, [N, D]), Input("sink", f32, [M])
    m, p, total, out = Func("m"), Func("p"), Func("l"), Func("O")
    a, b, c = RDom("a", N), RDom("b", N), RDom("c", N)
    m[i] = max(s[i, a], over=a)
    top = maximum(m[i], sink[i])
    finite = select(top == -inf, 0, top)
    p[i, j] = exp(s[i, j] - finite)
    total[i] = sum(p[i, b], over=b)
    weighed = sum(p[i, c] * v[c, d], over=c)
    out[i, d] = select(m[i] == -inf, 0, weighed / (total[i] + exp(sink[i] - finite)))
    pipeline = Pipeline("sinks", inputs=[s, v, sink], outputs={out: [M, D]})
    scores, values = draw(6, 13)
    scores[1, :9], scores[2] = -np.inf, -np.inf
    sinks = np.array([0, 1, 2, -np.inf, 30, -30], np.float32)
    got = pipeline.compile(rolled(pipeline, 4), target)(scores, values, sinks)
    beside = np.concatenate([scores, sinks[:, None]], 1).astype(np.float64)
    e = np.exp(beside - beside.max(1, keepdims=True))
    want = e[:, :-1] @ values / e.sum(1, keepdims=True)
    np.testing.assert_allclose(got, want, rtol=4e-6, atol=4e-6)


def test_slices_that_the_predicate_empties_are_skipped():
    p = weighted(causal=True)
    text = rolled(p, 4).loop_nest()
    assert "for co in [0, min(" in text
    assert "io*4" in text.split("for co in", 1)[1].split("\n", 1)[0]


def test_the_text_of_a_rolled_schedule_parses_back():
    p = weighted()
    s = rolled(p, 8)
    assert "s[m].rolling_update(O_sum, co)" in str(s)
    assert Schedule.parse(str(s), p) == s


def mean_first() -> Pipeline:
    x, mean, spread, out = Input("X", f32, [M, N]), Func("mean"), Func("spread"), Func("out")
    a, b = RDom("a", N), RDom("b", N)
    mean[i] = sum(x[i, a], over=a)
    spread[i] = sum((x[i, b] - mean[i]) * (x[i, b] - mean[i]), over=b)
    out[i] = spread[i]
    return Pipeline("spread", inputs=[x], outputs={out: [M]})


def test_a_term_that_does_not_come_apart_is_shown():
    p = mean_first()
    s = Schedule(p)
    s["spread"].compute_root().update().reorder("b", "i")
    s["mean"].rolling_update("spread", "b")
    with pytest.raises(ScheduleError, match="no-repair") as caught:
        p.lower(s)
    assert "X[spread.i, spread.b] - mean[spread.i]" in str(caught.value)


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["m"].rolling_update("m", "c"), "unknown-func"),
        (lambda s: s["m"].rolling_update("O", "i"), "not-a-reduction"),
        (lambda s: s["m"].rolling_update("O_sum", "q"), "unknown-loop"),
        (lambda s: s["m"].rolling_update("O_sum", "c"), "loop-not-outermost"),
        (
            lambda s: (
                s["O_sum"].update().reorder("c", "i", "d"),
                s["m"].rolling_update("O_sum", "c").update().split("a", "ao", "ai", 2),
            ),
            "domain-scheduled",
        ),
        (
            lambda s: (
                s["p"].compute_root(),
                s["O_sum"].update().reorder("c", "i", "d"),
                s["m"].rolling_update("O_sum", "c"),
            ),
            "other-consumer",
        ),
    ],
)
def test_what_cannot_be_rolled_is_refused(apply, code):
    p = weighted()
    s = Schedule(p)
    s["O_sum"].compute_root()

    def run() -> None:
        apply(s)
        p.lower(s)

    with pytest.raises(ScheduleError) as caught:
        run()
    assert caught.value.code == code


def test_repairs_are_derived_factor_by_factor():
    m = Load("m", (), 0, f32)
    before, after = Load("old", (), 0, f32), Load("new", (), 0, f32)
    rolled_values: dict[Expr, Rolled] = {m: Rolled(before, after)}
    x = Load("x", (Var("r"),), 0, f32)
    bound = frozenset(("r",))

    def rho(term: Expr) -> str:
        found = repair_of(term, rolled_values, bound)
        return "1" if found is None else print_expr(found)

    assert rho(x * 2) == "1"
    assert rho(exp(x - m) * x) == "exp(old[] - new[])"
    assert rho(x / m) == "old[]/new[]"
    assert rho(exp(x * 3 - m * 3)) == "exp(-(3.0:f32*(new[] - old[])))"
    # Any function of the rolled value alone, as a factor and in an exponent.
    assert rho(x * Call("sin", (m,), f32)) == "sin(new[])/sin(old[])"
    assert rho(exp(x - maximum(m, 2.0))) == "exp(max(old[], 2.0:f32) - max(new[], 2.0:f32))"
    for bad in (x + m, exp(x * m), Call("sin", (x * m,), f32), Binary("sub", x, m)):
        with pytest.raises(NoRepairError):
            repair_of(bad, rolled_values, bound)


def variance(power: int = 2) -> Pipeline:
    """The spread of each row about its mean."""
    x, total, mean, spread = Input("X", f32, [M, N]), Func("total"), Func("mean"), Func("spread")
    a, b, out = RDom("a", N), RDom("b", N), Func("out")
    total[i] = sum(x[i, a], over=a)
    mean[i] = total[i] / f32(N)
    term = x[i, b] - mean[i]
    for _ in range(power - 1):
        term = term * (x[i, b] - mean[i])
    spread[i] = sum(term, over=b)
    out[i] = spread[i] / f32(N)
    return Pipeline("variance", inputs=[x], outputs={out: [M]})


def one_read(p: Pipeline, tile: int) -> Schedule:
    s = Schedule(p)
    s["out"].split(i, "io", "ii", 4)
    s["spread"].compute_at("out", "io").update().split("b", "bo", "bi", tile)
    s["spread"].update().reorder("bo", "i", "bi")
    s["total"].rolling_update("spread", "bo")
    return s


@pytest.mark.parametrize("target", TARGETS)
def test_a_variance_is_repaired_about_the_mean_so_far(target):
    p = variance()
    kernel = p.compile(one_read(p, 8), target)
    for n in (1, 7, 8, 19, 37):
        x = draw(5, n)[0] + np.float32(100)
        want = x.astype(np.float64).var(1)
        np.testing.assert_allclose(kernel(x), want, rtol=2e-5, atol=1e-5)


def test_a_moment_that_no_member_holds_is_named():
    p = variance(power=3)
    with pytest.raises(ScheduleError, match="no-repair") as caught:
        p.lower(one_read(p, 8))
    assert "X[spread.i, spread.b]*X[spread.i, spread.b]" in str(caught.value)


@pytest.mark.parametrize("target", TARGETS)
def test_the_logarithm_of_a_sum_of_exponentials_in_one_read(target):
    x, m, total, out = Input("X", f32, [M, N]), Func("m"), Func("l"), Func("out")
    a, b = RDom("a", N), RDom("b", N)
    m[i] = max(x[i, a], over=a)
    total[i] = sum(exp(x[i, b] - m[i]), over=b)
    out[i] = m[i] + log(total[i])
    p = Pipeline("lse", inputs=[x], outputs={out: [M]})
    s = Schedule(p)
    s["out"].split(i, "io", "ii", 4)
    s["l"].compute_at("out", "io").update().split("b", "bo", "bi", 8).reorder("bo", "i", "bi")
    s["m"].rolling_update("l", "bo")
    scores, _ = draw(7, 29, size=40)
    want = np.logaddexp.reduce(scores.astype(np.float64), axis=1)
    np.testing.assert_allclose(p.compile(s, target)(scores), want, rtol=1e-6)


@cache
def kernel_of(tile: int, causal: bool) -> Kernel:
    p = weighted(causal=causal)
    return p.compile(rolled(p, tile), "interpreter")


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.sampled_from([1, 3, 8]), st.booleans()),
    st.integers(1, 9),
    st.integers(1, 17),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 16), st.integers(0, 17)), max_size=4),
    st.sampled_from([np.inf, np.nan, 3e4, -3e4]),
)
def test_drawn_masks_and_scores_give_the_definition(which, m, n, masked, odd):
    """Leading slices, trailing ones and whole rows of -inf; one odd score."""
    scores, values = draw(m, n)
    for row, first, last in masked:
        scores[row % m, first:last] = -np.inf
    scores[m // 2, n // 2] = odd
    got = kernel_of(*which)(scores, values)
    want = expected(scores, values, causal=which[1])
    np.testing.assert_allclose(got, want, rtol=4e-6, atol=4e-6)


def test_leading_slices_that_the_predicate_empties_are_skipped():
    p = weighted(later=True)
    assert "for co in [0," not in rolled(p, 4).loop_nest()
    s, v = draw(11, 11)
    masked = np.where(np.arange(11) >= np.arange(11)[:, None], s, np.float32(-np.inf))
    got = p.compile(rolled(p, 4), "interpreter")(s, v)
    np.testing.assert_allclose(got, expected(masked, v), rtol=2e-6, atol=2e-6)
