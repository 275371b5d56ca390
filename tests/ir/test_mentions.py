"""How often names are mentioned, and that asking again and again costs nothing."""

from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.mentions import mentioning, mentions
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import Let, Stmt, Store, block, walk
from tensorlang.ir.types import index

a, b = Var("a"), Var("b")


def test_every_operand_that_is_the_name_counts():
    store = Store("f", (a,), (a + b * b,))
    assert mentions(store) == {"a": 2, "b": 2}


def test_a_name_bound_inside_is_not_free_outside():
    let = Let("a", a + b, Store("f", (a,), (a,)))
    assert mentions(let) == {"a": 1, "b": 1}
    assert list(mentioning(let, "a")) == [let]
    assert list(mentioning(let.body, "a")) == [let.body]


def test_many_names_in_one_another_are_simplified_without_walking_all_of_them_each_time():
    value: Expr = Const(3, index)
    made: Stmt = Store("g", (Var("n"),), (value,))
    for k in range(60):
        name = f"f{k}.x.min"
        made = Let(name, Var("n") * 2 + k, block(Store("f", (Var(name),), (Var(name),)), made))
    simple = simplify_stmt(made)
    assert sum(isinstance(s, Let) for s in walk(simple)) == 60
    assert dict(mentions(simple)) == {"n": 61}
