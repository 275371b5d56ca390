"""A quotient and the remainder of one division become what was divided."""

import pytest

from tensorlang.ir.expr import Expr, Size, Var
from tensorlang.ir.facts import Facts, canonical
from tensorlang.ir.linear import Linear, integer, to_expr, to_linear
from tensorlang.ir.recombine import recombined

x, y = Var("x"), Var("y")
M, N = Size("M"), Size("N")
NONZERO = Facts.none.assume(N >= 1)

COMBINED = [
    (x // 8 * 8 + x % 8, x, Facts.none),
    (x // 8 * 16 + x % 8 * 2 + y, x * 2 + y, Facts.none),
    (x - x // 8 * 8, x % 8, Facts.none),
    (x - x % 8, x // 8 * 8, Facts.none),
    (x // N * N + x % N, x, NONZERO),
    (x - x // N * N, x % N, NONZERO),
    (x - x % N, x // N * N, NONZERO),
    ((x // N // M * M + x // N % M) * N + x % N, x, NONZERO.assume(M >= 1)),
    (x // 8 * 8 + x % 8 + y // 4 * 4 + y % 4, x + y, Facts.none),
    (
        y // 4 * 4 + (y + x // 8 * 8 + x % 8) % 4 - x % 4,
        y // 4 * 4 + (x + y) % 4 - x % 4,
        Facts.none,
    ),
]


@pytest.mark.parametrize(("e", "expected", "facts"), COMBINED)
def test_combined(e: Expr, expected: Expr, facts: Facts):
    assert facts.simplified(e) is facts.simplified(expected)


APART = [x // 8 * 8 + y % 8, x // 8 * 4 + x % 8, x // N * N + x % N, x % 8 - x]


@pytest.mark.parametrize("e", APART)
def test_what_does_not_belong_together_stays(e: Expr):
    form = to_linear(canonical(e))
    assert recombined(form, Facts.none.known).key() == form.key()


def test_constants_stay_constants():
    assert to_expr(recombined(Linear(3), Facts.none.known)) is integer(3)
