from dataclasses import fields, is_dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang.errors import ParseError
from tensorlang.ir.expr import Const, Expr, Param, Var
from tensorlang.ir.printer import print_program
from tensorlang.ir.stmt import Block, Buffer, Let, Program, Store, block
from tensorlang.ir.types import f32, index
from tensorlang.ir.verify import verify
from tensorlang.lower import PASSES, lower
from tensorlang.testing.families import pipelines
from tensorlang.testing.programs import programs
from tensorlang.testing.strategies import schedules
from tensorlang.text.loop_ir import parse_expr, parse_program

LINEAR_RELU = """\
program linear_relu(M, N, K; A: f16[M, K], B: f16[K, N], bias: f16[N]) -> D: f16[M, N]:
  gpu_block D.t in [0, (M + 127)//128*((N + 127)//128)):
    let D.io = D.t//((N + 127)//128)
    let D.jo = D.t%((N + 127)//128)
    allocate C: f32[D.io*128 : +128, D.jo*128 : +128]
    stage C.0:
      vectorized C.i in [D.io*128, +128):
        vectorized C.j in [D.jo*128, +128):
          if (C.i < M) & (C.j < N):
            C[C.i, C.j] = 0.0:f32
    stage C.1:
      for reduction C.ko in [0, (K + 63)//64) stages=3:
        vectorized C.i in [D.io*128, +128):
          vectorized C.j in [D.jo*128, +128):
            vectorized reduction C.ki in [0, 64):
              let C.k = C.ko*64 + C.ki
              if (C.k < K) & (C.i < M) & (C.j < N):
                C[C.i, C.j] = C[C.i, C.j] + f32(A[C.i, C.k])*f32(B[C.k, C.j])
    stage D.0:
      vectorized D.ii in [0, 128):
        vectorized D.ji in [0, 128):
          let D.i = D.io*128 + D.ii
          let D.j = D.jo*128 + D.ji
          if (D.i < M) & (D.j < N):
            D[D.i, D.j] = f16(max(C[D.i, D.j] + f32(bias[D.j]), 0.0:f32))
"""


def same(a: object, b: object) -> bool:
    """Equality of statements and programs, but for spans; of expressions it is identity."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, Expr) or not is_dataclass(a):
        return a is b or (not isinstance(a, Expr) and type(a) is type(b) and a == b)
    names = [f.name for f in fields(a) if f.name != "span"]
    return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)


@settings(suppress_health_check=list(HealthCheck))
@given(programs())
def test_a_program_reads_back_to_itself(program: Program):
    text = print_program(program)
    again = parse_program(text)
    assert same(again, program), text
    assert print_program(again) == text


@settings(suppress_health_check=list(HealthCheck), max_examples=15)
@given(st.data())
def test_what_each_pass_of_the_engine_makes_is_valid_and_reads_back(data: st.DataObject):
    pipeline = data.draw(pipelines())
    schedule = data.draw(schedules(pipeline, gpu=True))

    order = ["build_nests", *(step.name for step in PASSES)]

    def check(name: str, program: Program) -> None:
        # Before `check_lanes` a loop may still be one that cannot run as its schedule says.
        verify(program, kinds=name not in order[: order.index("check_lanes")])
        text = print_program(program)
        assert print_program(parse_program(text)) == text

    lower(schedule.state, asserts=(), trace=check)
    check("whole", pipeline.lower(schedule))


def test_same_tells_programs_apart():
    program = parse_program(LINEAR_RELU)
    assert same(program, parse_program(LINEAR_RELU))
    for part, other in [("C.k < K", "C.k < M"), ("stages=3", "stages=4"), ("reduction ", "")]:
        assert not same(program, parse_program(LINEAR_RELU.replace(part, other)))


def test_the_text_of_a_program_reads_back_and_prints_the_same():
    assert print_program(parse_program(LINEAR_RELU)) == LINEAR_RELU


def test_indentation_comments_and_blank_lines_do_not_count():
    lines = [f"      {line}  # why\n\n  # a comment\n" for line in LINEAR_RELU.splitlines()]
    assert print_program(parse_program("\n".join(["", *lines]))) == LINEAR_RELU


def test_a_let_with_a_suite_ends_with_it():
    text = """\
program p() -> out: f32[]:
  let a = 1.0:f32:
    out[] = a
  let a = 2.0:f32
  out[] = a
"""
    body = parse_program(text).body
    assert isinstance(body, Block)
    first, second = body.statements
    assert isinstance(first, Let)
    assert isinstance(second, Let)
    assert first.value is Const(1.0, f32)
    assert second.value is Const(2.0, f32)
    assert print_program(parse_program(text)) == text


def test_nested_blocks_are_one_suite():
    out = Buffer("out", (f32,), ())
    store = Store("out", (), (Const(0.0, f32),))
    nested = Program("p", (), (), (), (out,), Block((Block((store, Block(()))), store)))
    assert same(parse_program(print_program(nested)).body, block(store, store))


def test_an_empty_program_passes():
    text = "program p():\n  pass\n"
    assert print_program(parse_program(text)) == text


def test_five_thousand_statements_read_back():
    store = Store("out", (), (Const(0.0, f32),))
    out = Buffer("out", (f32,), ())
    program = Program("p", (), (), (), (out,), Block((store,) * 5000))
    assert same(parse_program(print_program(program)), program)


@pytest.mark.parametrize(
    ("part", "other", "message"),
    [
        (
            "C.k < K",
            "C.k < KK",
            """\
