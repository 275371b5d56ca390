"""Quotients and remainders keep their value and find their way back to what was divided."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.ir.division import floordiv, mod
from tensorlang.ir.expr import Expr, Select, Size, Var
from tensorlang.ir.facts import Facts, canonical
from tensorlang.ir.linear import constant, to_expr, to_linear
from tests.ir.evaluation import value_of
from tests.ir.index_exprs import Scene, index_exprs, scenes

t, x, y = Var("t"), Var("x"), Var("y")
M, N = Size("M"), Size("N")
KNOWN = Facts.none.known


@settings(max_examples=200)
@given(index_exprs, index_exprs, scenes())
def test_quotient_and_remainder_have_the_value_of_floor_division(a: Expr, b: Expr, scene: Scene):
    known = scene.facts.known
    numerator, divisor = to_linear(scene.facts.simplified(a)), to_linear(scene.facts.simplified(b))
    quotient = to_expr(floordiv(numerator, divisor, known))
    remainder = to_expr(mod(numerator, divisor, known))
    values = scene.values(Select(a == a, a, b)), scene.values(Select(a == a, b, a))
    for (point, value), (_, by) in zip(*values, strict=True):
        assert value_of(quotient, point) == (value // by if by else 0)  # type: ignore[operator]
        assert value_of(remainder, point) == (value % by if by else 0)  # type: ignore[operator]


@given(st.integers(-99, 99), st.integers(-12, 12))
def test_of_constants(a: int, b: int):
    quotient, remainder = (f(constant(a), constant(b), KNOWN) for f in (floordiv, mod))
    assert quotient.constant == (a // b if b else 0)
    assert remainder.constant == (a % b if b else 0)


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-99, 99), st.integers(1, 16))
def test_a_quotient_and_its_remainder_recombine(a: int, b: int, c: int, n: int):
    whole = a * x + b * y + c
    assert canonical(whole // n * n + whole % n) is canonical(whole)
    one = x + c
    assert canonical(one - one % n) is canonical(one // n * n)
    assert canonical(one - one // n * n) is canonical(one % n)


FUSED_THREE = Facts.none.with_range("t", 0, M * N * Size("K"))


def test_three_fused_loops_are_recovered():
    K = Size("K")
    i, j, k = t // (N * K), t % (N * K) // K, t % K
    facts = FUSED_THREE
    assert facts.simplified((i * N + j) * K + k) is t
    assert facts.simplified(j) is facts.simplified(t // K % N)


DIVIDED = [
    (x * N, N, x, Facts.none.assume(N >= 1)),
    (x * N + y, N, x, Facts.none.with_range("y", 0, N)),
    (x * N - 1, N, x - 1, Facts.none.assume(N >= 1)),
    (x * 4 * N, N * 2, x * 2, Facts.none.assume(N >= 1)),
]


@pytest.mark.parametrize(("a", "b", "expected", "facts"), DIVIDED)
def test_multiples_of_a_symbol_divide(a: Expr, b: Expr, expected: Expr, facts: Facts):
    assert facts.simplified(a // b) is canonical(expected)


def test_nothing_is_divided_by_what_may_be_zero():
    assert canonical(x * N // N) is not x
    assert canonical(x * N % N) is canonical(x - x)
