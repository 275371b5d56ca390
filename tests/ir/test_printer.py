import pytest

from tensorlang.ir.expr import Const, Param, Size, Var
from tensorlang.ir.printer import opening_of, print_program, print_stmt
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
)
from tensorlang.ir.types import f16, f32, i64, index

ZERO, ONE = Const(0, index), Const(1, index)
M = Size("M")
i = Var("f.i")
out = Buffer("out", (f32,), (Dim(ZERO, M),))
store = Store("out", (i,), (Const(0.5, f32),))
ring = Buffer("ring", (f32, i64), (Dim(i, M), Dim(ZERO, ONE)), "stack", (0, 4), (("align", 16),))


@pytest.mark.parametrize(
    ("stmt", "text"),
    [
        (store, "out[f.i] = 0.5:f32\n"),
        (Store("p", (), (ONE, i)), "p[] = (1, f.i)\n"),
        (For("f.i", ZERO, M, LoopKind.SERIAL, store), "for f.i in [0, M):\n  out[f.i] = 0.5:f32\n"),
        (
            For("f.i", ONE, M, LoopKind.VECTORIZED, store, True, (("stages", 3), ("by", "é\n"))),
            'vectorized reduction f.i in [1, +M) stages=3 by="é\\n":\n  out[f.i] = 0.5:f32\n',
        ),
        (Let("f.i", M - 1, store), "let f.i = M - 1\nout[f.i] = 0.5:f32\n"),
        (
            Block((Let("f.i", M - 1, store), store)),
            "let f.i = M - 1:\n  out[f.i] = 0.5:f32\nout[f.i] = 0.5:f32\n",
        ),
        (If(i < M, store), "if f.i < M:\n  out[f.i] = 0.5:f32\n"),
        (If(i < M, Block(())), "if f.i < M:\n  pass\n"),
        (Let("f.i", M, Block(())), "let f.i = M\n"),
        (Stage("out", 1, store), "stage out.1:\n  out[f.i] = 0.5:f32\n"),
        (
            Allocate(ring, store),
            (
                "allocate ring: (f32, i64)[f.i : +M, 1] in stack fold (0, 4) align=16\n"
                "out[f.i] = 0.5:f32\n"
            ),
        ),
        (
            Assert(M < 5, "ShapeError", "too-big", "{0} is big", 'a "why"', "a\tfix", (M, M * 2)),
            (
                'assert M < 5 else ShapeError("too-big",\n'
                '  what="{0} is big",\n'
                '  why="a \\"why\\"",\n'
                '  fix="a\\tfix",\n'
                "  values=[M, M*2])\n"
            ),
        ),
        (
            Assert(M < 5, "BoundsError", "c", "w", "y", "f"),
            'assert M < 5 else BoundsError("c",\n  what="w",\n  why="y",\n  fix="f")\n',
        ),
        (Block((store, Block((store,)))), "out[f.i] = 0.5:f32\nout[f.i] = 0.5:f32\n"),
        (Block(()), "pass\n"),
    ],
)
def test_a_statement_prints_all_that_it_holds(stmt: Stmt, text: str):
    assert print_stmt(stmt) == text


def test_the_header_lists_sizes_params_inputs_and_outputs():
    a = Buffer("A", (f16,), (Dim(ZERO, M * 2),), hints=(("load_with", "descriptor"),))
    program = Program("p", (M,), (Param("n", f32),), (a,), (out, ring), store)
    assert print_program(program) == (
        'program p(M; n: f32; A: f16[M*2] load_with="descriptor") -> out: f32[M], '
        "ring: (f32, i64)[f.i : +M, 1] in stack fold (0, 4) align=16:\n"
        "  out[f.i] = 0.5:f32\n"
    )


def test_a_part_of_the_header_that_is_empty_leaves_no_trace():
    assert print_program(Program("p", (), (), (), (), Block(()))) == "program p():\n  pass\n"
    only_param = Program("p", (), (Param("n", f32),), (), (), Block(()))
    assert print_program(only_param).startswith("program p(n: f32):")


def test_str_of_a_program_is_its_text():
    program = Program("p", (M,), (), (), (out,), store)
    assert str(program) == print_program(program)


def test_the_opening_of_a_statement_is_its_first_line():
    loop = For("f.i", ZERO, M, LoopKind.PARALLEL, store)
    assert opening_of(loop) == "parallel f.i in [0, M)"
    assert opening_of(If(i < M, loop)) == "if f.i < M"
