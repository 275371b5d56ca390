"""Expressions over sizes and params as numbers."""

import math

import pytest

from tensorlang.calling.evaluate import evaluate
from tensorlang.errors import InternalError
from tensorlang.ir import functions as f
from tensorlang.ir.expr import Const, Load, Param, Size, as_expr
from tensorlang.ir.types import f16, f32, f64, i8, i32, i64, index, u8, u64

M, N = Size("M"), Size("N")
a, b = Param("a", i32), Param("b", i32)
x, y = Param("x", f32), Param("y", f16)


@pytest.mark.parametrize(
    ("e", "value"),
    [
        (M * N - 3, 32),
        (-M // 3, -3),
        (-M % 3, 2),
        (M // (N - 5), 0),
        (M % (N - 5), 0),
        (f.minimum(M, N) + f.maximum(M, N), 12),
        (f.abs(N - M), 2),
        (M << N, 224),
        (f.select(M > N, M, N), 7),
        (i64(M) * Const(1 << 61, i64), 7 * (1 << 61) - (1 << 64)),
        ((M * (1 << 62)) // (1 << 60), 28),
        (~(M > N), False),
        ((M > N) & (N == 5), True),
        (f.promise(M, 0, 9) + 1, 8),
    ],
)
def test_sizes_are_exact(e, value):
    assert evaluate(as_expr(e), {"M": 7, "N": 5}) == value


@pytest.mark.parametrize(
    ("e", "value"),
    [
        (a // b, -4),
        (a % b, -1),
        (a // (b + 2), 0),
        (a * (1 << 30), 7 * (1 << 30) - (1 << 33)),
        (i8(a * 100), -68),
        (u8(x * -300), 0),
        (i32(x / 0), (1 << 31) - 1),
        (x + 1e-9, 1.5),
        (y * 3, 4.5),
        (f64(x) / 3, 0.5),
        (f.sqrt(x * 6), 3.0),
        (f.floor(x), 1.0),
        (f.isnan(x - x / 0 + x / 0), True),
        (f32(u64(1)) / 3, 0.3333333432674408),
        (index(x), 1),
        (f.exp(x) > 4.4, True),
        (f.select(x > y, x, 2.0), 2.0),
    ],
)
def test_params_have_their_dtype(e, value):
    assert evaluate(as_expr(e), {"a": 7, "b": -2, "x": 1.5, "y": 1.5}) == value


def test_values_are_python_numbers():
    names = {"M": 7, "x": 1.5}
    assert type(evaluate(as_expr(M) + 1, names)) is int
    assert type(evaluate(x * 2, names)) is float
    assert type(evaluate(x > 1, names)) is bool
    assert math.isnan(evaluate(f.log(-x), names))


def test_shared_parts_are_evaluated_once_and_depth_does_not_matter():
    e = as_expr(M)
    for _ in range(40):
        e = e + e
    assert evaluate(e, {"M": 1}) == 1 << 40
    for _ in range(3000):
        e = e + 1
    assert evaluate(e, {"M": 1}) == (1 << 40) + 3000


def test_an_array_has_no_value_before_a_call():
    with pytest.raises(InternalError):
        evaluate(Load("A", (as_expr(M),), 0, f32), {"M": 1})
