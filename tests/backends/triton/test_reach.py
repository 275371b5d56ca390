"""Indices take 64 bits exactly when sizes and strides need them."""

from hypothesis import given
from hypothesis import strategies as st

from tensorlang.backends.triton.reach import Reach
from tests.backends.triton import programs
from tests.backends.triton.running import compiled


def wide(m: int, n: int, row: int) -> bool:
    [kernel] = compiled(programs.SCALE).kernels
    strides = {"A.s0": row, "A.s1": 1, "D.s0": n, "D.s1": 1}
    return Reach(kernel.kernel).is_wide({"M": m, "N": n}, strides, {})


def test_small_arrays_take_32_bits() -> None:
    assert not wide(1000, 1000, 1000)
    assert not wide(1, 2**30, 2**30)


def test_a_far_row_takes_64() -> None:
    assert wide(3, 40, 2**30)
    assert wide(2**16, 2**16, 2**16)
    assert wide(1, 2**31, 2**31)


def test_an_index_that_is_data_counts_as_its_type_unless_clamped() -> None:
    text = """
program gather(N; I: i64[N], A: f32[N]) -> out: f32[N]:
  stage out.0:
    vectorized out.i in [0, 16):
      if out.i < N:
        out[out.i] = A[{index}]
"""
    for index, expected in (
        ("index(I[out.i])", True),
        ("index(min(max(I[out.i], 0:i64), 9:i64))", False),
    ):
        [kernel] = compiled(text.format(index=index)).kernels
        strides = {"I.s0": 1, "A.s0": 1, "out.s0": 1}
        assert Reach(kernel.kernel).is_wide({"N": 16}, strides, {}) is expected


def test_a_grid_over_an_unknown_size_is_as_long_as_its_programs() -> None:
    [kernel] = compiled(programs.SCALE).kernels
    reach, strides = Reach(kernel.kernel), {"A.s0": 64, "A.s1": 1, "D.s0": 64, "D.s1": 1}
    assert reach.is_wide({"N": 64}, strides, {})
    assert not reach.is_wide({"N": 64}, strides, {}, programs=1000)
    assert reach.is_wide({"N": 64}, strides, {}, programs=2**26)


@given(st.integers(0, 2**33), st.integers(0, 2**33), st.integers(0, 2**33))
def test_numbers_of_as_many_bits_are_decided_together_but_not_wrongly(
    m: int, n: int, row: int
) -> None:
    strides = {"A.s0": row, "A.s1": 1, "D.s0": n, "D.s1": 1}
    fresh = Reach(SCALE.kernel).is_wide({"M": m, "N": n}, strides, {})
    assert SHARED.is_wide({"M": m, "N": n}, strides, {}) == fresh
    furthest = max(m - 1, 0) * max(row, n) + n
    assert fresh or furthest < 2**31


[SCALE] = compiled(programs.SCALE).kernels
SHARED = Reach(SCALE.kernel)
