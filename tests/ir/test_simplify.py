"""Simplified expressions keep their value, are canonical, and cost little to make."""

import math
import time
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Param, Select, Size, Unary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.functions import clamp, maximum, minimum, promise, select
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import bf16, f16, f32, f64, i8, i16, i32, i64, index, u8
from tensorlang.ir.walk import postorder
from tests.ir.evaluation import same, value_of
from tests.ir.index_exprs import Scene, conditions, index_exprs, number, scenes

i, j, t, io, ii, x = (Var(n) for n in ("i", "j", "t", "io", "ii", "x"))
M, N = Size("M"), Size("N")
TILED = Facts.none.with_range("io", 0, (M + 127) // 128).with_range("ii", 0, 128)
FUSED = Facts.none.with_range("t", 0, M * N)
NOTHING = Facts.none


def same_facts(facts: Facts) -> Facts:
    """The same facts without what has been simplified under them."""
    return Facts(facts.known, facts.conditions)


@settings(max_examples=300)
@given(index_exprs | conditions, scenes())
def test_the_value_stays_wherever_the_facts_hold(e: Expr, scene: Scene):
    simple = simplify(e, scene.facts)
    for point, value in scene.values(e):
        assert same(value, value_of(simple, point)), point


@settings(max_examples=300)
@given(index_exprs | conditions, scenes())
def test_simplifying_again_gives_the_same_object(e: Expr, scene: Scene):
    simple = simplify(e, scene.facts)
    assert simplify(simple, same_facts(scene.facts)) is simple


@given(index_exprs | conditions)
def test_size_does_not_explode(e: Expr):
    simple = simplify(e)
    assert len(list(postorder(simple))) <= 2 * len(list(postorder(e))) + 8


INDEX_IDENTITIES = [
    (3 + ii * 1 + 128 * io, io * 128 + ii + 3, NOTHING),
    ((x + 1) - x, number(1), NOTHING),
    ((io * 128 + ii) // 128, io, TILED),
    ((io * 128 + ii) % 128, ii, TILED),
    ((io * 128 + ii) // 64, io * 2 + ii // 64, NOTHING),
    ((io * 64 + ii % 64) // 128, io // 2, NOTHING),
    ((M - 1) // 128 + 1, (M + 127) // 128, NOTHING),
    ((M + 130) // 128, (M + 2) // 128 + 1, NOTHING),
    (x // 4 // 8, x // 32, NOTHING),
    ((x // 4 + 3) // 8, (x + 12) // 32, NOTHING),
    (x % 32 % 8, x % 8, NOTHING),
    (x % 32 // 8, x // 8 % 4, NOTHING),
    ((x * 6) // 8, x * 3 // 4, NOTHING),
    ((x * 6) % 8, x * 3 % 4 * 2, NOTHING),
    (x // -4, (-x) // 4, NOTHING),
    (x // 0, number(0), NOTHING),
    (x % 0, number(0), NOTHING),
    (x // 8 * 8 + x % 8, x, NOTHING),
    ((x + 3) // 8 * 8 + (x + 3) % 8, x + 3, NOTHING),
    (x - x // 8 * 8, x % 8, NOTHING),
    (t // N * N + t % N, t, FUSED),
    (t - t // N * N, t % N, FUSED),
    ((t * N + j) % N, j % N, NOTHING),
    (N * M % N, number(0), NOTHING),
    ((i + 1) * N - i * N, N, NOTHING),
    (x % 8 // 8, number(0), NOTHING),
    (minimum(x + 3, x + 5), x + 3, NOTHING),
    (maximum(x, maximum(x, j)), maximum(j, x), NOTHING),
    (minimum(x + N, 3 + N), minimum(x, 3) + N, NOTHING),
    (minimum(minimum(x, 8), 5), minimum(x, 5), NOTHING),
    (clamp(ii, 0, 127), ii, TILED),
    (clamp(clamp(x, 0, N - 1), 0, N - 1), clamp(x, 0, N - 1), NOTHING.assume(N >= 1)),
    (select(io < M, ii, 0), ii, TILED),
    (select(x < N, x, x), x, NOTHING),
    (promise(ii, 0, 127), ii, TILED),
    (M - i - 1 + 0 * j, M - i - 1, NOTHING),
    (-(-x), x, NOTHING),
    (M % 1 + M // 1, M, NOTHING),
]


@pytest.mark.parametrize(("e", "expected", "facts"), INDEX_IDENTITIES)
def test_index_identity(e: Expr, expected: Expr, facts: Facts):
    assert simplify(e, facts) is simplify(expected)


CONDITIONS = [
    (io * 128 < M, True, TILED),
    (io * 128 + ii < (M + 127) // 128 * 128, True, TILED),
    (ii < 0, False, TILED),
    (x + 1 > x, True, NOTHING),
    (x * 2 == 3, False, NOTHING),
    (x != x + 1, True, NOTHING),
    (t // N < M, True, FUSED),
    (t % N < N, True, FUSED),
    ((x < N) & (x >= N), False, NOTHING),
    ((x < N) | ~(x < N), True, NOTHING),
    (M >= 0, True, NOTHING),
    (N == 3, True, NOTHING.assume(N == 3)),
]


@pytest.mark.parametrize(("condition", "expected", "facts"), CONDITIONS)
def test_condition_is_decided(condition: Expr, expected: bool, facts: Facts):
    decided = simplify(condition, facts)
    assert isinstance(decided, Const)
    assert decided.value is expected


SPELLINGS = [
    (i <= M - 1, i < M),
    (i - M < 0, i < M),
    (i - 1 >= 0, i >= 1),
    (2 * i < 2 * M, i < M),
    (~(i < M), i >= M),
    (2 * i + 1 <= 6, i <= 2),
    (j == i, i == j),
    ((i < M) & (i < M), i < M),
    ((i < M) & (i < M + 1), i < M),
    ((i < M + 1) & (i < M), i < M),
    ((i < M) | (i < M + 1), i < M + 1),
    ((i < 4) & (j < N) & (i < 8), (i < 4) & (j < N)),
    ((i < 8) & (j < N) & (i < 4), (j < N) & (i < 4)),
]


@pytest.mark.parametrize(("e", "expected"), SPELLINGS)
def test_equivalent_conditions_become_one(e: Expr, expected: Expr):
    assert simplify(e) is simplify(expected)


def test_a_guard_that_was_assumed_is_true_also_where_it_is_not_index_arithmetic():
    guard = Load("mask", (i,), 0, u8) != 0
    assert simplify(guard, NOTHING.assume(guard)) is Const(True, guard.dtype)
    assert simplify(~guard, NOTHING.assume(guard)) is Const(False, guard.dtype)


a32, b32 = Param("a", i32), Param("b", i32)
u = Load("A", (x,), 0, u8)
h, f = Param("h", f16), Param("f", f32)
MINUS_ZERO = Const(-0.0, f32)

DATA_IDENTITIES = [
    (a32 + 0, a32),
    ((a32 + 3) - 5, a32 + Const(-2, i32)),
    (a32 - a32, Const(0, i32)),
    (a32 * 1 * 0, Const(0, i32)),
    (Const(2**31 - 1, i32) + Const(1, i32), Const(-(2**31), i32)),
    (Const(-7, i32) // Const(2, i32), Const(-4, i32)),
    (Const(-7, i32) % Const(0, i32), Const(0, i32)),
    (Const(-1, i8) >> Const(9, i8), Const(-1, i8)),
    (Const(1, i8) << Const(8, i8), Const(0, i8)),
    (~(a32 < b32), b32 <= a32),
    (minimum(a32, a32), a32),
    (select(a32 < b32, f, f), f),
    (f * 1, f),
    (f / 1, f),
    (f - 0.0, f),
    (f + MINUS_ZERO, f),
    (-(-f), f),
    (Const(0.1, f16) + Const(0.2, f16), Const(0.2998046875, f16)),
    (Const(1.0, f32) / Const(0.0, f32), Const(math.inf, f32)),
    (Const(1.0, bf16) + Const(2.0**-9, bf16), Const(1.0, bf16)),
    (Cast(i32, Cast(i16, u)), Cast(i32, u)),
    (Cast(u8, Cast(i32, u)), u),
    (Cast(f16, Cast(f32, h)), h),
    (Cast(f64, Cast(f32, h)), Cast(f64, h)),
    (Cast(i8, Cast(i16, a32)), Cast(i8, a32)),
    (Cast(index, Cast(i64, i + 1)), i + 1),
    (
        Cast(index, clamp(Load("A", (i,), 0, i32), 0, Cast(i64, N - 1))),
        clamp(Cast(index, Load("A", (i,), 0, i32)), 0, N - 1),
    ),
    (Cast(index, Cast(i32, u) * 2 + 1), Cast(index, u) * 2 + 1),
]


@pytest.mark.parametrize(("e", "expected"), DATA_IDENTITIES)
def test_data_identity(e: Expr, expected: Expr):
    assert simplify(e) is simplify(expected)


UNCHANGED = [
    f + 0.0,  # -0.0 + 0.0 is 0.0
    f - f,  # NaN and inf
    f * 0.0,
    f + f + f,
    ~(f < 1.0),  # NaN is not >= 1
    Cast(f32, Cast(f16, f)),
    Cast(i8, Cast(f32, Param("s", i16))),  # from a float it saturates
    Cast(index, Param("n", i32) + 1),  # the sum may wrap
    (a32 + b32) - b32 < a32,
    Param("p", f32) / 3.0,
    f == f,  # false for NaN
]


@pytest.mark.parametrize("e", UNCHANGED)
def test_what_would_change_a_bit_stays(e: Expr):
    assert simplify(e) is e


def _sum(terms: list[Expr]) -> Expr:
    return reduce(lambda a, b: a + b, terms)


NAMES: list[Expr] = [Var(f"v{n}") for n in range(2000)]


def _doubled(step: object) -> Expr:
    e: Expr = x
    for n in range(20):
        e = step(e, n)  # type: ignore[operator]
    return e


LARGE = {
    "2,000 names": _sum(NAMES),
    "2,000 terms of few atoms": _sum([v // 3 for v in NAMES[:5]] * 400),
    "2,000 floats": _sum([Load("A", (v,), 0, f32) for v in NAMES]),
    "2,000 conditions": reduce(lambda a, b: a & b, [v < 3 for v in NAMES]),
    "a sum doubled 20 times": _doubled(lambda e, n: e + e),
    "a square 20 times": _doubled(lambda e, n: e * e),
    "min of a shared value 20 times": _doubled(lambda e, n: minimum(e + 1, e * 2)),
    "select of a shared value 20 times": _doubled(lambda e, n: select(j < n, e + 1, e * 2)),
    "a quotient of a shared value 20 times": _doubled(lambda e, n: e + e // 3),
}


@pytest.mark.parametrize("what", LARGE)
def test_large_and_shared_expressions_take_little_time(what: str):
    start = time.process_time()
    simple = simplify(LARGE[what])
    assert time.process_time() - start < 5  # a walk of the tree takes minutes
    assert simplify(simple, Facts()) is simple


def test_the_order_of_writing_does_not_matter():
    a = simplify(_sum(NAMES[:50]))
    assert simplify(_sum(NAMES[49::-1])) is a


@given(st.permutations([io * 128, ii, -M, number(3), t // 4, -(x * j)]))
def test_sums_have_one_spelling(terms: list[Expr]):
    assert simplify(_sum(terms)) is simplify(io * 128 + ii + t // 4 - M - x * j + 3)


def test_a_product_is_multiplied_out_only_where_terms_cancel():
    kept = (M - 2) * (N - 2)
    assert isinstance(simplify(kept), Binary)
    assert simplify(kept).op == "mul"  # type: ignore[attr-defined]


def test_select_and_unary_nodes_are_rebuilt_only_when_an_operand_changes():
    e = Select(i < M, Unary("neg", i), j)
    assert simplify(e) is e
