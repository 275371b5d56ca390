"""Loops over tiles split where a mask that joins two lanes begins to matter."""

import numpy as np
import pytest

from tensorlang.ir.stmt import For, If, Program, walk
from tensorlang.lower.partition_loops import partition_loops
from tensorlang.text.loop_ir import parse_program
from tests.lower.between import executed, text

ROWS = """
program band(M, N; A: i32[M, N]) -> B: i32[M]:
  for o in [0, (M + 3)//4):
    vectorized i in [o*4, +4):
      if i < M:
        B[i] = 0:i32
    for {kind} to in [0, (N + 2)//3):
      vectorized i in [o*4, +4):
        if i < M:
          vectorized reduction j in [to*3, +3):
            if j < N:
              {guard}
                B[i] = B[i] + A[i, j]
"""


def rows(guard: str, kind: str = "reduction") -> Program:
    return parse_program(ROWS.format(guard=guard, kind=kind))


def loops(program: Program) -> list[For]:
    return [s for s in walk(program.body) if isinstance(s, For) and s.var == "to"]


def guards(stmt: For) -> int:
    return sum(isinstance(s, If) for s in walk(stmt))


@pytest.mark.parametrize(("m", "n"), [(1, 1), (9, 14), (14, 9), (0, 3), (5, 0)])
@pytest.mark.parametrize(
    ("guard", "pieces"), [("if j <= i:", 2), ("if i <= j:", 3), ("if i < j + 5:", 3)]
)
def test_a_mask_over_the_tile_is_left_at_the_boundary(guard: str, pieces: int, m: int, n: int):
    before = rows(guard)
    after = partition_loops(before)
    assert len(loops(after)) == pieces
    assert min(guards(loop) for loop in loops(after)) == 1
    values = np.random.default_rng(m).integers(-9, 9, (m, n)).astype(np.int32)
    assert np.array_equal(executed(before, values), executed(after, values))


@pytest.mark.parametrize(("m", "n"), [(9, 14), (9, 12), (9, 9)])
def test_a_part_of_a_mask_that_only_the_call_decides_is_not_left_out(m: int, n: int):
    before = rows("if max(j - i, -3) <= M - N:")
    values = np.random.default_rng(m).integers(1, 9, (m, n)).astype(np.int32)
    kept = np.tril(values, m - n) * (m - n >= -3)
    assert np.array_equal(executed(partition_loops(before), values)[0], kept.sum(axis=1))


def test_the_boundary_of_a_causal_mask(golden) -> None:
    golden(text(partition_loops(rows("if j <= i:"))))


LONG = """
program tail(N; A: i32[N]) -> B: i32[N]:
  for o in [0, (N + {lane} - 1)//{lane}):
    vectorized i in [o*{lane}, +{lane}):
      if i < N:
        B[i] = A[i] + 1:i32
"""


@pytest.mark.parametrize(("lane", "pieces"), [(8, 1), (1024, 2)])
def test_a_long_lane_is_masked_in_its_last_slice_alone(lane: int, pieces: int) -> None:
    before = parse_program(LONG.format(lane=lane))
    after = partition_loops(before)
    found = [s for s in walk(after.body) if isinstance(s, For) and s.var == "o"]
    assert len(found) == pieces
    assert min(guards(loop) for loop in found) == (pieces == 1)
    values = np.arange(1500, dtype=np.int32)
    [made] = executed(after, values)
    assert np.array_equal(made, values + 1)


@pytest.mark.parametrize("guard", ["if 0 <= j:", "if A[i, j] < 3:i32:", "if j*j <= i:"])
def test_tails_of_one_lane_and_what_is_not_linear_stay(guard: str) -> None:
    before = rows(guard)
    assert partition_loops(before) is before
