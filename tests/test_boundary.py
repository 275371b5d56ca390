"""Boundary conditions are numpy.pad, on every side and in every dimension."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Pipeline,
    Size,
    Var,
    constant_exterior,
    f32,
    i32,
    mirror_image,
    mirror_interior,
    repeat_edge,
    repeat_image,
)

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")

MODES: dict[Callable[..., Func], dict[str, Any]] = {
    repeat_edge: {"mode": "edge"},
    repeat_image: {"mode": "wrap"},
    mirror_image: {"mode": "symmetric"},
    mirror_interior: {"mode": "reflect"},
    constant_exterior: {"mode": "constant", "constant_values": 7},
}
CONDITIONS = pytest.mark.parametrize("condition", MODES, ids=lambda f: f.__name__)


def made(condition: Callable[..., Func], source: Any, *rest: Any, **options: Any) -> Func:
    return condition(source, *((7,) if condition is constant_exterior else ()), *rest, **options)


def padded(condition: Callable[..., Func], pad: int) -> Pipeline:
    a, out = Input("A", i32, [M, N]), Func("out")
    out[i, j] = made(condition, a)[i - pad, j - pad]
    return Pipeline("padded", inputs=[a], outputs={out: [M + 2 * pad, N + 2 * pad]})


@CONDITIONS
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
@given(m=st.integers(1, 5), n=st.integers(1, 5), pad=st.integers(0, 12))
def test_outside_is_what_numpy_pads_with(condition, m: int, n: int, pad: int) -> None:
    a = np.arange(m * n, dtype=np.int32).reshape(m, n)
    out = padded(condition, pad).compile(target="interpreter")(a)
    assert np.array_equal(out, np.pad(a, pad, **MODES[condition]))


@CONDITIONS
def test_only_the_dimensions_that_were_given_have_an_edge(condition) -> None:
    a, f, out = Input("A", i32, [M, N + 2]), Func("f"), Func("out")
    f[i, j] = a[i, j] + 1
    edge = made(condition, f, bounds=[None, (1, N)])
    out[i, j] = edge[i, j - 3]
    pipeline = Pipeline("p", inputs=[a], outputs={out: [M, N + 8]})
    values = np.arange(15, dtype=np.int32).reshape(3, 5)
    expected = np.pad(values[:, 1:-1] + 1, ((0, 0), (4, 4)), **MODES[condition])
    assert np.array_equal(pipeline.compile(target="interpreter")(values), expected)


@CONDITIONS
def test_an_image_of_nothing_gives_nothing(condition) -> None:
    assert padded(condition, 0)(np.zeros((0, 3), np.int32)).shape == (0, 3)


def test_the_constant_has_the_dtype_of_the_array() -> None:
    a = Input("A", f32, [N])
    assert constant_exterior(a, 1).dtypes == (f32,)


def test_the_name_says_what_it_is_unless_one_is_given() -> None:
    a = Input("A", f32, [N])
    assert repeat_edge(a).name == "A_repeat_edge"
    assert repeat_edge(a, name="wide").name == "wide"


def test_a_func_has_no_edge_of_its_own() -> None:
    f = Func("f")
    f[i] = i32(i)
    with pytest.raises(DefinitionError, match="boundary-bounds"):
        repeat_edge(f)
    with pytest.raises(DefinitionError, match="boundary-bounds"):
        repeat_edge(f, [(0, 4), (0, 4)])


def test_one_constant_stands_for_no_tuple() -> None:
    f = Func("f")
    f[i] = (i32(i), f32(1))
    with pytest.raises(DefinitionError, match="tuple-boundary"):
        constant_exterior(f, 0, [(0, 4)])
