import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.errors import ParseError
from tensorlang.ir.expr import Binary, Call, Cast, Const, Expr, Load, Param, Size, Unary, Var
from tensorlang.ir.expr_text import RESERVED, print_constant, print_expr
from tensorlang.ir.functions import clamp, exp, fma, maximum, minimum, promise, select
from tensorlang.ir.stmt import Buffer, Dim
from tensorlang.ir.types import (
    DTYPES,
    bf16,
    bool_,
    f8e4m3,
    f16,
    f32,
    f64,
    i8,
    i32,
    index,
    u64,
)
from tensorlang.testing.exprs import SCOPE, constants, exprs
from tensorlang.text.loop_ir import parse_expr

i, j = Var("i"), Var("f.j")
M = Size("M")
x, y = Param("x", f32), Param("y", f32)
b, c = Param("b", bool_), Param("c", bool_)


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (i + j + 1, "i + f.j + 1"),
        (i + (j + 1), "i + (f.j + 1)"),
        (i - (j - 1), "i - (f.j - 1)"),
        (i * j + 1, "i*f.j + 1"),
        (i * (j + 1), "i*(f.j + 1)"),
        ((i + 127) // 128 * 128, "(i + 127)//128*128"),
        (i // (j * 2), "i//(f.j*2)"),
        (i % 3 - -3, "i%3 - -3"),
        (-i * j, "-i*f.j"),
        (-(i * j), "-(i*f.j)"),
        (i * -j, "i*-f.j"),
        (Unary("neg", Const(3, index)), "-(3)"),
        (Const(-3, index), "-3"),
        (~~i, "~~i"),
        (i << 2 + j, "i << 2 + f.j"),
        ((i << 2) + j, "(i << 2) + f.j"),
        (i & j | i ^ j, "i & f.j | i ^ f.j"),
        (i & (j | i), "i & (f.j | i)"),
        ((i < M) & (j <= M), "(i < M) & (f.j <= M)"),
        ((i < M) == (j != M), "(i < M) == (f.j != M)"),
        (~(i < M), "~(i < M)"),
        (x / y * 2, "x/y*2.0:f32"),
        (minimum(i + 1, j), "min(i + 1, f.j)"),
        (maximum(x, 0), "max(x, 0.0:f32)"),
        (select(b, x, y), "select(b, x, y)"),
        (promise(i, 0, M - 1), "promise(i, 0, M - 1)"),
        (f16(x + y), "f16(x + y)"),
        (index(Const(3, i32)), "3"),
        (Cast(index, Const(3, i32)), "index(3:i32)"),
        (fma(x, y, exp(x)), "fma(x, y, exp(x))"),
        (Call("approx.rcp", (x,), f32), "approx.rcp(x)"),
        (Load("A", (i, j + 1), 0, f32), "A[i, f.j + 1]"),
        (Load("A", (i,), 1, f32) + x, "A[i].1 + x"),
        (Load("s", (), 0, f32), "s[]"),
    ],
)
def test_an_expression_prints_with_no_needless_parenthesis(e: Expr, text: str):
    assert print_expr(e) == text


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (Const(3, index), "3"),
        (Const(-(2**80), index), str(-(2**80))),
        (Const(3, i32), "3:i32"),
        (Const(-128, i8), "-128:i8"),
        (Const(2**64 - 1, u64), "18446744073709551615:u64"),
        (Const(True, bool_), "true"),
        (Const(False, bool_), "false"),
        (Const(0.1, f32), "0.1:f32"),
        (Const(0.1, f16), "0.1:f16"),
        (Const(1 / 3, bf16), "0.334:bf16"),
        (Const(0.1, f64), "0.1:f64"),
        (Const(math.pi, f64), "3.141592653589793:f64"),
        (Const(1e300, f8e4m3), "448.0:f8e4m3"),
        (Const(65504, f16), "65504.0:f16"),
        (Const(2**31, f32), "2147483648.0:f32"),
        (Const(1e-45, f32), "1e-45:f32"),
        (Const(math.inf, f32), "inf:f32"),
        (Const(-math.inf, f32), "-inf:f32"),
        (Const(math.nan, f64), "nan:f64"),
        (Const(-0.0, f32), "-0.0:f32"),
    ],
)
def test_a_constant_prints_as_a_short_decimal_of_its_dtype(e: Const, text: str):
    assert print_constant(e) == text


