"""The gradient of any small pipeline is what finite differences find."""

import os

import numpy as np
from hypothesis import HealthCheck, Phase, assume, given, reject, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang import DefinitionError, Func, Input, Pipeline, RDom, Size, Var, f64, select
from tensorlang.testing.families import FAMILIES
from tensorlang.testing.strategies import inputs
from tests.autodiff.checking import check_differences

N, i = Size("N"), Var("i")
X = Input("X", f64, [N + 3, N + 3])
x = Input("x", f64, [N + 3])
FLOATS = [family for family in FAMILIES if family.__name__ != "matmul"]

UNARY = (tl.sin, tl.tanh, tl.sigmoid, tl.abs, lambda u: tl.exp(-u * u), lambda u: -u)
BINARY = (
    lambda u, v: u + v,
    lambda u, v: u - v,
    lambda u, v: u * v,
    lambda u, v: u / (1 + v * v),
    tl.maximum,
    tl.minimum,
    lambda u, v: select(u < v, u * v, u),
    lambda u, v: tl.clamp(u, -0.5, v),
)


def examples(number: int) -> settings:
    number = int(os.environ.get("TENSORLANG_EXAMPLES", number))
    # Shrinking would run thousands of calls.
    phases = (Phase.explicit, Phase.reuse, Phase.generate)
    return settings(
        max_examples=number, deadline=None, phases=phases, suppress_health_check=list(HealthCheck)
    )


@st.composite
def leaves(draw, variable):
    """A read of the vector or of the matrix near a point."""
    a, b = draw(st.integers(0, 3)), draw(st.integers(0, 3))
    return draw(
        st.sampled_from(
            (x[variable + a], X[variable + a, b], X[a, variable + b], X[variable + a, variable + b])
        )
    )


def terms(variable):
    return st.recursive(
        leaves(variable),
        lambda inner: (
            st.builds(lambda op, u: op(u), st.sampled_from(UNARY), inner)
            | st.builds(lambda op, u, v: op(u, v), st.sampled_from(BINARY), inner, inner)
        ),
        max_leaves=6,
    )


@examples(25)
@given(st.data())
def test_any_expression(data):
    r, f = RDom("r", N), Func("f")
    f[i] = data.draw(terms(i)) * tl.sum(data.draw(terms(r)), over=r) + data.draw(terms(i))
    pipeline = Pipeline("p", inputs=[x, X], outputs={f: [N]})
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n = data.draw(st.integers(1, 3))
    arrays = [rng.standard_normal(n + 3), rng.standard_normal((n + 3, n + 3))]
    check_differences(pipeline, arrays, {"N": n}, tolerance=1e-4, target="reference")


@examples(40)
@given(st.data())
def test_any_pipeline_of_the_families(data):
    pipeline = data.draw(st.sampled_from(FLOATS), label="family")(data.draw, f64)
    algorithm = pipeline.algorithm
    assume(any(t.is_float for name, _ in algorithm.outputs for t in algorithm.func(name).dtypes))
    case = data.draw(inputs(pipeline, sizes=(0, 1, 2, 3), special=False))
    arrays = [np.asarray(a) for a in case.arrays]
    try:
        check_differences(pipeline, arrays, case.sizes, tolerance=1e-4, target="interpreter")
    except DefinitionError as error:
        if error.code != "no-gradient":
            raise
        # Elements that are written several times over have none, and are refused as such.
        reject()
