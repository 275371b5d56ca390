"""Unrolled loops become their iterations."""

import numpy as np
import pytest

from tensorlang import Schedule, ScheduleError
from tensorlang.ir.stmt import For, LoopKind, walk
from tensorlang.lower.unroll_loops import unroll_loops
from tensorlang.text.loop_ir import parse_program
from tests.lower.algorithms import i, two_stages
from tests.lower.between import executed, text

UNROLLED = """
program unrolled(N; A: i32[N]) -> B: i32[N]:
  for o in [0, (N + 2)//3):
    unrolled x in [o*3, +3):
      if x < N:
        B[x] = A[x] + 1:i32
"""
NESTED = """
program nested(A: i32[4]) -> B: i32[4]:
  unrolled x in [0, 2):
    unrolled y in [0, 2):
      B[x*2 + y] = A[x*2 + y] - 1:i32
"""


def test_an_unrolled_loop_becomes_its_iterations(golden) -> None:
    before = parse_program(UNROLLED)
    after = unroll_loops(before)
    golden(text(after))
    values = np.arange(7, dtype=np.int32)
    assert np.array_equal(executed(before, values), executed(after, values))
    assert not [s for s in walk(after.body) if isinstance(s, For) and s.kind is LoopKind.UNROLLED]


def test_nested_unrolled_loops_keep_their_order(golden) -> None:
    after = unroll_loops(parse_program(NESTED))
    golden(text(after))
    assert executed(after, np.array([3, 5, 7, 9], np.int32))[0].tolist() == [2, 4, 6, 8]


def test_an_empty_unrolled_loop_is_nothing() -> None:
    after = unroll_loops(parse_program(NESTED.replace("y in [0, 2)", "y in [0, 0)")))
    assert not [s for s in walk(after.body) if isinstance(s, For)]


def test_an_extent_that_is_no_constant_is_refused_where_it_was_written() -> None:
    pipeline = two_stages()
    s = Schedule(pipeline)
    s["g"].unroll(i)
    with pytest.raises(ScheduleError, match="extent-not-constant") as caught:
        pipeline.lower(s)
    assert caught.value.span is not None
    assert caught.value.span.path == __file__


def test_a_program_without_unrolled_loops_is_left_alone() -> None:
    before = parse_program(UNROLLED.replace("unrolled x", "for x"))
    assert unroll_loops(before) is before
