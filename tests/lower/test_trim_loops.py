"""A guard just inside a serial loop becomes its extent."""

import numpy as np
import pytest

from tensorlang.ir.stmt import For, If, Program, walk
from tensorlang.lower.trim_loops import trim_loops
from tensorlang.text.loop_ir import parse_program
from tests.lower.between import executed, text

TAIL = """
program tail(N; A: f32[N]) -> B: f32[N]:
  for o in [0, (N + 3)//4):
    {kind} x in [0, 4):
      if o*4 + x < N:
        B[o*4 + x] = A[o*4 + x]
"""
BAND = """
program band(N; A: i32[N, N]) -> B: i32[N, N]:
  for x in [0, N):
    for y in [0, N):
      B[x, y] = 0:i32
    for y in [0, N):
      if (x <= y + 2) & (y < x + 3):
        if A[x, y] != 0:i32:
          B[x, y] = A[x, y]
"""
RECOVERED = """
program recovered(N; A: f32[N]) -> B: f32[N]:
  for o in [0, (N + 3)//4):
    for x in [0, 4):
      let v = o*4 + x
      if v < N:
        B[v] = A[v]
"""


def guards(program: Program) -> int:
    return sum(isinstance(s, If) for s in walk(program.body))


def test_an_upper_bound_ends_the_loop(golden) -> None:
    after = trim_loops(parse_program(TAIL.format(kind="for")))
    golden(text(after))
    assert guards(after) == 0


def test_bounds_on_both_sides_become_the_range_and_the_rest_stays(golden) -> None:
    before = parse_program(BAND)
    after = trim_loops(before)
    golden(text(after))
    assert guards(after) == 1
    values = np.arange(49, dtype=np.int32).reshape(7, 7)
    assert np.array_equal(executed(before, values), executed(after, values))


@pytest.mark.parametrize("n", [0, 1, 4, 7])
def test_a_bound_on_a_recovered_variable_is_one_on_the_loop(n: int) -> None:
    before = parse_program(RECOVERED)
    after = trim_loops(before)
    assert guards(after) == 0
    values = np.arange(n, dtype=np.float32)
    assert np.array_equal(executed(after, values)[0], values)


@pytest.mark.parametrize("kind", ["vectorized", "unrolled"])
def test_lanes_keep_their_extent_and_their_mask(kind: str) -> None:
    before = parse_program(TAIL.format(kind=kind))
    assert trim_loops(before) is before


@pytest.mark.parametrize("kind", ["parallel", "gpu_block"])
def test_programs_and_threads_are_trimmed_too(kind: str) -> None:
    after = trim_loops(parse_program(TAIL.format(kind=kind)))
    assert guards(after) == 0
    (inner,) = (s for s in walk(after.body) if isinstance(s, For) and s.var == "x")
    assert str(inner.extent) != "4"
