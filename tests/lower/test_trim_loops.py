"""A guard just inside a serial loop becomes its extent."""

import numpy as np
import pytest

from tensorlang.ir.printer import print_expr
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
RAGGED = """
program ragged(M, N; length: i32[M], A: f32[M, N]) -> total: f32[M]:
  for x in [0, M):
    total[x] = 0.0:f32
    {kind} y in [0, N):
      if {guard}:
        total[x] = total[x] + A[x, y]
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


@pytest.mark.parametrize("n", [0, 5])
def test_what_is_read_ends_a_serial_loop(n: int) -> None:
    before = parse_program(RAGGED.format(kind="for", guard="y < index(length[x])"))
    after = trim_loops(before)
    (loop,) = (s for s in walk(after.body) if isinstance(s, For) and s.var == "y")
    assert loop.extent.reads == {"length"}
    # Where no iteration would run, nothing is read for it.
    (guard,) = (s for s in walk(after.body) if isinstance(s, If))
    assert print_expr(guard.condition) == "1 <= N"
    length, values = np.array([3, 0, 9, -2], np.int32), np.ones((4, n), np.float32)
    assert np.array_equal(executed(before, length, values), executed(after, length, values))


@pytest.mark.parametrize(
    ("kind", "guard"),
    [
        ("parallel", "y < index(length[x])"),
        ("for", "y < index(total[x])"),
        ("for", "(0:i32 <= length[x]) & (y < index(length[index(length[x])]))"),
    ],
    ids=["threads", "written inside", "behind a guard"],
)
def test_a_bound_that_may_not_be_read_before_stays_a_guard(kind: str, guard: str) -> None:
    before = parse_program(RAGGED.format(kind=kind, guard=guard))
    assert trim_loops(before) is before
