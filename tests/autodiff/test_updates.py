"""Updates in reverse: folds, scans, writing over a part, tuples."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Pipeline,
    RDom,
    Size,
    Var,
    clamp,
    f64,
    i32,
    i64,
    isnan,
    maximum,
    select,
    tanh,
)
from tensorlang.autodiff import gradients
from tests.autodiff.checking import check_differences, check_torch

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")
X, x, y = Input("X", f64, [M, N]), Input("x", f64, [N]), Input("y", f64, [N])
TARGETS = ["interpreter", pytest.param("c", marks=pytest.mark.cc)]
every, rest = RDom("r", N), RDom("r", (1, N - 1))


def array(*shape):
    return np.random.default_rng(0).standard_normal(shape)


# --- folds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
def test_a_reduction(op, target):
    f = Func("f")
    f[i] = getattr(tl, op)(X[i, every] * X[i, every] + X[i, every], over=every)
    check_differences(Pipeline("p", inputs=[X], outputs={f: [M]}), [array(3, 4)], target=target)


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max"])
def test_a_reduction_that_starts_somewhere(op):
    f = Func("f")
    f[i] = getattr(tl, op)(X[i, every], over=every, initial=first_column()) + 1
    check_differences(Pipeline("p", inputs=[X], outputs={f: [M]}), [array(3, 4)])


def first_column():
    return X[i, 0] * 0.5 - 0.1


@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_prod_beside_zeros_as_torch(zeros):
    f = Func("f")
    f[i] = tl.prod(X[i, every], over=every)
    a = array(3, 4)
    a[1, :zeros] = 0
    check_torch(Pipeline("p", inputs=[X], outputs={f: [M]}), lambda x: x.prod(1), [a])


@pytest.mark.parametrize("op", ["min", "max"])
def test_ties_and_nan_of_an_extremum_as_amax(op):
    f = Func("f")
    f[i] = getattr(tl, op)(X[i, every], over=every)
    a = np.array([[1.0, 3, 3, -2, -2], [np.nan, 1, 2, 3, 3], [np.inf, -np.inf, 0, 0, np.inf]])
    check_torch(Pipeline("p", inputs=[X], outputs={f: [M]}), lambda x: getattr(x, f"a{op}")(1), [a])


def argmax_pairs():
    f = Func("f")
    f[i] = (f64(-np.inf), i64(0))
    best, at = f[i]
    better = (best < X[i, every]) | (isnan(X[i, every]) & ~isnan(best))
    f[i] = (select(better, X[i, every], best), select(better, i64(every), at))
    return f


def test_the_value_of_argmax_is_that_of_its_index():
    f, g = argmax_pairs(), Func("g")
    value, at = f[i]
    g[i] = value * value + X[i, clamp(at, 0, N - 1)]
    check_differences(Pipeline("p", inputs=[X], outputs={g: [M]}), [array(3, 5)])


def test_the_first_of_equal_values_as_max_over_a_dimension():
    f, g = argmax_pairs(), Func("g")
    g[i] = f[i][0]
    a = np.array([[1.0, 3, 3, 2], [2, 2, 2, 2]])
    check_torch(Pipeline("p", inputs=[X], outputs={g: [M]}), lambda x: x.max(1).values, [a])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "step",
    [lambda f, e: f + e, lambda f, e: f - e, lambda f, e: f * e, maximum],
    ids=["add", "subtract", "multiply", "maximum"],
)
def test_an_update_that_scatters(step, target):
    ids, f, g = Input("ids", i32, [N]), Func("f"), Func("g")
    at = clamp(ids[every], 0, N - 1)
    f[i] = x[i]
    f[at] = step(f[at], y[every] * x[every])
    g[i] = f[i] * f[i]
    pipeline = Pipeline("p", inputs=[x, y, ids], outputs={g: [N]})
    chosen = np.array([0, 3, 3, 1, 3], np.int32)
    check_differences(pipeline, [array(5), array(2, 5)[1], chosen], target=target)


@pytest.mark.parametrize(
    "step",
    [lambda f, e: f + e, lambda f, e: f * e, maximum],
    ids=["add", "multiply", "maximum"],
)
def test_an_update_that_scatters_along_rows_of_their_own(step):
    ids, f = Input("ids", i32, [M, N]), Func("f")
    at = clamp(ids[i, every], 0, 3)
    f[i, j] = 0.5 * f64(j)
    f[i, at] = step(f[i, at], X[i, every] * X[i, every])
    pipeline = Pipeline("p", inputs=[X, ids], outputs={f: [M, 4]})
    check_differences(pipeline, [array(2, 5), np.array([[0, 3, 3, 1, 3]] * 2, np.int32)])


# --- scans and writes ----------------------------------------------------------------------------


def multiply(f):
    f[i, rest] = f[i, rest - 1] * X[i, rest] + f[i, rest]


def recurrent(f):
    f[i, rest] = tanh(f[i, rest - 1] * 0.5 + X[i, rest])


def second_order(f):
    r = RDom("r", (2, N - 2))
    f[i, r] = f[i, r - 1] * X[i, r] + f[i, r - 2] * f[i, r - 1]


def clamped(f):
    f[i, every] = f[i, clamp(every - 1, 0, maximum(N - 1, 0))] * X[i, every]


def from_the_end(f):
    f[i, N - 1 - rest] = f[i, N - rest] * X[i, rest] + 1


def guarded_by_data(f):
    f[i, rest] = select(X[i, rest] > 0, f[i, rest - 1] * X[i, rest], X[i, rest])


def guarded_by_place(f):
    f[i, every] = select(every > 0, f[i, every - 1] * X[i, every], X[i, every])


def three_writes(f):
    f[i, 0] = X[i, 1] * f[i, 0]
    f[i, rest] = f[i, rest] * 2 + f[i, 0]
    f[1, j] = f[1, j] * f[1, j]


def old_values(f):
    r = RDom("r", N - 1)
    f[i, r] = f[i, r] + f[i, r + 1] * X[i, r]


def old_and_new_values(f):
    f[i, every] = f[i, every] + f[i, N - 1 - every] * X[i, every]


def where_odd(f):
    r = rest.where(rest % 2 == 1)
    f[i, r] = f[i, r - 1] * X[i, r]


def pointwise(f):
    f[i, every] = maximum(f[i, every], X[i, every] * 2)
    f[i, every] = f[i, every] * X[i, every]


def diagonal(f):
    f[i, i] = f[i, i] * X[i, 1] + f[i, 0]


def two_dimensions(f):
    r = RDom("r", (1, M - 1), (1, N - 1))
    f[r[0], r[1]] = f[r[0] - 1, r[1]] + f[r[0], r[1] - 1] * X[r[0], r[1]] - f[r[0] - 1, r[1] - 1]


SCANS = [
    multiply, recurrent, second_order, clamped, from_the_end, guarded_by_data, guarded_by_place,
    three_writes, old_values, old_and_new_values, where_odd, pointwise, diagonal,
    two_dimensions,
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("scan", SCANS)
def test_an_update_that_writes_each_element_once(scan, target):
    f, g = Func("f"), Func("g")
    f[i, j] = X[i, j]
    scan(f)
    g[i, j] = f[i, j] * X[i, j]
    pipeline = Pipeline("p", inputs=[X], outputs={g: [M, N]})
    check_differences(pipeline, [array(3, 5)], target=target)


def test_a_scan_of_pairs():
    f, g = Func("f"), Func("g")
    f[i, j] = (X[i, j], X[i, j] * 2)
    a, b = f[i, rest - 1]
    f[i, rest] = (a * 0.5 + b * X[i, rest], b * a)
    a, b = f[i, j]
    g[i, j] = a * b
    check_differences(Pipeline("p", inputs=[X], outputs={g: [M, N]}), [array(3, 5)])


def test_an_element_written_several_times_has_no_gradient():
    f = Func("f")
    f[i] = x[i]
    f[i] = f[i] * f[i] + y[every]
    with pytest.raises(DefinitionError, match="no-gradient") as caught:
        gradients(Pipeline("p", inputs=[x, y], outputs={f: [N]}))
    assert "f[i]*f[i] + y[r]" in str(caught.value)
    assert caught.value.span is not None
    assert caught.value.span.path == __file__
