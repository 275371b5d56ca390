"""Loops over tiles that end where a mask leaves nothing of a tile."""

import numpy as np
import pytest

from tensorlang.ir.stmt import For, Program, walk
from tensorlang.lower.skip_masked import skip_masked
from tensorlang.text.loop_ir import parse_program
from tests.lower.between import executed, text

ROWS = """
program band(M, N; A: i32[M, N]) -> B: i32[M], C: i32[M]:
  for o in [0, (M + 3)//4):
    vectorized i in [o*4, +4):
      if i < M:
        B[i] = 0:i32
        C[i] = 0:i32
    for reduction to in [0, (N + 2)//3):
      allocate T: i32[1]:
        T[0] = 1:i32
        vectorized i in [o*4, +4):
          if i < M:
            vectorized reduction j in [to*3, +3):
              if j < N:
                {guard}
                  B[i] = B[i] + A[i, j]*T[0]
        {other}
"""
OTHER = """vectorized p in [o*4, +4):
          if p < M:
            vectorized reduction q in [to*3, +3):
              if q < N:
                {guard}
                  C[p] = C[p] + A[p, q]"""


def rows(guard: str, other: str = "") -> Program:
    second = OTHER.format(guard=other) if other else ""
    return parse_program(ROWS.format(guard=guard, other=second))


def loop_of(program: Program) -> For:
    (loop,) = (s for s in walk(program.body) if isinstance(s, For) and s.var == "to")
    return loop


@pytest.mark.parametrize(("m", "n"), [(1, 1), (9, 14), (14, 9), (0, 3), (5, 0)])
@pytest.mark.parametrize("guard", ["if j <= i:", "if i <= j:", "if (i < j + 5) & (j < i + 2):"])
def test_tiles_of_which_nothing_is_left_are_not_gone_through(guard: str, m: int, n: int) -> None:
    before = rows(guard)
    after = skip_masked(before)
    assert loop_of(after).extent is not loop_of(before).extent
    values = np.random.default_rng(m).integers(-9, 9, (m, n)).astype(np.int32)
    assert all(map(np.array_equal, executed(before, values), executed(after, values)))


def test_a_causal_mask_ends_the_loop_and_one_the_other_way_begins_it(golden) -> None:
    golden(text(skip_masked(rows("if j <= i:"))) + text(skip_masked(rows("if i <= j:"))))


def test_two_sums_leave_what_either_needs() -> None:
    before = rows("if j <= i:", "if q <= p + 4:")
    after = skip_masked(before)
    assert str(loop_of(after).extent) != str(loop_of(before).extent)
    values = np.random.default_rng(0).integers(-9, 9, (11, 17)).astype(np.int32)
    assert all(map(np.array_equal, executed(before, values), executed(after, values)))


@pytest.mark.parametrize(
    ("guard", "other"),
    [("if j <= i:", "if 0 <= q:"), ("if A[i, j] < 3:i32:", ""), ("if j*j <= i:", "")],
)
def test_where_a_store_stands_under_no_such_guard_the_loop_stays(guard: str, other: str) -> None:
    before = rows(guard, other)
    assert skip_masked(before) is before
