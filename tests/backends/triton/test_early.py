"""The merging part of a launch reads before it computes, and each value once."""

from collections.abc import Iterable

from tensorlang.backends.triton.early import reads_first
from tensorlang.backends.triton.tiles import Access, Assign, Bind, Declare, Memory, Read, Write
from tensorlang.ir.expr import Compare, Const, Expr, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.types import f32

A = Memory("A", (f32,), (), (integer(8),))
B = Memory("B", (f32,), (), (integer(8),))
I, N = Var("i"), Var("N")


def read(name: str, memory: Memory, at: Expr, mask: Expr | None = None) -> Read:
    return Read(name, Access(memory, 0, (at,)), mask)


def names(tiles: Iterable[object]) -> list[str]:
    return [getattr(t, "name", "write") for t in tiles]


def test_reads_and_what_they_are_made_of_go_before_all_else() -> None:
    total = Var("total", f32)
    tiles = [
        Declare("total", f32, Const(0.0, f32)),
        read("a", A, I),
        Assign("total", total + Var("a", f32), ()),
        Bind("k", I + 1),
        read("b", B, Var("k"), Compare("lt", Var("k"), N)),
        Bind("twice", total * 2),
    ]
    made = reads_first(tiles, {"total"}, lambda e: e)
    assert names(made) == ["a", "k", "b", "total", "total", "twice"]


def test_a_value_is_read_once() -> None:
    tiles = [read("a", A, I), read("again", A, Var("same")), read("masked", A, I, I < N)]
    made = reads_first(tiles, (), lambda e: I if e is Var("same") else e)
    assert [type(t) for t in made] == [Read, Bind, Read]


def test_what_depends_on_a_value_or_on_a_write_stays() -> None:
    tiles = [
        Assign("top", Var("a", f32), ()),
        Bind("at", I + Var("moved")),
        read("far", A, Var("at")),
        Write(Access(B, 0, (I,)), Const(0.0, f32), None),
        read("written", B, I),
    ]
    made = reads_first(tiles, {"top", "moved"}, lambda e: e)
    assert names(made) == names(tiles)
