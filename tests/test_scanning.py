"""cumsum, cumprod, cummax: definitions made of scans, on every target."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    cummax,
    cumprod,
    cumsum,
    f16,
    f32,
    i32,
    sum,
    u8,
)
from tensorlang.testing import assert_equivalent

M, K = Size("M"), Size("K")
i, j = Var("i"), Var("j")
TARGETS = ("reference", "interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


def rows(scan, dtype=f32) -> Pipeline:
    a, k, c = Input("A", dtype, [M, K]), RDom("k", K), Func("C")
    c[i, k] = scan(a[i, k], over=k)
    return Pipeline("rows", inputs=[a], outputs={c: [M, K]})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax"])
def test_a_scan_is_what_numpy_says(target, name):
    a = np.arange(12, dtype=np.int32).reshape(3, 4)[:, ::-1] - 4
    expected = {"cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate}[name]
    p = rows(getattr(tl, name), i32)
    assert np.array_equal(np.asarray(p.compile(target=target)(a)), expected(a, axis=1))


@pytest.mark.parametrize("target", TARGETS[1:])
def test_the_pure_axis_is_scheduled_as_any_other(target):
    p = rows(cumsum)
    s = Schedule(p)
    s["C"].split(i, "io", "ii", 4).gpu_blocks("io").vectorize("ii")
    s["C"].update(0).split(i, "io", "ii", 4).reorder("io", "k", "ii").gpu_blocks("io")
    s["C"].update(0).vectorize("ii")
    assert_equivalent(p, s, target)


def test_narrow_terms_accumulate_wider_and_nan_stays():
    assert rows(cumsum, f16).algorithm.func("C").dtypes == (f32,)
    assert rows(cumprod, u8).algorithm.func("C").dtypes == (tl.u32,)
    assert rows(cummax, f16).algorithm.func("C").dtypes == (f16,)
    a = np.array([[1, np.nan, 2, np.inf]], np.float32)
    out = rows(cummax).compile(target="interpreter")(a)
    assert np.array_equal(out, [[1, np.nan, np.nan, np.nan]], equal_nan=True)


@pytest.mark.parametrize("target", TARGETS)
def test_scans_inside_an_expression_are_funcs_of_their_own(target):
    a, k, d = Input("A", f32, [M, K]), RDom("k", K), Func("D")
    d[i, k] = cumsum(a[i, k], over=k) / (cumsum(a[i, k] * a[i, k], over=k) + 1) - a[i, k]
    p = Pipeline("p", inputs=[a], outputs={d: [M, K]})
    assert {f.name for f in p.algorithm.funcs} == {"D_cumsum", "D_cumsum_1", "D"}
    assert p.algorithm.func("D").is_pure
    assert_equivalent(p, None, target)


@pytest.mark.parametrize("target", TARGETS)
def test_a_scan_of_a_reduction_over_part_of_an_axis(target):
    a, k, n, c = Input("A", f32, [M, K]), RDom("k", (2, 5)), RDom("n", M), Func("C")
    c[k] = cumsum(sum(a[n, k], over=n), over=k)
    p = Pipeline("p", inputs=[a], outputs={c: [9]})
    a = np.arange(36, dtype=np.float32).reshape(4, 9)
    out = np.asarray(p.compile(target=target)(a))
    expected = np.zeros(9, np.float32)
    expected[2:7] = np.cumsum(a.sum(axis=0)[2:7])
    assert np.array_equal(out, expected)
    assert_equivalent(p, None, target, [a])


GUARDS = {
    "at the first": lambda r, first, step: tl.select(r == 0, first, step),
    "not at the first": lambda r, first, step: tl.select(r != 0, step, first),
    "after the first": lambda r, first, step: tl.select(r >= 1, step, first),
}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("extent", [K, 1, 3])
def test_a_guard_keeps_a_scan_inside_its_output(extent, guard, backwards):
    a, r, f = Input("A", i32, [extent]), RDom("r", extent), Func("f")
    f[i] = a[i]
    at, before = (extent - 1 - r, extent - r) if backwards else (r, r - 1)
    f[at] = GUARDS[guard](r, f[at], f[before] * 2 + f[at])
    p = Pipeline("p", inputs=[a], outputs={f: [extent]})
    values = [[5], [5, 7], [1, 2, 3]][{1: 0, 3: 2}.get(extent, 1)]
    expected = values[::-1] if backwards else list(values)
    for k in range(1, len(expected)):
        expected[k] += 2 * expected[k - 1]
    for target in ("reference", "interpreter"):
        found = p.compile(target=target)(np.array(values, np.int32))
        assert found.tolist() == (expected[::-1] if backwards else expected)
    if extent is K:
        assert p.compile(target="interpreter")(np.array([4], np.int32)).tolist() == [4]
        assert p.compile(target="interpreter")(np.zeros(0, np.int32)).tolist() == []


def test_the_text_of_a_scan_reads_back():
    p = rows(cumsum)
    assert tl.parse(str(p)).pipelines["rows"].algorithm == p.algorithm


@pytest.mark.parametrize(
    ("define", "code"),
    [
        (lambda a, k, c: c.__setitem__((i, j), cumsum(a[i, k], over=k)), "scan-not-on-the-left"),
        (lambda a, k, c: cumsum(a[i, k], over="k"), "over-not-a-domain"),
        (lambda a, k, c: cumsum(a[i, k], over=k.where(k < 3)), "scan-domain"),
        (
            lambda a, k, c: c.__setitem__(i, sum(cumsum(a[i, k], over=k), over=k)),
            "scan-misplaced",
        ),
    ],
)
def test_what_is_no_scan_is_refused(define, code):
    with pytest.raises(DefinitionError) as caught:
        define(Input("A", f32, [M, K]), RDom("k", K), Func("C"))
    assert caught.value.code == code
