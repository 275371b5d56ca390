from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given, settings

from tensorlang.ir.expr import Const, Expr, Size, Var
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    block,
    children_of,
    exprs_of,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.types import f32, index
from tensorlang.span import Span
from tensorlang.testing.programs import programs

M, i = Size("M"), Var("i")
ZERO, ONE = Const(0, index), Const(1, index)
SPAN = Span("user.py", 1)
store = Store("out", (i,), (Const(1.0, f32),), span=SPAN)
other = Store("out", (i + 1,), (Const(2.0, f32),))
buffer = Buffer("t", (f32,), (Dim(ZERO, M), Dim(i, ONE)), "stack", (0, 2), (("align", 4),))

HOLDERS = [
    Stage("out", 1, store, span=SPAN),
    For("i", ZERO, M, LoopKind.PARALLEL, store, True, (("stages", 2),), span=SPAN),
    Let("i", M, store),
    If(i < M, store),
    Allocate(buffer, store),
]


def test_a_block_opens_nested_blocks():
    assert block(store) is store
    assert block(block(store, other), block(), other).statements == (store, other, other)
    assert block().statements == ()


@pytest.mark.parametrize("stmt", HOLDERS, ids=lambda s: type(s).__name__)
def test_children_are_replaced_and_all_else_is_kept(stmt: Stmt):
    assert children_of(stmt) == (store,)
    assert map_children(stmt, lambda s: s) is stmt
    changed = map_children(stmt, lambda s: other)
    assert children_of(changed) == (other,)
    for f in fields(stmt):
        if f.name != "body":
            assert getattr(changed, f.name) is getattr(stmt, f.name)


def test_the_children_of_a_block_are_its_statements():
    both = Block((store, other))
    assert children_of(both) == (store, other)
    assert map_children(both, lambda s: s) is both
    assert children_of(map_children(both, lambda s: other)) == (other, other)
    assert map_children(store, lambda s: other) is store


CHECK = Assert(M < 5, "ShapeError", "code", "what", "why", "fix", (M, M + 1))


@pytest.mark.parametrize(
    ("stmt", "exprs"),
    [
        (HOLDERS[0], ()),
        (HOLDERS[1], (ZERO, M)),
        (HOLDERS[2], (M,)),
        (HOLDERS[3], (i < M,)),
        (HOLDERS[4], (ZERO, M, i, ONE)),
        (store, (i, Const(1.0, f32))),
        (CHECK, (M < 5, M, M + 1)),
        (Block((store,)), ()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_expressions_are_replaced_where_they_stand(stmt: Stmt, exprs: tuple[Expr, ...]):
    assert [id(e) for e in exprs_of(stmt)] == [id(e) for e in exprs]
    assert map_exprs(stmt, lambda e: e) is stmt
    given: list[Expr] = []

    def numbered(_: Expr) -> Expr:
        given.append(Const(100 + len(given), index))
        return given[-1]

    changed = map_exprs(stmt, numbered)
    assert [id(e) for e in exprs_of(changed)] == [id(e) for e in given]
    assert children_of(changed) == children_of(stmt)
    assert getattr(changed, "span", None) is getattr(stmt, "span", None)


def test_a_changed_allocation_keeps_the_rest_of_its_buffer():
    changed = map_exprs(HOLDERS[4], lambda e: ONE)
    assert isinstance(changed, Allocate)
    made = changed.buffer
    assert (made.name, made.dtypes, made.memory, made.fold, made.hints) == (
        *("t", (f32,), "stack", (0, 2), (("align", 4),)),
    )


def test_walk_gives_statements_in_program_order():
    inner = If(i < M, other)
    loop = For("i", ZERO, M, LoopKind.SERIAL, Block((store, inner)))
    assert list(walk(loop)) == [loop, loop.body, store, inner, other]


@settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(programs())
def test_mapping_nothing_gives_the_same_program(program: Program):
    def same(stmt: Stmt) -> Stmt:
        return map_exprs(map_children(stmt, same), lambda e: e)

    assert same(program.body) is program.body
