"""Every operation has the derivative that finite differences find, and torch's where none is."""

import numpy as np
import pytest
import torch

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, Size, Var, f16, f32, f64, select
from tensorlang.ir.functions import FUNCTIONS
from tests.autodiff.checking import check_differences, check_torch, gradient_of

N, i = Size("N"), Var("i")
FLAT = {"floor", "ceil", "round", "isnan", "isinf", "random_uniform"}


def pointwise(build, dtype=f64):
    x, y, out = Input("x", dtype, [N]), Input("y", dtype, [N]), Func("out")
    out[i] = build(x[i], y[i])
    return Pipeline("pointwise", inputs=[x, y], outputs={out: [N]})


def samples(seed=0):
    rng = np.random.default_rng(seed)
    return [0.3 + rng.random(7), 0.3 + rng.random(7)]


SMOOTH = {
    "+ - * /": lambda u, v: u * v - u / (v * v + 1) + 2 * u - v * -u,
    "a shared operand": lambda u, v: (u * v) * (u * v) + u * u,
    "fma": lambda u, v: tl.fma(u, v, u * u),
    "pow": lambda u, v: tl.pow(u, v),
    "minimum and maximum": lambda u, v: tl.maximum(u, v) * tl.minimum(u, v * 2),
    "clamp": lambda u, v: tl.clamp(u * v, 0.4, v),
    "select": lambda u, v: select(u < v, u * v, u) * v,
    "nested selects": lambda u, v: select(u < v, select(u < 0.5, u * v, v), u / v) + u,
    "rounding is flat": lambda u, v: tl.floor(u * 5) * v + tl.round(u * 3) * u + tl.ceil(v * 4) * u,
    "abs": lambda u, v: abs_of(u - v) * v,
    **{
        name: lambda u, v, name=name: tl.ir.functions.call(name, u) * v
        for name, row in FUNCTIONS.items()
        if row.arity == 1 and name not in FLAT and not name.startswith("approx")
    },
}


def abs_of(e):
    return tl.abs(e)


@pytest.mark.parametrize("name", SMOOTH)
def test_an_operation_has_its_derivative(name):
    check_differences(pointwise(SMOOTH[name]), samples())


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n.startswith("approx")])
def test_a_cheap_form_has_the_derivative_of_what_it_approximates(name):
    exact = {"approx.rcp": lambda u, v: 1 / u}.get(
        name, lambda u, v: getattr(tl, name.removeprefix("approx."))(u)
    )
    cheap, _ = gradient_of(pointwise(lambda u, v: tl.ir.functions.call(name, u) + v), samples())
    found, _ = gradient_of(pointwise(lambda u, v: exact(u, v) + v), samples())
    np.testing.assert_allclose(cheap[0], found[0], rtol=5e-3)


def test_every_function_has_a_derivative_or_is_flat():
    from tensorlang.autodiff.derivatives import _CALLS

    assert set(_CALLS) | FLAT == set(FUNCTIONS)


EDGES = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.nan], np.float32)
PAIRS = [a.ravel().copy() for a in np.meshgrid(EDGES, EDGES)]
AT_EDGES = {
    "abs": (lambda u, v: tl.abs(u) + v, lambda u, v: torch.abs(u) + v),
    "sqrt": (lambda u, v: tl.sqrt(u) + v, lambda u, v: torch.sqrt(u) + v),
    "maximum": (tl.maximum, torch.maximum),
    "minimum": (tl.minimum, torch.minimum),
    "clamp": (lambda u, v: tl.clamp(u, 0, 1) + v, lambda u, v: torch.clamp(u, 0, 1) + v),
    "clamp between": (
        lambda u, v: tl.clamp(u, v, 1.0 + v * 0),
        lambda u, v: torch.clamp(u, v, 1.0 + v * 0),
    ),
    "pow": (tl.pow, torch.pow),
    "round": (lambda u, v: tl.round(u) * v, lambda u, v: torch.round(u) * v),
    "division": (lambda u, v: u / v, torch.div),
}


@pytest.mark.parametrize("name", AT_EDGES)
def test_where_there_is_no_derivative_it_is_that_of_torch(name):
    mine, theirs = AT_EDGES[name]
    check_torch(pointwise(mine, f32), theirs, PAIRS, tolerance=1e-6)


def test_a_side_that_is_not_chosen_counts_for_nothing():
    pipeline = pointwise(lambda u, v: select(u > 0, tl.log(u) / u, v))
    (gx, gy), (bar,) = gradient_of(pipeline, [np.array([0.0, -1.0]), np.ones(2)])
    assert np.array_equal(gx, [0.0, 0.0])
    assert np.array_equal(gy, bar)


def test_half_precision_is_differentiated_in_f32_and_rounded_once():
    pipeline = pointwise(lambda u, v: u * v * u, f16)
    x, y = (a.astype(np.float16) for a in samples())
    (gx, gy), (bar,) = gradient_of(pipeline, [x, y])
    assert gx.dtype == np.float16
    u, v, g = (a.astype(np.float32) for a in (x, y, bar))
    inner = (x * y).astype(np.float32)
    assert np.array_equal(gy, ((g * u) * u).astype(np.float16))
    assert np.array_equal(gx, (g * inner + (g * u) * v).astype(np.float16))


def test_a_cast_passes_floats_and_stops_integers():
    pipeline = pointwise(lambda u, v: f64(f32(u)) * v + f64(tl.i32(v * 3)))
    x, y = samples()
    (gx, gy), (bar,) = gradient_of(pipeline, [x, y])
    np.testing.assert_allclose(gx, (bar * y).astype(np.float32))
    np.testing.assert_allclose(gy, bar * x.astype(np.float32))
