"""Linear forms: exact, in one order, and back to an expression that reads well."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.expr import Binary, Expr, Size, Unary, Var
from tensorlang.ir.linear import (
    Linear,
    expanded,
    factors_of,
    integer,
    multiplied,
    product,
    single,
    to_expr,
    to_linear,
)
from tensorlang.ir.printer import print_expr
from tests.ir.evaluation import BrokenPromiseError, value_of
from tests.ir.index_exprs import index_exprs, points

i, j, io, ii = (Var(n) for n in ("i", "j", "io", "ii"))
M, N = Size("M"), Size("N")

SPELLED = [
    (3 + ii * 1 + 128 * io, "io*128 + ii + 3"),
    (-i + M - 1, "M - i - 1"),
    (3 - i, "3 - i"),
    (-i - j, "-i - j"),
    (i - i, "0"),
    (2 * (i + 3 * j) - 6 * j, "i*2"),
    (-(i - 4), "4 - i"),
    (i * -2 - 5, "i*-2 - 5"),
    (M // 4 * 4 + i, "M//4*4 + i"),
    (j + i, "i + j"),
]


@pytest.mark.parametrize(("e", "text"), SPELLED)
def test_spelling(e: Expr, text: str):
    assert print_expr(to_expr(to_linear(e))) == text


def test_terms_are_collected_over_sums_negations_and_multiples():
    form = to_linear(4 * (i - 2 * j) - (i - 7))
    assert form.constant == 7
    assert dict(form.terms) == {i: 3, j: -8}


def test_a_sum_doubled_60_times_is_one_term():
    e: Expr = i
    for _ in range(60):
        e = e + e
    assert to_linear(e).terms[i] == 2**60


@given(index_exprs, points)
def test_the_form_has_the_value_of_the_expression(e: Expr, point: dict[str, int]):
    try:
        value = value_of(e, point)
    except BrokenPromiseError:
        return
    assert value_of(to_expr(to_linear(e)), point) == value


@given(st.permutations([M, i, N // 2, j]))
def test_products_have_one_order(factors: list[Expr]):
    assert product(*factors) is product(M, i, N // 2, j)
    assert set(factors_of(product(*factors))) == set(factors)


def test_expanded_multiplies_sums_out():
    form = expanded(to_linear((i + 1) * (N - 2)))
    assert form.constant == -2
    assert form.terms[i] == -2
    assert form.terms[product(i, N)] == 1


def test_a_product_of_very_many_factors_is_one_factor():
    e: Expr = Binary("mul", i, j)
    for _ in range(20):
        e = multiplied(e, e)
    assert factors_of(e) == (e,)


@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(1, 9))
def test_divided_is_exact(a: int, c: int, by: int):
    form = Linear(c, {i: a} if a else {})
    whole, rest = form.divided(by)
    back = whole * by + rest
    assert back.key() == form.key()
    assert 0 <= rest.constant < by
    assert abs(rest.terms.get(i, 0)) < by


def test_arithmetic_drops_terms_that_cancel():
    assert (single(i) - single(i)).terms == {}
    assert (single(i) * 0).key() == Linear().key()
    assert (single(i).shifted(1) * -2).key() == to_linear(-2 * i - 2).key()


def test_negation_is_written_with_neg():
    assert to_expr(single(i, -1)) is Unary("neg", i)
    assert to_expr(Linear(5)) is integer(5)


def test_the_order_is_the_same_in_every_process():
    program = (
        "from tensorlang.ir.expr import Var, Size\n"
        "from tensorlang.ir.simplify import simplify\n"
        "from tensorlang.ir.printer import print_expr\n"
        "names = [Var(n) for n in 'qwertyuiopasdfghjkl']\n"
        "e = names[0] // 3\n"
        "for n in names: e = e + n % 5 + n * Size('Z')\n"
        "print(print_expr(simplify(e)))\n"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
