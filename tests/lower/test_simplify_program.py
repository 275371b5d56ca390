"""Canonical expressions, proven guards dropped, small Lets inlined."""

import numpy as np

from tensorlang.ir.stmt import If, Let, walk
from tensorlang.lower.simplify_program import simplify_program
from tensorlang.text.loop_ir import parse_program
from tests.lower.between import executed, text

GUARDED = """
program guarded(N; A: i32[N]) -> B: i32[N]:
  for o in [0, (N + 3)//4):
    let first = o*4
    let last = first + 3
    for x in [0, 4):
      let v = first + x
      if (0 <= v) & (v <= last) & (v < N):
        B[v] = A[x + o*4 + 1 - 1]
"""


def test_what_the_loops_imply_is_not_asked_again(golden) -> None:
    before = parse_program(GUARDED)
    after = simplify_program(before)
    golden(text(after))
    (guard,) = (s for s in walk(after.body) if isinstance(s, If))
    assert "last" not in guard.condition.free
    values = np.arange(7, dtype=np.int32)
    assert np.array_equal(executed(before, values), executed(after, values))


def test_a_let_of_a_name_or_a_constant_is_inlined() -> None:
    after = simplify_program(parse_program(GUARDED.replace("o*4\n", "o\n").replace("+ 3", "*0")))
    assert not [s for s in walk(after.body) if isinstance(s, Let) and s.var in ("first", "last")]


def test_a_simplified_program_is_left_alone() -> None:
    after = simplify_program(parse_program(GUARDED))
    assert simplify_program(after) is after
