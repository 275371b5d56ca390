"""What follows from an inequality is found when it is said, and holds wherever it does."""

from hypothesis import given, settings

from tensorlang.ir.conditions import forms_of
from tensorlang.ir.consequences import consequences
from tensorlang.ir.expr import Expr, Size, Var
from tensorlang.ir.facts import Facts, canonical
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.linear import Linear, to_linear
from tests.ir.evaluation import value_of
from tests.ir.index_exprs import Point, Scene, conditions, scenes

x, y = Var("x"), Var("y")
M, N = Size("M"), Size("N")
KNOWN = Facts.none.known


def keys(forms: list[Linear]) -> set[object]:
    return {form.key() for form in forms}


def following(condition: Expr) -> set[object]:
    return keys(consequences(KNOWN, forms_of(canonical(condition))))


def says(condition: Expr) -> object:
    (form,) = forms_of(canonical(condition))
    return form.key()


def test_both_operands_of_a_min_are_at_least_what_the_min_is():
    found = following(minimum(x, y) >= 3)
    assert {says(x >= 3), says(y >= 3)} <= found


def test_both_operands_of_a_max_are_at_most_what_the_max_is():
    assert {says(x < N), says(y < N)} <= following(maximum(x, y) < N)


def test_the_factors_of_a_positive_product_are_positive():
    assert {says(M >= 1), says(N >= 1)} <= following(M * N >= 1)
    assert {says(M >= 1), says(x >= 1)} <= following(M * x >= 1)


def test_factors_of_unknown_sign_are_not():
    assert says(x >= 1) not in following(x * y >= 1)


def test_a_quotient_says_what_its_numerator_is():
    assert says(x >= 24) in following(x // 8 >= 3)
    assert says(x < 24) in following(x // 8 < 3)


def test_divisors_that_may_be_zero_or_less_say_nothing():
    assert len(following(x // N >= 3)) == 1
    assert len(following(x // y >= 3)) == 1


def test_forms_are_tightened_to_integers():
    assert says(x >= 3) in keys(consequences(KNOWN, [to_linear(2 * x - 5)]))


@settings(max_examples=200)
@given(conditions, scenes())
def test_what_follows_holds_wherever_the_condition_does(condition: Expr, scene: Scene):
    forms = scene.facts.forms_of(condition)
    for point, value in scene.values(condition):
        if value:
            assert all(_at(form, point) >= 0 for form in forms), point


def _at(form: Linear, point: Point) -> int:
    return form.constant + sum(c * value_of(a, point) for a, c in form.terms.items())  # type: ignore[misc]
