"""Which loads are needed under which condition."""

from tensorlang.backends.c.guards import guards_of
from tensorlang.ir.expr import Binary, Load, Select, Unary, Var
from tensorlang.ir.types import bool_, f32

I = Var("i")
C, D = (Var(name, bool_) for name in "CD")
A, B = (Load(name, (I,), 0, f32) for name in "AB")


def negated(condition):
    return Unary("not", condition)


def test_a_side_of_a_select_is_needed_where_it_is_chosen() -> None:
    guards = guards_of([Select(C, A, B)])
    assert guards[A] is C
    assert guards[B] is negated(C)


def test_what_is_needed_elsewhere_too_is_always_needed() -> None:
    assert guards_of([Binary("add", Select(C, A, B), A)]) == {B: negated(C)}


def test_both_sides_of_one_select_need_it_wherever_the_select_is_needed() -> None:
    both = Select(C, Binary("add", A, B), A)
    assert A not in guards_of([both])
    nested = Select(D, both, B)
    assert guards_of([nested])[A] is D


def test_nested_selects_need_both_conditions() -> None:
    nested = Select(C, Select(D, A, B), Binary("mul", B, B))
    guards = guards_of([nested])
    assert guards[A] is Binary("and", C, D)
    inner, outer = Binary("and", C, negated(D)), negated(C)
    assert guards[B] in {Binary("or", x, y) for x, y in ((inner, outer), (outer, inner))}


def test_a_condition_that_reads_is_needed_where_its_select_is() -> None:
    condition = Binary("and", Load("M", (I,), 0, bool_), C)
    guards = guards_of([Select(D, Select(condition, A, B), B)])
    assert guards[condition] is D


def test_under_a_mask_all_loads_have_it_but_those_of_the_mask() -> None:
    mask = Load("M", (I,), 0, bool_)
    guards = guards_of([Binary("add", A, B)], mask)
    assert guards[A] is mask
    assert guards[B] is mask
    assert mask not in guards
