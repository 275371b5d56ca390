"""Proofs: never wrong, and strong enough for what lowering asks."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings

from tensorlang.ir.expr import Cast, Const, Expr, Load, Param, Size, Var
from tensorlang.ir.facts import Facts, prove, prove_le, prove_lt
from tensorlang.ir.functions import clamp, maximum, minimum, promise, select
from tensorlang.ir.types import i32, i64, index, u8
from tests.ir.evaluation import value_of
from tests.ir.index_exprs import Scene, conditions, scenes

i, j, t, io, ii, jo, k, x = (Var(n) for n in ("i", "j", "t", "io", "ii", "jo", "k", "x"))
M, N, K, H, W = (Size(n) for n in "MNKHW")
NOTHING = Facts.none


def ceil_div(n: Expr, by: int) -> Expr:
    return (n + (by - 1)) // by


TILED = NOTHING.with_range("io", 0, ceil_div(M, 128)).with_range("ii", 0, 128)
FUSED = NOTHING.with_range("t", 0, M * N)
FUSED_TILES = NOTHING.with_range("t", 0, ceil_div(M, 128) * ceil_div(N, 128) * 3)
RAGGED = NOTHING.with_range("io", 0, ceil_div(M, 128)).with_range(
    "ii", 0, minimum(M - io * 128, 128)
)
TRIANGLE = NOTHING.with_range("i", 0, N).with_range("j", 0, i + 1)
TAKEN = Load("taken", (i,), 0, i32)
BYTE = Cast(index, Load("bytes", (i,), 0, u8))
AT = Cast(index, TAKEN)

TRUE = [
    (8 * ((N + 7) // 8) - 1 >= N - 1, NOTHING),
    (io * 128 + ii < (M + 127) // 128 * 128, TILED),
    (io * 128 < M, TILED),
    ((io + 1) * 128 <= ceil_div(M, 128) * 128, TILED),
    (M >= 1, TILED),
    (t // N < M, FUSED),
    (t % N <= N - 1, FUSED),
    (t // N * N + t % N == t, FUSED),
    ((N >= 1) & (M >= 1), FUSED),
    (t // (ceil_div(N, 128) * 3) * 128 < M, FUSED_TILES),
    (t % (ceil_div(N, 128) * 3) // 3 * 128 < N, FUSED_TILES),
    (t % 3 <= 2, FUSED_TILES),
    (io * 128 + ii < M, RAGGED),
    (ii < 128, RAGGED),
    (j < N, TRIANGLE),
    (j <= i, TRIANGLE),
    (i * N + j < N * N, TRIANGLE),
    (i * N + j <= M * N - 1, NOTHING.with_range("i", 0, M).with_range("j", 0, N)),
    (clamp(x, 0, N - 1) <= N - 1, NOTHING),
    (clamp(x, 0, N - 1) >= 0, NOTHING.assume(N >= 1)),
    (minimum(x, N) <= N, NOTHING),
    (maximum(x, N) >= x, NOTHING),
    (minimum(x, j) <= maximum(x, j), NOTHING),
    (minimum(x + 128, N) - minimum(x, N) <= 128, NOTHING),
    (maximum(minimum(x + 127, N - 1), 0) - maximum(minimum(x, N - 1), 0) <= 127, NOTHING),
    (select(x < N, x, N - 1) < N, NOTHING),
    (select(x < 0, 0, x) >= 0, NOTHING),
    (promise(x, 0, N - 1) < N, NOTHING),
    (promise(x, 2, N) >= 1, NOTHING),
    ((BYTE >= 0) & (BYTE <= 255), NOTHING),
    (BYTE // 16 < 16, NOTHING),
    (Load("bytes", (i,), 0, u8) <= 255, NOTHING),
    (AT < N, NOTHING.assume(AT < N)),
    (AT >= 0, NOTHING.assume(TAKEN >= 3)),
    (Cast(index, clamp(TAKEN, 0, Cast(i64, N - 1))) < N, NOTHING),
    (x % 8 * 16 + j % 16 < 128, NOTHING),
    (x // 8 * 8 <= x, NOTHING),
    (x // N <= x, NOTHING.assume((x >= 0) & (N >= 1))),
    (x // N * N <= x, NOTHING.assume(N >= 1)),
    (x - N < x // N * N, NOTHING.assume(N >= 1)),
    (i < K, NOTHING.with_range("i", 0, M).assume(M <= N).assume(N < K)),
    (k == io * 64 + ii, NOTHING.with_value("k", io * 64 + ii)),
    (k < ceil_div(M, 128) * 128, TILED.with_value("k", io * 128 + ii)),
    (x >= 1, NOTHING.assume((x >= 0) & (x != 0))),
    ((i < M) | (i >= M), NOTHING),
    (2 * x != 7, NOTHING),
    (x + 1 != x, NOTHING),
    ((H - 2) * (W - 2) >= 1, NOTHING.with_range("i", 0, H - 2).with_range("j", 0, W - 2)),
    (
        i // (W - 2) < H - 2,
        NOTHING.assume((H >= 2) & (W >= 2)).with_range("i", 0, (H - 2) * (W - 2)),
    ),
    (jo * 128 + (x - jo * 128) == x, NOTHING),
    (io * 128 + minimum(ii, M - 1 - io * 128) <= M - 1, NOTHING),
]


@pytest.mark.parametrize(("condition", "facts"), TRUE)
def test_proved(condition: Expr, facts: Facts):
    assert prove(condition, facts)


NOT_PROVED = [
    (N >= 1, NOTHING),
    (clamp(x, 0, N - 1) >= 0, NOTHING),  # N may be 0
    (x % N <= N - 1, NOTHING),  # x % 0 is 0
    (io * 128 + ii < M, TILED),
    (t // N < M, NOTHING),
    (j < i, TRIANGLE),
    (minimum(x, N) >= N, NOTHING),
    (x * x >= x + 1, NOTHING),
    (BYTE < 255, NOTHING),
    (Cast(index, Param("a", i32) + 1) > Cast(index, Param("a", i32)), NOTHING),
    (x // N * N <= x, NOTHING),
    (Load("taken", (j,), 0, i32) >= 3, NOTHING.assume(TAKEN >= 3)),
]


@pytest.mark.parametrize(("condition", "facts"), NOT_PROVED)
def test_not_proved_because_it_is_not_true(condition: Expr, facts: Facts):
    assert not prove(condition, facts)


@settings(max_examples=300)
@given(conditions, scenes())
def test_nothing_false_is_proved(condition: Expr, scene: Scene):
    if prove(condition, scene.facts):
        assert all(value for _, value in scene.values(condition))


@settings(max_examples=200)
@given(conditions, scenes())
def test_assumptions_hold_under_themselves(condition: Expr, scene: Scene):
    assert prove(condition, scene.facts.assume(condition))


def test_facts_are_immutable():
    facts = NOTHING.with_range("i", 0, N)
    facts.assume(N < M)
    assert not prove(i < M, facts)


def test_another_variable_of_the_same_name_starts_anew():
    facts = NOTHING.with_range("i", 0, 4).assume(i < M).with_range("i", 10, 20)
    assert prove(i >= 10, facts)
    assert not prove(i < 4, facts)
    assert not prove(i < M, facts)


def test_a_let_of_data_says_nothing_and_forgets_what_was_said():
    facts = NOTHING.with_range("v", 0, 4).with_value("v", Param("p", i32))
    assert not prove(Var("v") < 4, facts)


def test_le_and_lt_take_numbers_and_data():
    assert prove_lt(3, 4)
    assert not prove_lt(4, 4)
    assert prove_le(4, 4)
    assert prove_le(0, Load("bytes", (i,), 0, u8))
    assert prove_lt(Load("bytes", (i,), 0, u8), 256)


def test_contradictory_facts_do_no_harm():
    facts = NOTHING.assume((i < 0) & (i > 0))
    assert prove(i == i, facts)
    prove(j < i, facts)


def test_a_hopeless_proof_ends_soon():
    facts = NOTHING
    names = [Var(f"v{n}") for n in range(30)]
    for a, b in pairwise(names):
        facts = facts.assume(minimum(a, b) * maximum(a, b) // 3 <= (a + b) % 7)
    start = time.process_time()
    assert not prove(names[0] * names[7] < names[29] // (names[3] + 1), facts)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("size", range(12))
def test_tiles_of_any_size_cover_the_whole(size: int):
    covered = value_of(8 * ((N + 7) // 8) - 1 >= N - 1, {"N": size})
    assert covered


def test_a_multiple_divides_without_a_rest():
    n, io, ii = Size("N"), Var("io"), Var("ii")
    facts = Facts.none.assume(n % 24 == 0)
    assert facts.simplified((n + 23) // 24) is n // 24
    assert facts.simplified(n % 8) is Const(0, index)
    assert facts.simplified((n + 5) % 12) is Const(5, index)
    assert facts.simplified(n // 8 - 3 * (n // 24)) is Const(0, index)
    assert facts.simplified(n % 16) is n % 16
    inside = facts.with_range("io", 0, (n + 7) // 8).with_range("ii", 0, 8)
    assert prove_lt(io * 8 + ii, n, inside)


def test_two_divisors_make_their_least_common_multiple():
    n = Size("N")
    facts = Facts.none.assume((n % 4 == 0) & (n % 6 == 0))
    assert facts.simplified(n % 12) is Const(0, index)


def test_what_is_forgotten_divides_no_more():
    x = Var("x")
    facts = Facts.none.assume(x % 8 == 0).with_range("x", 0, 9)
    assert facts.simplified(x % 8) is not Const(0, index)


def test_what_is_known_further_in_is_not_asked_about_what_stands_further_out():
    outer = NOTHING.with_range("io", 0, ceil_div(M, 128))
    inner = outer.with_range("ii", 0, 128).assume(io * 128 + ii < M)
    assert inner.known.around(["io", "M"]) is outer.known
    assert inner.known.around(["ii"]) is inner.known
    value = maximum(ceil_div(M, 128) - io, 1)
    assert inner.simplified(value) is outer.simplified(value)


def test_what_a_guard_inside_says_of_outer_names_is_known():
    outer = NOTHING.with_range("i", 0, M)
    inner = outer.with_range("j", 0, N).assume(i >= 5)
    assert inner.simplified(maximum(i, 3)) is i
    assert outer.simplified(maximum(i, 3)) is not i
    # That the inner loop runs at all says that N is no 0.
    assert inner.simplified(maximum(N, 1)) is N
