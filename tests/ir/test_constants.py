"""Constants fold to what the operation gives, and to nothing where that is not exact."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.constants import fold_constants
from tensorlang.ir.expr import Binary, Call, Cast, Compare, Const, Expr, Param, Select, Unary
from tensorlang.ir.types import (
    DType,
    bf16,
    bool_,
    f8e4m3,
    f16,
    f32,
    f64,
    i8,
    i32,
    index,
    tf32,
    u8,
    u32,
)
from tests.ir.evaluation import same, value_of

NUMPY = {f16: np.float16, f32: np.float32, f64: np.float64}
floats = st.floats(width=32) | st.sampled_from([0.0, -0.0, math.inf, math.nan, 1e-45, 3.0])


def folded(e: Expr) -> object:
    result = fold_constants(e)
    assert isinstance(result, Const)
    return result.value


@given(
    st.sampled_from([f16, f32, f64]), st.sampled_from(["add", "sub", "mul", "div"]), floats, floats
)
def test_float_arithmetic_is_that_of_numpy(dtype: DType, op: str, a: float, b: float):
    kind = NUMPY[dtype]
    with np.errstate(all="ignore"):
        x, y = kind(a), kind(b)
        expected = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op](
            x, y
        )
    found = folded(Binary(op, Const(float(x), dtype), Const(float(y), dtype)))
    assert same(float(expected), found)


@given(st.sampled_from(["add", "mul"]), floats, floats)
def test_bf16_rounds_after_each_operation(op: str, a: float, b: float):
    x, y = Const(a, bf16), Const(b, bf16)
    wide = Binary(op, Const(x.value, f32), Const(y.value, f32))
    assert same(folded(Binary(op, x, y)), Const(folded(wide), bf16).value)  # type: ignore[arg-type]


_OPS = ["add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr"]


@given(st.sampled_from([i8, u8, i32, u32]), st.sampled_from(_OPS), st.data())
def test_integer_arithmetic_wraps(dtype: DType, op: str, data: st.DataObject):
    numbers = st.integers(dtype.lowest, dtype.highest)
    a, b = data.draw(numbers), data.draw(numbers | st.sampled_from([0, 1, 2, 7]))
    e = Binary(op, Const(a, dtype), Const(b, dtype))
    result = fold_constants(e)
    assert value_of(result, {}) == value_of(e, {})


CALLS = [
    ("abs", i8, -128, -128),
    ("abs", f32, -0.0, 0.0),
    ("floor", f32, -0.5, -1.0),
    ("ceil", f32, -0.5, -0.0),
    ("round", f32, 2.5, 2.0),
    ("round", f32, -0.4, -0.0),
    ("sqrt", f32, 2.0, float(np.sqrt(np.float32(2)))),
    ("sqrt", f32, -1.0, math.nan),
    ("floor", f32, math.inf, math.inf),
]


@pytest.mark.parametrize(("function", "dtype", "argument", "expected"), CALLS)
def test_strict_functions(function: str, dtype: DType, argument: float, expected: float):
    assert same(folded(Call(function, (Const(argument, dtype),), dtype)), expected)


def test_tests_of_floats():
    assert folded(Call("isnan", (Const(math.nan, f32),), bool_)) is True
    assert folded(Call("isinf", (Const(-math.inf, f32),), bool_)) is True


NOT_FOLDED = [
    Call("exp", (Const(1.0, f32),), f32),
    Binary("add", Const(1.0, f8e4m3), Const(1.0, f8e4m3)),
    Binary("mul", Const(1.0, tf32), Const(1.0, tf32)),
    Binary("shl", Const(1, index), Const(3, index)),
    Binary("add", Param("p", i32), Const(1, i32)),
    Select(Param("c", bool_), Const(1, i32), Const(2, i32)),
]


@pytest.mark.parametrize("e", NOT_FOLDED)
def test_what_is_not_exact_or_not_constant_stays(e: Expr):
    assert fold_constants(e) is e


def test_conditions_casts_and_signs():
    assert folded(Compare("lt", Const(math.nan, f32), Const(1.0, f32))) is False
    assert folded(Compare("ne", Const(math.nan, f32), Const(math.nan, f32))) is True
    assert folded(Cast(i8, Const(300.7, f32))) == 127
    assert folded(Cast(i8, Const(300, i32))) == 44
    assert folded(Unary("not", Const(5, u8))) == 250
    assert folded(Unary("neg", Const(-128, i8))) == -128
    chosen = Select(Const(True, bool_), Param("p", i32), Const(2, i32))
    assert fold_constants(chosen) is chosen.a
