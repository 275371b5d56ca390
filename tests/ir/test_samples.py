"""Sample points satisfy what is known, so that a refutation is never wrong."""

from hypothesis import given, settings

from tensorlang.ir.expr import Cast, Expr, Load, Size, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.linear import to_linear
from tensorlang.ir.samples import sample_points
from tensorlang.ir.types import i32, index
from tests.ir.index_exprs import Scene, index_exprs, scenes

i, j = Var("i"), Var("j")
M, N = Size("M"), Size("N")


@settings(max_examples=200)
@given(scenes())
def test_all_that_is_known_holds_at_every_point(scene: Scene):
    forms = [form for forms in scene.facts.known.forms.values() for form in forms]
    for point in scene.facts.known.points():
        assert all(point.value(form) >= 0 for form in forms)


@settings(max_examples=200)
@given(index_exprs, scenes())
def test_what_is_proved_is_refuted_nowhere(e: Expr, scene: Scene):
    form = to_linear(scene.facts.simplified(e))
    if scene.facts.nonnegative(form):
        assert not scene.facts.known.refutes(form)


def test_loops_have_points_inside_and_at_both_ends():
    facts = Facts.none.with_range("i", 0, N).with_range("j", i, 10)
    points = list(facts.known.points())
    assert len(points) >= 4
    ends = {(p.value(to_linear(j - i)) == 0, p.value(to_linear(j - i)) == 9) for p in points}
    assert {(True, False), (False, True)} <= ends


def test_points_do_not_depend_on_what_was_asked_before():
    facts = Facts.none.with_range("i", 0, N)
    first = [p.value(to_linear(i)) for p in facts.known.points()]
    Facts.none.known.refutes(to_linear(N - i))
    again = Facts.none.with_range("i", 0, N)
    assert [p.value(to_linear(i)) for p in again.known.points()] == first


def test_data_keeps_to_its_guard():
    at = Cast(index, Load("idx", (i,), 0, i32))
    facts = Facts.none.assume((at >= 3) & (at < N))
    points = list(facts.known.points())
    assert points
    assert all(3 <= p.value(to_linear(at)) < p.value(to_linear(N)) for p in points)


def test_facts_that_exclude_each_other_have_no_point():
    forms = [to_linear(i), to_linear(-i - 1)]
    assert sample_points(forms, {}) == []


def test_a_name_in_a_product_is_not_decided_before_it_is_bounded():
    facts = Facts.none.assume((M >= 2) & (N >= 2)).with_range("i", 0, (M - 2) * (N - 2))
    for point in facts.known.points():
        m, n, both = (point.value(to_linear(e)) for e in (M, N, M * N))
        assert m * n == both
