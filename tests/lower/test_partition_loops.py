"""Loops over tiles split where a mask that joins two lanes begins to matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.stmt import For, If, Program, walk
from tensorlang.lower.partition_loops import partition_loops
from tensorlang.lower.skip_masked import skip_masked
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


PACKED = """
program packed(M, N; first: i32[M], last: i32[M], A: i32[M, N]) -> B: i32[M]:
  for o in [0, (M + 3)//4):
    vectorized i in [o*4, +4):
      if i < M:
        B[i] = 0:i32
    for reduction to in [0, (N + 2)//3):
      vectorized i in [o*4, +4):
        if i < M:
          vectorized reduction j in [to*3, +3):
            if j < N:
              if (index(first[i]) <= j) & (j < index(last[i])):
                B[i] = B[i] + A[i, j]
"""
# Also numbers beyond all indices, of which arithmetic of 32 bits would make others.
POINTS = st.integers(-2, 25) | st.sampled_from([-(2**31), 2**31 - 1])


@given(st.integers(0, 24), st.lists(st.tuples(POINTS, POINTS), max_size=9))
def test_a_mask_by_data_is_left_where_it_says_nothing(n: int, ranges: list[tuple[int, int]]):
    before = parse_program(PACKED)
    after = partition_loops(before)
    assert [guards(loop) for loop in loops(after)] == [3, 1, 3]
    fewer = partition_loops(skip_masked(before))
    assert "first_least" in text(fewer)
    first, last = (np.array([r[k] for r in ranges], np.int32) for k in (0, 1))
    values = np.random.default_rng(n).integers(1, 9, (len(ranges), n)).astype(np.int32)
    at = np.arange(n)
    kept = values * ((first[:, None] <= at) & (at < last[:, None]))
    for program in (after, fewer):
        assert np.array_equal(executed(program, first, last, values)[0], kept.sum(axis=1))


def test_slices_in_which_no_row_has_a_point_are_skipped(golden) -> None:
    golden(text(skip_masked(parse_program(PACKED))))


def test_the_boundary_of_packed_sequences(golden) -> None:
    golden(text(partition_loops(parse_program(PACKED))))


@pytest.mark.parametrize(
    "guard", ["if index(first[j]) <= j:", "if index(B[i]) <= j:", "if index(first[i])*2 <= j:"]
)
def test_data_of_the_loop_or_of_what_it_writes_has_no_extreme(guard: str) -> None:
    both = "if (index(first[i]) <= j) & (j < index(last[i])):"
    before = parse_program(PACKED.replace(both, guard))
    assert partition_loops(before) is before