@given(st.sampled_from(list(DTYPES.values())).flatmap(constants))
def test_a_constant_reads_back_to_the_same_bits(e: Expr):
    assert parse_expr(print_expr(e), {}) is e


@given(exprs())
def test_an_expression_reads_back_to_the_same_object(e: Expr):
    assert parse_expr(print_expr(e), SCOPE.as_mapping()) is e


@given(exprs(depth=3))
def test_no_pair_of_parentheses_can_be_left_out(e: Expr):
    text = print_expr(e)
    for shorter in _without_one_pair(text):
        try:
            other = parse_expr(shorter, SCOPE.as_mapping())
        except ParseError:
            continue
        assert other is not e, shorter


def _without_one_pair(text: str) -> list[str]:
    """The text without one pair of parentheses that is not the list of a call's operands."""
    shorter = []
    for start, character in enumerate(text):
        if character == "(" and (start == 0 or text[start - 1] in " (*/%-~["):
            depth, end = 1, start
            while depth:
                end += 1
                depth += (text[end] == "(") - (text[end] == ")")
            shorter.append(text[:start] + text[start + 1 : end] + text[end + 1 :])
    return shorter


def test_a_short_expression_repeats_its_parts():
    assert print_expr((i + 1) * (i + 1)) == "(i + 1)*(i + 1)"


def test_a_long_expression_writes_a_shared_part_once():
    part = Load("A", (i * 128 + j, j * 128 + i), 0, f32) + x
    whole = part * part * part * part * part * part
    assert print_expr(whole) == ("{ t0 = A[i*128 + f.j, f.j*128 + i] + x; t0*t0*t0*t0*t0*t0 }")


def test_the_name_of_a_shared_part_is_free():
    t0 = Var("t0", f32)
    part = Load("A", (i * 128 + j, j * 128 + i), 0, f32) + t0
    whole = part * part * part * part * part * part
    text = print_expr(whole)
    assert text.startswith("{ t1 = A[i*128 + f.j, f.j*128 + i] + t0; ")
    A = Buffer("A", (f32,), (Dim(Const(0, index), M), Dim(Const(0, index), M)))
    assert parse_expr(text, {**SCOPE.as_mapping(), "t0": t0, "A": A}) is whole


def test_the_text_of_doublings_grows_with_their_number():
    lengths = []
    for count in (20, 40, 80):
        e: Expr = x
        for _ in range(count):
            e = Binary("add", e, e)
        lengths.append(len(print_expr(e)))
    assert lengths[2] - lengths[1] < 2.5 * (lengths[1] - lengths[0])
    assert lengths[2] < 2000


@pytest.mark.parametrize(
    "grow",
    [
        lambda e: e + y,
        lambda e: y + e,
        lambda e: -e,
        lambda e: e * e + y,
        lambda e: exp(e),
        lambda e: select(e < y, y, e),
        lambda e: clamp(e, -y, e),
    ],
)
def test_deep_and_shared_expressions_read_back(grow):
    e: Expr = x
    for _ in range(5000):
        e = grow(e)
    assert parse_expr(print_expr(e), {"x": x, "y": y}) is e


@pytest.mark.parametrize(
    "name", sorted(RESERVED | {"nan", "inf", "what", "values", "t0", "é", "_"})
)
def test_any_name_reads_back(name: str):
    for e in (Var(name), Var(name) + 1, Var(f"{name}.{name}")):
        assert parse_expr(print_expr(e), {name: Var(name), f"{name}.{name}": e}) is e
