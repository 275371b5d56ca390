"""Lanes at known steps: quotients, remainders, and elements that a shuffle picks."""

import pytest

from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.program import translate
from tensorlang.backends.c.steps import in_whole_steps, steps_of, window_of
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.linear import integer, to_linear
from tensorlang.ir.stmt import Store
from tensorlang.ir.types import f32
from tensorlang.text.loop_ir import parse_program

X, Q = Var("x"), Var("q")
AVX2 = Machine(vector_bytes=32, has_fma=True, has_shuffles=True)
HALVES = """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[x//2] + A[x//2 + x % 2]*f32(x % 4)
"""


def index_after(e: Expr, first: Expr, width: int = 8) -> Expr:
    store = Store("B", (X,), (Load("A", (e,), 0, f32),))
    made = in_whole_steps(store, "x", first, width)
    assert isinstance(made, Store)
    (load,) = made.values
    return load.children[0]


def test_a_quotient_that_all_lanes_share_varies_no_more() -> None:
    assert index_after(X // 8, Q * 8) is Q
    assert index_after((X + 16) // 8, Q * 8) is Q + 2
    assert to_linear(index_after(X % 16, Q * 16)).key() == to_linear(X - Q * 16).key()


@pytest.mark.parametrize("e", [X // 4, (X + 1) // 8, X // 3, (X * 2) // 8])
def test_a_quotient_that_steps_between_lanes_stays(e: Expr) -> None:
    assert index_after(e, Q * 8) is e


def test_steps_are_known_where_the_first_lane_is_a_multiple() -> None:
    for e, steps in {
        X // 2: [0, 0, 1, 1, 2, 2, 3, 3],
        X * 2 + 1: [0, 2, 4, 6, 8, 10, 12, 14],
        (X // 2) - 1 + 2 * (X % 2): [0, 2, 1, 3, 2, 4, 3, 5],
        X % 4: [0, 1, 2, 3, 0, 1, 2, 3],
    }.items():
        known = steps_of(e, "x", Q * 8, 8)
        assert known is not None
        assert known[1] == steps
    assert steps_of(X // 2, "x", Q, 8) is None
    assert steps_of(X * Q, "x", Q * 8, 8) is None


@pytest.mark.parametrize("steps", [[0, 0, 1, 1], [0, 2, 4, 6], [3, 2, 1, 0], [0, 5, 1, 2], [-1, 3]])
def test_a_window_reads_from_the_first_element_to_the_last(steps: list[int]) -> None:
    window = window_of(steps, 8)
    assert window is not None
    lanes, apart = window
    low, span = min(steps), max(steps) - min(steps) + 1
    assert lanes + apart == span
    assert all(0 <= s - low < lanes or 0 <= s - low - apart < lanes for s in steps)


@pytest.mark.parametrize("steps", [[0, 0, 0], [0, 9, 18], [0, 1000]])
def test_what_two_vectors_do_not_hold_has_no_window(steps: list[int]) -> None:
    assert window_of(steps, 8) is None


def test_halves_are_loads_and_shuffles_where_the_compiler_has_them() -> None:
    source = translate(parse_program(HALVES), AVX2, [True] * 2).source
    assert "load_f32x4(A + t), 0, 0, 1, 1, 2, 2, 3, 3)" in source
    assert "(f32x8){0, 1, 2, 3, 0, 1, 2, 3}" in source
    without = translate(parse_program(HALVES), Machine(vector_bytes=32), [True] * 2).source
    assert "__builtin_shufflevector" not in without
    assert "#pragma GCC unroll 8" in without


def test_data_is_clamped_in_vectors_before_it_becomes_an_index() -> None:
    source = translate(
        parse_program("""
program p(N; A: f32[8], I: i32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[min(max(index(I[x]), 0), 7)] + f32(index(I[x]))
"""),
        AVX2,
        [True] * 3,
    ).source
    assert "min_i32x8(max_i32x8(" in source
    assert "__builtin_convertvector(" in source.partition("int tensorlang")[2]


def test_an_index_from_data_has_no_known_steps() -> None:
    data = Load("I", (X,), 0, integer(0).dtype)
    assert steps_of(X + data, "x", Q * 8, 8) is None
