"""rfactor: partial results, then their sum; equal to the definition, and refused where unproven."""

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
    argmax,
    f32,
    i32,
    i64,
    maximum,
    min,
    sum,
)  # fmt: skip
from tensorlang.testing import assert_equivalent

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def total(extent: int) -> Pipeline:
    r, f = RDom("r", extent), Func("f")
    f[()] = sum(i64(r), over=r)
    return Pipeline("total", inputs=[], outputs={f: []})


def test_rfactor_of_a_split_min_keeps_padding_out():
    r, f = RDom("r", (5, 9)), Func("f")
    f[()] = min(i64(r), over=r, initial=10**6)
    p = Pipeline("smallest", inputs=[], outputs={f: []})
    s = Schedule(p)
    s[f].update().split(r, "ro", "ri", 4).split("ri", "rio", "rii", 3).rfactor("rio", "u")
    assert p.compile(s, "interpreter")() == 5


TUPLES = {
    "sums": lambda x, y, a, b: (x + a, y + a * b),
    "complex": lambda x, y, a, b: (x * a - y * b, x * b + y * a),
    "affine": lambda x, y, a, b: (a * x, a * y + b),
}


def of_tuples(name: str) -> Pipeline:
    a, b, r, f = Input("a", i32, [M, N]), Input("b", i32, [M, N]), RDom("r", N), Func("f")
    f[i] = (i32(0), i32(0)) if name == "sums" else (i32(1), i32(0))
    f[i] = TUPLES[name](f[i][0], f[i][1], a[i, r], b[i, r])
    return Pipeline("tuples", inputs=[a, b], outputs={f: [M]})