ParseError[unknown-name]: there is no name `KK` here
  --> <loop IR>:17:25
      if (C.k < KK) & (C.i < M) & (C.j < N):
                ^^
  why:  a name stands only below what binds it
  fix:  one of K""",
        ),
        (
            "stages=3",
            "stages=x",
            """\
ParseError[unexpected-text]: `x` cannot stand here
  --> <loop IR>:12:54
      for reduction C.ko in [0, (K + 63)//64) stages=x:
                                                     ^
  why:  what may stand here is a "string" or an integer
  fix:  compare with what printing such a thing gives""",
        ),
        (
            "[0, 64):",
            "[0, 64)",
            """\
ParseError[unexpected-text]: the end of the line cannot stand here
  --> <loop IR>:15:49
      vectorized reduction C.ki in [0, 64)
                                          ^
  why:  what may stand here is `:` or a name
  fix:  compare with what printing such a thing gives""",
        ),
        (
            "+ f32(A[C.i, C.k])",
            "+ A[C.i, C.k]",
            """\
ParseError[ill-typed]: no expression is `mul` of f16 and f32
  --> <loop IR>:18:56
      C[C.i, C.j] = C[C.i, C.j] + A[C.i, C.k]*f32(B[C.k, C.j])
                                             ^
  why:  only a cast and a function change a dtype; all else takes operands of one
  fix:  cast an operand, as in f32(e), or give a constant its dtype, as in 1:i32""",
        ),
        (
            "    stage D",
            "   stage D",
            """\
ParseError[bad-indentation]: this line is indented like none above it
  --> <loop IR>:19:4
      stage D.0:
      ^
  why:  a line belongs to the suite whose lines begin in its column
  fix:  give it the indentation of a line above it""",
        ),
        (
            "[D.io*128, +128)",
            "[D.io*128, 128)",
            """\
ParseError[not-from-zero]: the range of `C.i` begins at another place than 0
  --> <loop IR>:7:18
      vectorized C.i in [D.io*128, 128):
                 ^^^
  why:  [0, n) has n iterations, and [min, +n) has n from min on
  fix:  write the extent with a plus: [min, +extent)""",
        ),
        (
            "] = 0.0:f32",
            ", 0] = 0.0:f32",
            """\
ParseError[not-a-program]: `linear_relu` is not valid loop IR
  --> <loop IR>:1:9
      program linear_relu(M, N, K; A: f16[M, K], B: f16[K, N], bias: f16[N]) -> D: f16[M, N]:
              ^^^^^^^^^^^
  why:  `C` has 2 dimensions and here 3 indices, in `C[C.i, C.j, 0] = 0.0:f32`
  fix:  the rules are those of tensorlang.ir.verify""",
        ),
        (
            "stage C.0",
            "stage C.0 ?",
            """\
ParseError[unexpected-text]: `?` cannot stand here
  --> <loop IR>:6:15
      stage C.0 ?:
                ^
  why:  what may stand here is `:` or the end of the line
  fix:  compare with what printing such a thing gives""",
        ),
    ],
)
def test_an_error_points_at_the_word(part: str, other: str, message: str):
    with pytest.raises(ParseError) as caught:
        parse_program(LINEAR_RELU.replace(part, other, 1))
    assert str(caught.value) == message


A = Buffer("A", (f32, f32), ())
NAMES = {"i": Var("i"), "x": Param("x", f32), "A": A}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "unexpected-text"),
        ("i +", "unexpected-text"),
        ("(i", "unexpected-text"),
        ("i)", "unexpected-text"),
        ("i i", "unexpected-text"),
        ("i < i < i", "unexpected-text"),
        ("i ? i", "unexpected-text"),
        ("1.5", "bad-constant"),
        pytest.param("9" * 5000, "bad-constant", id="five thousand digits"),
        ("k", "unknown-name"),
        ("B[i]", "unknown-name"),
        ("A", "unknown-name"),
        ("i[0]", "unknown-name"),
        ("tan(x)", "unknown-name"),
        ("tanh(x, x)", "wrong-count"),
        ("min(i)", "wrong-count"),
        ("f32()", "wrong-count"),
        ("i + x", "ill-typed"),
        ("x % x", "ill-typed"),
        ("i/i", "ill-typed"),
        ("select(i, i, i)", "ill-typed"),
        ("promise(x, x, x)", "ill-typed"),
        ("exp(i)", "ill-typed"),
        ("A[x]", "ill-typed"),
        ("A[].2", "no-such-component"),
        ("1:f33", "bad-constant"),
        ("300:i8", "bad-constant"),
        ("-1:u8", "bad-constant"),
        ("1.5:i32", "bad-constant"),
        ("nan:i32", "bad-constant"),
        ("1:bool", "bad-constant"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_reason(text: str, code: str):
    with pytest.raises(ParseError) as caught:
        parse_expr(text, NAMES)
    assert caught.value.code == code


def test_a_long_line_is_shown_in_part():
    with pytest.raises(ParseError) as caught:
        parse_expr(" + ".join(["i"] * 1000) + " + k + " + " + ".join(["i"] * 1000), NAMES)
    shown = str(caught.value).splitlines()
    assert shown[1].endswith(":1:4001") or len(shown[2]) < 110
    assert shown[2][shown[3].index("^")] == "k"


def test_parts_in_braces_are_shared():
    i = Var("i")
    assert parse_expr("{ t0 = i + 1; t1 = t0*t0; t1 + t0 }", NAMES) is (i + 1) * (i + 1) + (i + 1)
    assert Const(1, index) is parse_expr("1", {})
