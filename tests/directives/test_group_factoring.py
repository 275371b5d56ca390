"""rfactor of a rolling group: its slices on their own, merged by the derived repair."""

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    exp,
    f32,
    max,
    sum,
)
from tensorlang.kernel import Kernel
from tensorlang.testing import assert_equivalent

M, N, D = Size("M"), Size("N"), Size("D")
i, j, d = Var("i"), Var("j"), Var("d")
TARGETS = ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]


def weighted(causal: bool = False, width: Size | int = D) -> Pipeline:
    """O[i, d] = sum_j softmax_j(S[i, j]) V[j, d]"""
    s, v = Input("S", f32, [M, N]), Input("V", f32, [N, width])
    m, p, total, out = Func("m"), Func("p"), Func("l"), Func("O")
    a, b, c = (r.where(r <= i) if causal else r for r in (RDom(name, N) for name in "abc"))
    m[i] = max(s[i, a], over=a)
    p[i, j] = exp(s[i, j] - m[i])
    total[i] = sum(p[i, b], over=b)
    out[i, d] = sum(p[i, c] * v[c, d], over=c) / total[i]
    return Pipeline("weighted", inputs=[s, v], outputs={out: [M, width]})


def split(p: Pipeline, part: int, *, kept: bool = False, rolled: int = 0) -> Schedule:
    """Parts of `part` points; kept: all three partial results in one Func at root."""
    s = Schedule(p)
    s["O_sum"].update().split("c", "co", "ci", part)
    s["m"].rolling_update("O_sum", "co")
    made = s["O_sum"].update().rfactor("co", "u")
    assert made.name == "O_sum_u"
    if kept or rolled:
        s["O_sum_u_all"].compute_root()
        s[made].compute_at("O_sum_u_all", "i")
    if rolled:
        s[made].update().split("ci", "ro", "ri", rolled).reorder("ro", "u", "i", "d", "ri")
        s["m_u"].rolling_update(made, "ro")
    elif kept:
        s["m_u"].compute_at("O_sum_u_all", "i")
        s["l_u"].compute_at("O_sum_u_all", "i")
    return s


def draw(m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(m * 100 + n)
    scores = rng.standard_normal((m, n)) * 3
    return scores.astype(np.float32), rng.standard_normal((n, 5)).astype(np.float32)


def expected(s: np.ndarray, v: np.ndarray, causal: bool = False) -> np.ndarray:
    s = s.astype(np.float64)
    if causal:
        s = np.where(np.arange(s.shape[1]) <= np.arange(s.shape[0])[:, None], s, -np.inf)
    with np.errstate(invalid="ignore"):
        e = np.exp(s - s.max(1, keepdims=True))
        return (e @ v.astype(np.float64)) / e.sum(1, keepdims=True)


def test_partial_results_are_merged_by_the_derived_repair(golden) -> None:
    p = weighted()
    golden(f"{split(p, 8)}\n\n{p.lower(split(p, 8))}")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", [{}, {"kept": True}, {"rolled": 3}])
def test_any_number_of_parts_gives_the_definition(target, how):
    p = weighted()
    kernel = p.compile(split(p, 8, **how), target)
    # 0 to 5 parts, as the call has it.
    for n in (1, 7, 8, 9, 37):
        s, v = draw(5, n)
        s[1, : n - 1] = -np.inf
        s[2] = -np.inf
        s[3, 0], s[3, 1:] = 1e14, -1.7e14
        np.testing.assert_allclose(kernel(s, v), expected(s, v), rtol=4e-6, atol=4e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_parts_that_a_predicate_empties_add_nothing(target):
    p = weighted(causal=True)
    s, v = draw(11, 30)
    s[7, :8] = -np.inf
    got = p.compile(split(p, 4, rolled=2), target)(s, v)
    np.testing.assert_allclose(got, expected(s, v, causal=True), rtol=4e-6, atol=4e-6)


def variance() -> Pipeline:
    x, total, mean, spread = Input("X", f32, [M, N]), Func("total"), Func("mean"), Func("spread")
    a, b, out = RDom("a", N), RDom("b", N), Func("out")
    total[i] = sum(x[i, a], over=a)
    mean[i] = total[i] / f32(N)
    spread[i] = sum((x[i, b] - mean[i]) * (x[i, b] - mean[i]), over=b)
    out[i] = spread[i] / f32(N)
    return Pipeline("variance", inputs=[x], outputs={out: [M]})


@pytest.mark.parametrize("target", TARGETS)
def test_a_variance_of_parts_is_merged_about_the_mean_of_all(target):
    p = variance()
    s = Schedule(p)
    s["spread"].update().split("b", "bo", "bi", 8)
    s["total"].rolling_update("spread", "bo")
    s["spread"].update().rfactor("bo", "u")
    kernel = p.compile(s, target)
    for n in (1, 8, 19):
        x = draw(5, n)[0] + np.float32(100)
        np.testing.assert_allclose(kernel(x), x.astype(np.float64).var(1), rtol=2e-5, atol=1e-5)


def test_it_is_the_reference_within_its_bound():
    p = weighted()
    assert_equivalent(p, split(p, 4, rolled=2), target="interpreter")


def test_the_text_of_a_factored_group_parses_back():
    p = weighted()
    s = split(p, 8, rolled=2)
    assert "O_sum_u = s[O_sum].update(0).rfactor(co, u)" in str(s)
    assert Schedule.parse(str(s), p) == s


def test_what_nobody_reads_any_more_is_gone():
    p = weighted()
    s = split(p, 8)
    made = {"m_u", "p_u", "l_u", "O_sum_u", "O_sum_u_all"}
    assert set(s.state.funcs) == made | {"m", "l", "O_sum", "O"}
    with pytest.raises(ScheduleError, match="unknown-func"):
        s["p"].compute_root()


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["l"].update().vectorize("b"), "loops-scheduled"),
        (lambda s: s["O_sum"].update().split("ci", "cio", "cii", 2), "domain-scheduled"),
        (lambda s: s["O_sum"].update().split("d", "do", "di", 2), "loops-scheduled"),
    ],
)
def test_what_cannot_be_factored_is_refused(apply, code):
    s = Schedule(weighted())
    s["O_sum"].update().split("c", "co", "ci", 8)
    s["m"].rolling_update("O_sum", "co")
    apply(s)
    with pytest.raises(ScheduleError) as caught:
        s["O_sum"].update().rfactor("co", "u")
    assert caught.value.code == code


