"""A value that has a name is read by it, and means the same."""

from dataclasses import replace

from tensorlang.backends.c.reuse import reuse_names
from tensorlang.ir.printer import print_program
from tensorlang.text.loop_ir import parse_program

PROGRAM = """
program p(N; A: f32[N]) -> B: f32[N]:
  for o in [0, (N + 7)//8):
    let m = min(max(N - 8, 0), o*8)
    let first = min(max(N - 8, 0), o*8)
    vectorized i in [0, 8):
      let x = i + min(max(N - 8, 0), o*8)
      if x < N:
        B[x] = A[x]*f32(i32(first))
"""


def after(text: str) -> str:
    program = parse_program(text)
    return print_program(replace(program, body=reuse_names(program.body)))


def test_a_named_value_is_read_by_its_name_and_a_second_name_is_gone():
    text = after(PROGRAM)
    assert "let x = i + m" in text
    assert "f32(i32(m))" in text
    assert "first" not in text


def test_what_has_no_names_stays_itself():
    program = parse_program("program p(N) -> B: f32[N]:\n  for x in [0, N):\n    B[x] = 1.0:f32\n")
    assert reuse_names(program.body) is program.body
