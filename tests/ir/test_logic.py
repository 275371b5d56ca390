"""Conjunctions and disjunctions keep their value and lose idle parts."""

from hypothesis import given, settings

from tensorlang.ir.conditions import conjuncts_of, forms_of, negated
from tensorlang.ir.expr import Binary, Const, Expr, Load, Size, Unary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.types import bool_, i32
from tests.ir.evaluation import value_of
from tests.ir.index_exprs import Scene, conditions, scenes

i, j = Var("i"), Var("j")
M, N = Size("M"), Size("N")


@settings(max_examples=200)
@given(conditions, conditions, scenes())
def test_and_or_keep_their_value(a: Expr, b: Expr, scene: Scene):
    for op in ("and", "or"):
        e = Binary(op, a, b)
        simple = scene.facts.simplified(e)
        for point, value in scene.values(e):
            assert value_of(simple, point) == value, (op, point)


@given(conditions, scenes())
def test_negated_is_the_opposite(condition: Expr, scene: Scene):
    for point, value in scene.values(condition):
        assert value_of(negated(condition), point) == (not value)


@given(conditions, scenes())
def test_forms_are_nonnegative_where_the_condition_holds(condition: Expr, scene: Scene):
    for point, value in scene.values(condition):
        if value:
            for form in forms_of(condition):
                total = form.constant
                total += sum(c * value_of(a, point) for a, c in form.terms.items())  # type: ignore[misc]
                assert total >= 0
            assert all(value_of(part, point) for part in conjuncts_of(condition))


def simplified(e: Expr) -> Expr:
    return Facts.none.simplified(e)


def test_a_part_that_another_implies_goes():
    assert simplified((i < 4) & (j < N) & (i < 8)) is simplified((i < 4) & (j < N))
    assert simplified((i < 4) | (i < 8)) is simplified(i < 8)
    assert simplified((i < M) & (i + 1 < M + 5)) is simplified(i < M)


def test_parts_that_exclude_each_other_decide():
    assert simplified((i < 4) & (i > 6)) is Const(False, bool_)
    assert simplified((i < 4) | (i > 2)) is Const(True, bool_)


def test_parts_about_other_things_stay():
    e = (i < 4) & (j < 4) & (Load("m", (i,), 0, i32) > 0)
    assert len(conjuncts_of(simplified(e))) == 3


def test_a_repeated_part_that_is_no_comparison_goes():
    mask = Unary("not", Load("m", (i,), 0, bool_))
    assert simplified(mask & (i < 4) & mask) is simplified(mask & (i < 4))


def test_conjuncts_push_negation_inwards():
    parts = conjuncts_of(~((i < 4) | (j >= N)))
    assert [type(p).__name__ for p in parts] == ["Compare", "Compare"]
