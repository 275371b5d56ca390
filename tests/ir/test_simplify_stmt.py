"""Statements lose what is proved, dead or trivial, and nothing else."""

from tensorlang.ir.expr import Const, Expr, Load, Size, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.functions import minimum
from tensorlang.ir.linear import integer
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
    exprs_of,
    walk,
)
from tensorlang.ir.types import f32, i32

i, io, ii, x, y = (Var(n) for n in ("i", "io", "ii", "x", "y"))
M, N = Size("M"), Size("N")
ONE = Const(1.0, f32)


def store(*indices: Expr) -> Store:
    return Store("out", indices, (ONE,))


def loop(name: str, extent: Expr | int, body: Stmt, low: Expr | int = 0) -> For:
    low, extent = (integer(e) if isinstance(e, int) else e for e in (low, extent))
    return For(name, low, extent, LoopKind.SERIAL, body)


def test_a_proved_guard_goes():
    tiles = loop("io", M // 8, loop("ii", 8, If(io * 8 + ii < M, store(io * 8 + ii))))
    inner = simplify_stmt(tiles)
    assert not any(isinstance(s, If) for s in walk(inner))


def test_the_same_guard_inside_itself_goes_whatever_it_is():
    guard = Load("mask", (i,), 0, i32) > 0
    nested = If(guard, Block((store(i), If(guard, store(i + 1)))))
    ifs = [s for s in walk(simplify_stmt(nested)) if isinstance(s, If)]
    assert len(ifs) == 1


def test_a_false_guard_takes_its_body_along_and_all_that_is_left_empty():
    dead = loop("i", N, Stage("f", 0, If(i < 0, store(i))))
    assert simplify_stmt(Block((dead, store(x)))).indices == (x,)  # type: ignore[union-attr]


def test_a_loop_of_no_iteration_goes():
    proved = simplify_stmt(loop("i", N - M, store(i)), Facts.none.assume(N <= M))
    for nothing in (simplify_stmt(loop("i", 0, store(i))), proved):
        assert isinstance(nothing, Block)
        assert nothing.statements == ()


def test_a_loop_of_one_iteration_becomes_its_body():
    once = simplify_stmt(loop("i", N - N + 1, store(i * 2), low=M))
    assert isinstance(once, Store)
    assert once.indices == (M * 2,)


def test_a_let_of_a_name_a_constant_or_a_single_use_goes():
    for value, uses in ((y, (x, x)), (integer(3), (x, x)), (y * 5, (x, y))):
        result = simplify_stmt(Let("x", value, store(*uses)))
        assert isinstance(result, Store), value


def test_a_let_that_is_used_twice_stays():
    let = Let("x", y // 5, store(x, x + 1))
    assert simplify_stmt(let) is let


def test_a_let_that_is_used_by_nothing_goes_also_when_a_proof_made_it_so():
    let = Let("x", y // 5 * 7 + y, Block((If(x < x + 1, store(y)), If(x > x, store(x)))))
    assert isinstance(simplify_stmt(let), Store)


def test_a_let_of_a_load_stays_where_it_is():
    let = Let(
        "v", Load("out", (y,), 0, f32), Block((store(y), Store("out", (x,), (Var("v", f32),))))
    )
    assert any(isinstance(s, Let) for s in walk(simplify_stmt(let)))


def test_a_let_is_not_moved_below_another_variable_of_a_name_in_its_value():
    let = Let("x", i + 1, loop("i", N, store(x)))
    result = simplify_stmt(let)
    assert isinstance(result, Let)


def test_what_a_let_says_decides_a_guard():
    tile = Let("x", io * 8 + ii, Block((If(x < M, store(x)), If(x <= N + M, store(x, x)))))
    whole = loop("io", M // 8, loop("ii", 8, tile))
    assert not any(isinstance(s, If) for s in walk(simplify_stmt(whole)))


def test_the_end_of_a_region_leaves_its_guard_with_one_side():
    last = Let("last", minimum(M - 1, io * 8 + 7), Block((_row(), _row())))
    guards = [s.condition for s in walk(simplify_stmt(last)) if isinstance(s, If)]
    assert len(guards) == 2
    assert all(guard is (x < M) for guard in guards)


def _row() -> Stmt:
    return loop("x", 8, If(x <= Var("last"), store(x)), low=io * 8)


def test_an_empty_allocation_goes():
    buffer = Buffer("t", (f32,), (Dim(integer(0), N),))
    result = simplify_stmt(Allocate(buffer, If(N < 0, store(i))))
    assert isinstance(result, Block)
    assert result.statements == ()


def test_expressions_of_allocations_and_loops_are_simplified():
    buffer = Buffer("t", (f32,), (Dim(integer(0) + i - i, (N + 1) - 1),))
    result = simplify_stmt(Allocate(buffer, store(i)))
    assert exprs_of(result) == (integer(0), N)


def test_unchanged_input_is_the_same_object():
    program = loop("i", N, If(i < M, Block((store(i), loop("x", M, store(i, x))))))
    assert simplify_stmt(program) is program


def test_simplifying_again_changes_nothing():
    program = loop("io", (M + 7) // 8, loop("ii", 8, Let("x", io * 8 + ii, If(x < M, store(x, x)))))
    once = simplify_stmt(program)
    assert simplify_stmt(once) is once


def test_nested_blocks_are_opened():
    nested = Block((store(i), Block((store(x), store(y)))))
    result = simplify_stmt(nested)
    assert isinstance(result, Block)
    assert len(result.statements) == 3


def test_a_size_fixed_by_a_condition_is_fixed_in_what_lets_outside_stand_for():
    rows = Let("rows", M, If(M == 1, loop("i", Var("rows"), store(i))))
    assert not any(isinstance(s, For) for s in walk(simplify_stmt(rows)))
