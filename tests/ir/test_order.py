"""The order of expressions reads as text, tells all of them apart, and costs one visit a node."""

import time

from hypothesis import given

from tensorlang.ir.expr import Cast, Const, Expr, Load, Size, Var
from tensorlang.ir.functions import maximum
from tensorlang.ir.order import order_key
from tensorlang.ir.types import f32, i8, i32, i64, index
from tests.ir.index_exprs import index_exprs

i, j = Var("i"), Var("j")


def test_it_reads_as_text():
    written = [Size("M"), Size("N"), i, i // 2, j, maximum(i, j)]
    shuffled = [written[n] for n in (3, 0, 5, 2, 4, 1)]
    assert sorted(shuffled, key=order_key) == written


@given(index_exprs, index_exprs)
def test_two_expressions_have_one_key_only_if_they_are_one(a: Expr, b: Expr):
    assert (order_key(a) == order_key(b)) == (a is b)


def test_nodes_that_look_alike_differ():
    alike = [
        Const(0, i32), Const(0, i64), Const(0, index), Const(0.0, f32), Const(-0.0, f32),
        Var("x"), Var("x", i32), Size("x"),
        Load("A", (i,), 0, i32), Load("A", (i,), 1, i32), Load("A", (i,), 0, i8),
        Cast(i32, i), Cast(i64, i),
    ]  # fmt: skip
    assert len({order_key(e) for e in alike}) == len(alike)


def test_long_texts_are_told_apart_by_what_is_not_shown():
    long = sum((Var(f"a_long_name_{n}") for n in range(20)), start=i)
    assert order_key(long + 1)[0] == order_key(long + 2)[0]
    assert order_key(long + 1) != order_key(long + 2)


def test_a_shared_expression_is_visited_once():
    e: Expr = i
    for _ in range(400):
        e = e * e + e
    start = time.process_time()
    order_key(e)
    assert time.process_time() - start < 5