def test_atomics_merge_no_group():
    s = Schedule(weighted())
    s["O_sum"].update().split("c", "co", "ci", 8)
    s["m"].rolling_update("O_sum", "co")
    with pytest.raises(ScheduleError, match="unknown-merge"):
        s["O_sum"].update().rfactor("co", "u", merge="atomic")


def in_one_launch(p: Pipeline) -> Schedule:
    """Rows in tiles of 4, columns in parts of 8: a program each; the last of a row merges."""
    s = Schedule(p)
    s["O_sum"].update().split("c", "co", "ci", 8)
    s["m"].rolling_update("O_sum", "co")
    made = s["O_sum"].update().rfactor("co", "u", merge="last")
    for name, rest in (("O_sum_u_all", ["u"]), ("O", [])):
        s[name].split(i, "io", "ii", 4).reorder("io", *rest, "ii", d)
        s[name].gpu_blocks("io", *rest).vectorize("ii").vectorize(d)
    s["O_sum_u_all"].compute_root()
    for name, into, loop in (
        *((f, "O_sum_u_all", "u") for f in ("m_u", "l_u", made)),
        *((f, "O", "io") for f in ("m", "l", "O_sum")),
    ):
        s[name].compute_at(into, loop).vectorize(i)
        s[name].update().vectorize(i)
    for name, r in (("m_u", "ci"), ("l_u", "ci"), ("m", "co"), ("l", "co")):
        s[name].update().vectorize(r)
    s["O_sum"].vectorize(d).update().reorder("co", i, d).vectorize(d)
    s[made].vectorize(d).update().reorder("u", i, d, "ci").vectorize(d)
    return s


@pytest.mark.parametrize("shape", [(5, 21), (8, 16), (1, 1), (0, 4)])
def test_the_last_part_of_a_group_merges_it_in_the_same_launch(shape):
    p = weighted(width=5)
    kernel = p.compile(in_one_launch(p), "triton")
    assert kernel.notes == ()
    # The other kernel is for no columns at all, of which there are no parts.
    assert kernel.source.count("@triton.jit") == 2
    assert "tl.atomic_add" in kernel.source
    scores, values = draw(*shape)
    scores[:1, :8] = -np.inf  # a part without weight
    for _ in range(2):  # the counters are left at zero
        got = kernel(torch.from_numpy(scores), torch.from_numpy(values))
        wanted = expected(scores, values)
        np.testing.assert_allclose(got, wanted, rtol=4e-6, atol=4e-6)


def test_a_name_that_is_taken_is_refused():
    s = Schedule(weighted())
    s["m"].update().split("a", "ao", "ai", 4).rfactor("ao", "u")
    s["O_sum"].update().split("c", "co", "ci", 8)
    s["m"].rolling_update("O_sum", "co")
    with pytest.raises(ScheduleError):
        s["O_sum"].update().rfactor("co", "u")


def test_a_term_that_does_not_come_apart_is_shown():
    x, mean, spread = Input("X", f32, [M, N]), Func("mean"), Func("spread")
    a, b = RDom("a", N), RDom("b", N)
    mean[i] = sum(x[i, a], over=a)
    spread[i] = sum((x[i, b] - mean[i]) * (x[i, b] - mean[i]), over=b)
    s = Schedule(Pipeline("spread", inputs=[x], outputs={spread: [M]}))
    s["spread"].update().split("b", "bo", "bi", 8)
    s["mean"].rolling_update("spread", "bo")
    with pytest.raises(ScheduleError, match="no-repair") as caught:
        s["spread"].update().rfactor("bo", "u")
    assert "X[i, b] - mean[i]" in str(caught.value)


@cache
def kernel_of(part: int) -> Kernel:
    p = weighted()
    return p.compile(split(p, part, rolled=2), "interpreter")


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from([1, 3, 8]),
    st.integers(1, 9),
    st.integers(1, 17),
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 16), st.integers(0, 17)), max_size=4),
    st.sampled_from([np.inf, np.nan, 3e4, -3e4]),
)
def test_drawn_masks_and_scores_give_the_definition(part, m, n, masked, odd):
    """Parts and whole rows of -inf; one odd score."""
    scores, values = draw(m, n)
    for row, first, last in masked:
        scores[row % m, first:last] = -np.inf
    scores[m // 2, n // 2] = odd
    got = kernel_of(part)(scores, values)
    np.testing.assert_allclose(got, expected(scores, values), rtol=4e-6, atol=4e-6)
