"""How often names are mentioned, and that asking again and again costs nothing."""

from tensorlang.ir.expr import Const, Expr, Load, Var
from tensorlang.ir.mentions import mentioning, mentions, names_needed, touched
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import For, Let, LoopKind, Stmt, Store, block, walk
from tensorlang.ir.types import f32, index

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


def test_only_the_names_that_say_where_a_buffer_is_touched_are_needed():
    store = Store("f", (a + b,), (Load("g", (Var("c"),), 0, f32),))
    inner = Let("b", Var("d"), Let("unused", Var("e"), store))
    other = Store("h", (Var("z"),), (Var("z"),))
    body = For("a", Const(0, index), Var("n"), LoopKind.SERIAL, block(inner, other))
    needed = names_needed(body, "f")
    assert needed[store] == {"a", "b", "c"}
    assert needed[inner] == {"a", "c", "d"}
    assert needed[body] == {"c", "d", "n"}
    assert other not in needed


def test_what_only_binds_a_name_touches_what_its_body_does_and_keeps_one_set():
    store = Store("f", (a,), (Load("g", (b,), 0, f32),))
    inner = Let("b", Var("d"), store)
    assert touched(inner) == {"f", "g"}
    assert touched(Let("a", Var("e"), inner)) is touched(inner)
    assert names_needed(Let("unused", Var("e"), inner), "f")[inner] == {"a", "d"}
