"""The shift of a sum of polynomials in a mean."""

import pytest

from tensorlang.ir.expr import Const, Expr, Load, Var
from tensorlang.ir.moments import shift_of
from tensorlang.ir.printer import print_expr
from tensorlang.ir.repair import NoRepairError
from tensorlang.ir.types import f32

mean, x = Load("mean", (), 0, f32), Load("x", (Var("j"),), 0, f32)
BEFORE, AFTER, COUNT, SUM = (Load(name, (), 0, f32) for name in ("old", "new", "n", "s"))


def shift(term: Expr) -> str:
    def moment(factors: tuple[Expr, ...]) -> Expr | None:
        return {0: COUNT, 1: SUM}.get(len(factors))

    return print_expr(shift_of(term, mean, (BEFORE, AFTER), frozenset(("j",)), moment))


def test_a_term_without_the_mean_does_not_change() -> None:
    assert shift(x * x) == print_expr(Const(0.0, f32))


def test_a_square_about_the_mean_needs_the_sum_and_the_count() -> None:
    found = shift((x - mean) * (x - mean))
    assert found.startswith("(new[] - old[])*")
    assert "n[]*(old[] + new[])" in found
    assert found.count("s[]") >= 1


def test_factors_that_do_not_vary_stay_outside() -> None:
    weight = Load("w", (), 0, f32)
    assert "w[]*s[]" in shift(weight * x * mean)


@pytest.mark.parametrize("term", [x * x * mean, x / mean, mean * mean * mean * mean * mean])
def test_what_is_no_polynomial_with_known_moments_is_refused(term: Expr) -> None:
    with pytest.raises(NoRepairError):
        shift(term)