@pytest.mark.parametrize("target", ["interpreter", pytest.param("c", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", TUPLES)
def test_a_tuple_that_is_an_associative_polynomial_is_factored(name: str, target: str):
    p = of_tuples(name)
    s = Schedule(p)
    outer = s["f"].update().split("r", "ro", "ri", 4).rfactor("ro", "u")
    inner = s[outer].update().split("ri", "rio", "rii", 3).rfactor("rio", "v")
    s[outer].update().parallel("u")
    s[inner].update().vectorize("v")
    rng = np.random.default_rng(0)
    for n in (0, 1, 4, 13):
        arrays = [rng.integers(-9, 9, (3, n)).astype(np.int32) for _ in range(2)]
        assert_equivalent(p, s, target, arrays)
    assert Schedule.parse(str(s), p) == s


REALS = {
    "sum and largest": (0, 0, lambda x, y, a, b: (x + a, maximum(y, b))),
    "complex": (1, 0, TUPLES["complex"]),
    "affine": (1, 0, TUPLES["affine"]),
}


@pytest.mark.parametrize(
    "target", ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]
)
@pytest.mark.parametrize("name", REALS)
def test_a_tuple_of_floats_is_factored_as_a_sum_is(name: str, target: str):
    a, b, r, f = Input("a", f32, [M, N]), Input("b", f32, [M, N]), RDom("r", N), Func("f")
    first, second, step = REALS[name]
    f[i] = (f32(first), f32(second))
    f[i] = step(f[i][0], f[i][1], a[i, r], b[i, r])
    p = Pipeline("tuples", inputs=[a, b], outputs={f: [M]})
    s = Schedule(p)
    partial = s["f"].update().split("r", "ro", "ri", 4).rfactor("ro", "u")
    s[partial].update().reorder("u", i, "ri")
    rng = np.random.default_rng(0)
    for n in (0, 1, 4, 13):
        arrays = [rng.standard_normal((3, n)).astype(np.float32) for _ in "ab"]
        assert_equivalent(p, s, target, arrays)
    # Whole numbers are exact in any order.
    arrays = [rng.integers(-2, 3, (3, 7)).astype(np.float32) for _ in "ab"]
    x, y = np.full(3, first, np.float32), np.full(3, second, np.float32)
    for k in range(7):
        u, v = arrays[0][:, k], arrays[1][:, k]
        x, y = (x + u, np.maximum(y, v)) if name == "sum and largest" else step(x, y, u, v)
    found = p.compile(s, target=target)(*arrays)
    assert np.array_equal(found[0], x)
    assert np.array_equal(found[1], y)


def test_terms_that_do_not_commute_keep_their_order():
    update = Schedule(of_tuples("affine"))["f"].update().split("r", "ro", "ri", 4)
    with pytest.raises(ScheduleError, match="not-commutative"):
        update.rfactor("ri", "u")
    p = of_tuples("complex")
    s = Schedule(p)
    s["f"].update().split("r", "ro", "ri", 4).rfactor("ri", "u")
    rng = np.random.default_rng(0)
    assert_equivalent(p, s, "interpreter", [rng.integers(-9, 9, (3, 7), np.int32) for _ in "ab"])


def test_nested_rfactor_sums_everything_once():
    p = total(129)
    s = Schedule(p)
    outer = s["f"].update().split("r", "ro", "ri", 16).rfactor("ro", "u")
    inner = s[outer].update().split("ri", "rio", "rii", 5).rfactor("rio", "v")
    s[inner].update().parallel("v")
    assert p.compile(s, "interpreter")() == 8256


def test_the_new_func_has_the_factored_var_first_and_may_be_parallel():
    a, k, c = Input("A", f32, [M, K]), RDom("k", K), Func("C")
    c[i] = sum(a[i, k], over=k)
    p = Pipeline("rows", inputs=[a], outputs={c: [M]})
    s = Schedule(p)
    made = s[c].update().split(k, "ko", "ki", 8).rfactor("ko", "u")
    assert made.name == "C_u"
    assert s.state.funcs["C_u"].dims == ("u", "i")
    s[made].update().parallel("u")
    assert_equivalent(p, s, target="interpreter")


def test_argmax_by_parts_keeps_the_first_of_equal_values_and_nan_greatest():
    x, r, g = Input("X", f32, [M, N]), RDom("r", N), Func("g")
    g[i] = argmax(x[i, r], over=r)
    p = Pipeline("p", inputs=[x], outputs={g: [M]})
    s = Schedule(p)
    # Strided parts: the first of equal values is in no particular part.
    s["g_argmax"].update().split("r", "ro", "ri", 4).rfactor("ri", "u")
    values = np.random.default_rng(0).integers(0, 3, (7, 23)).astype(np.float32)
    values[2, 5] = values[2, 9] = np.nan
    values[3] = -np.inf
    np.testing.assert_array_equal(p.compile(s, "interpreter")(values), values.argmax(1))


@pytest.mark.parametrize(
    ("apply", "code"),
    [
        (lambda s: s["f"].update().rfactor("i", "u"), "not-a-reduction-loop"),
        (lambda s: s["f"].update().rfactor("r", "u"), "not-associative"),
        (lambda s: s["f"].rfactor("i", "u"), "not-a-reduction-loop"),
        (lambda s: s["f"].update().rfactor("r", "u", merge="later"), "unknown-merge"),
        (lambda s: s["f"].update().rfactor("q", "u"), "unknown-loop"),
    ],
)
def test_rfactor_is_refused_where_terms_cannot_be_grouped(apply, code):
    a, r, f = Input("A", i32, [M, K]), RDom("r", K), Func("f")
    f[i] = 1
    f[i] = f[i] * 2 + a[i, r]
    s = Schedule(Pipeline("p", inputs=[a], outputs={f: [M]}))
    with pytest.raises(ScheduleError) as caught:
        apply(s)
    assert caught.value.code == code


def test_rfactor_text_is_an_assignment_that_parses_back():
    p = total(100)
    s = Schedule(p)
    made = s["f"].update().split("r", "ro", "ri", 16).rfactor("ro", "u")
    s[made].update().parallel("u")
    assert str(s) == (
        "f_u = s[f].update(0).split(r, ro, ri, 16).rfactor(ro, u)\ns[f_u].update(0).parallel(u)"
    )
    assert Schedule.parse(str(s), p) == s


@pytest.mark.parametrize(
    "target", ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]
)
def test_partial_results_are_merged_by_atomics_inside_the_kernel(target: str):
    a, k, c = Input("A", f32, [M, K]), RDom("k", K), Func("C")
    c[i] = sum(a[i, k], over=k)
    p = Pipeline("rows", inputs=[a], outputs={c: [M]})
    s = Schedule(p)
    made = s[c].update().split(k, "ko", "ki", 16).rfactor("ko", "u", merge="atomic")
    s[c].update().reorder("ko", i).gpu_blocks("ko")
    s[c].gpu_blocks(i)
    s[made].compute_at(c, "ko").update().vectorize("ki")
    if target == "triton":
        pytest.importorskip("triton")
        kernel = p.compile(s, "triton")
        assert "tl.atomic_add" in kernel.source
        assert kernel.source.count("@triton.jit") == 2
    assert_equivalent(p, s, target=target)


@pytest.mark.cc
def test_a_merge_that_no_backend_has_is_noted():
    s = Schedule(total(100))
    s["f"].update().split("r", "ro", "ri", 16).rfactor("ro", "u", merge="last")
    [note] = total(100).compile(s, "c").notes
    assert note == "the hint merge=last of 'f_u' is ignored by the target c"


def test_an_argmax_is_not_merged_by_atomics():
    x, r, g = Input("X", f32, [M, N]), RDom("r", N), Func("g")
    g[i] = argmax(x[i, r], over=r)
    s = Schedule(Pipeline("p", inputs=[x], outputs={g: [M]}))
    with pytest.raises(ScheduleError, match="not-associative"):
        s["g_argmax"].update().split("r", "ro", "ri", 4).rfactor("ri", "u", merge="atomic")
    assert "g_argmax_u" not in s.state.funcs


def test_the_partial_results_are_what_is_added_up():
    p = total(32)
    s = Schedule(p)
    s["f"].update().split("r", "ro", "ri", 8).rfactor("ro", "u")
    assert "f[] = f[] + f_u[f.ro]" in str(p.lower(s))
