"""The loops of a stage: where they start, and how directives rewrite them."""

import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32, sum
from tensorlang.directives.nest import Nest, Ragged, default_nest, region_name, stage_name
from tensorlang.ir.expr import Const
from tensorlang.ir.printer import print_expr
from tensorlang.ir.stmt import LoopKind
from tensorlang.ir.types import index

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def matmul() -> Schedule:
    a, b, k, c = Input("A", f32, [M, K]), Input("B", f32, [K, N]), RDom("k", K), Func("C")
    c[i, j] = sum(a[i, k] * b[k, j], over=k)
    return Schedule(Pipeline("matmul", inputs=[a, b], outputs={c: [M, N]}))


def nest(s: Schedule, number: int = 1) -> Nest:
    return s.state.nests["C", number]


def test_it_starts_as_pure_vars_in_index_order_and_then_the_domain() -> None:
    s = matmul()
    made = default_nest(s.state.funcs["C"], 1)
    assert made.names() == ("i", "j", "k")
    assert made.sequence == ("k",)
    assert [loop.reduction for loop in made.loops] == [False, False, True]
    assert [print_expr(loop.extent) for loop in made.loops] == ["C.i.extent", "C.j.extent", "K"]


def test_a_pure_var_that_stands_at_another_index_is_of_that_dimension() -> None:
    f, r = Func("f"), RDom("r", 4)
    f[i, j] = f32(0)
    f[r, i] = f[r, i] + 1
    s = Schedule(Pipeline("p", inputs=[], outputs={f: [4, N]}))
    first, second = s.state.nests["f", 1].loops
    assert (first.name, second.name) == ("i", "r")
    assert print_expr(first.min) == region_name("f", "j", "min")


def test_a_loop_that_was_split_is_recovered_under_a_guard() -> None:
    s = matmul()
    s["C"].update().split(i, "io", "ii", 8)
    made = nest(s)
    assert made.names() == ("io", "ii", "j", "k")
    (binding,) = made.bindings
    assert binding.name == "i"
    assert binding.value.free >= {"io", "ii"}
    assert binding.guard is not None
    assert made.find("i") is None
    assert made.find("ii") is not None


def test_the_order_of_the_domain_follows_splits_and_fuses() -> None:
    s = matmul()
    s["C"].update().split("k", "ko", "ki", 4)
    assert nest(s).sequence == ("ko", "ki")
    s["C"].update().reorder("ko", "i", "j", "ki")
    assert nest(s).sequence == ("ko", "ki")
    s["C"].update().reorder("i", "j", "ko", "ki").fuse("ko", "ki", "kk")
    assert nest(s).sequence == ("kk",)


def test_what_a_range_depends_on_is_found_through_bindings() -> None:
    s = matmul()
    s["C"].update().split(i, "io", "ii", 8, tail="ragged")
    made = nest(s)
    inner, outer = made.find("ii"), made.find("io")
    assert inner is not None
    assert outer is not None
    assert made.needed_by(inner) == {"io"}
    assert made.needed_by(outer) == frozenset()


def test_a_ragged_extent_is_the_factor_or_what_is_left() -> None:
    ragged = Ragged("o", 8, N, Const(1, index))
    assert print_expr(ragged.extent) == "min(8, N - o*8)"
    assert print_expr(Ragged("o", 8, N, M).extent) == "M*min(8, N - o*8)"


def test_a_nest_is_data_that_is_replaced_and_never_changed() -> None:
    s = matmul()
    before = nest(s)
    s["C"].update().vectorize(j)
    after = nest(s)
    assert before.show() == "for i: for j: for k: C.update(0)"
    assert after.show() == "for i: vectorized j: for k: C.update(0)"
    assert [loop.kind for loop in before.loops] == [LoopKind.SERIAL] * 3


@pytest.mark.parametrize(("number", "text"), [(0, "C"), (1, "C.update(0)"), (3, "C.update(2)")])
def test_a_stage_is_named_as_a_schedule_writes_it(number: int, text: str) -> None:
    assert stage_name("C", number) == text
