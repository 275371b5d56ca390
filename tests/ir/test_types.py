import math
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.types import (
    DTYPES,
    DType,
    accumulator,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    index,
    promote,
    round_float,
    tf32,
    u8,
    u16,
    u32,
    u64,
)

ALL = list(DTYPES.values())
INTEGERS = [t for t in ALL if t.is_integer]
FLOATS = [t for t in ALL if t.is_float]
NARROW = {f8e4m3: "float8_e4m3fn", f8e5m2: "float8_e5m2", f16: "float16", bf16: "bfloat16"}


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_a_dtype_is_one_object_under_its_name(dtype: DType):
    assert DTYPES[str(dtype)] is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype


@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"),
    [
        (i8, -128, 127),
        (u8, 0, 255),
        (i64, -(2**63), 2**63 - 1),
        (u64, 0, 2**64 - 1),
        (index, -(2**63), 2**63 - 1),
    ],
)
def test_an_integer_dtype_has_the_range_of_its_bits(dtype: DType, lowest: int, highest: int):
    assert (dtype.lowest, dtype.highest) == (lowest, highest)


def test_an_index_is_stored_as_i64_and_tf32_as_f32():
    others = {t: t for t in ALL}
    assert {t: t.storage for t in ALL} == others | {index: i64, tf32: f32}


def test_promotion_is_symmetric_and_keeps_a_dtype():
    for a in ALL:
        assert promote(a, a) is a
        for b in ALL:
            assert promote(a, b) is promote(b, a)


def test_two_integers_promote_to_one_that_holds_both_or_to_none():
    for a in INTEGERS:
        for b in INTEGERS:
            both = promote(a, b)
            if both is None:
                assert u64 in (a, b)
                assert a.is_signed != b.is_signed
            else:
                assert both.lowest <= min(a.lowest, b.lowest)
                assert both.highest >= max(a.highest, b.highest)


@pytest.mark.parametrize(
    ("a", "b", "both"),
    [
        (bool_, u8, u8),
        (i64, f16, f16),
        (index, i64, i64),
        (index, i32, i64),
        (index, u32, i64),
        (index, bool_, index),
        (index, f16, f16),
        (u16, i16, i32),
        (u32, i8, i64),
        (u64, i8, None),
        (u64, index, None),
        (u64, f8e5m2, f8e5m2),
        (f16, bf16, f32),
        (f8e4m3, f8e5m2, f32),
        (f8e4m3, f16, f16),
        (f8e5m2, bf16, bf16),
        (tf32, f32, f32),
        (tf32, f16, f32),
        (tf32, f64, f64),
    ],
)
def test_promotion_beyond_torch(a: DType, b: DType, both: DType | None):
    assert promote(a, b) is both


def test_promotion_is_that_of_torch():
    torch = pytest.importorskip("torch")
    theirs = {
        bool_: torch.bool, u8: torch.uint8, i8: torch.int8, i16: torch.int16, i32: torch.int32,
        i64: torch.int64, f16: torch.float16, bf16: torch.bfloat16, f32: torch.float32,
        f64: torch.float64,
    }  # fmt: skip
    ours = {theirs[t]: t for t in theirs}
    for a in theirs:
        for b in theirs:
            assert promote(a, b) is ours[torch.promote_types(theirs[a], theirs[b])], (a, b)


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        (f8e4m3, f32), (f16, f32), (bf16, f32), (tf32, f32), (f32, f32), (f64, f64), (bool_, i32),
        (i8, i32), (u8, u32), (u16, u32), (i32, i32), (u32, u32), (i64, i64), (index, index),
    ],
)  # fmt: skip
def test_sums_accumulate_wide_enough(dtype: DType, wide: DType):
    assert accumulator(dtype) is wide


def finite_values(dtype: DType) -> list[float]:
    """Every finite value that is not negative, in order of its bits, from another library."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    kind = np.dtype(getattr(ml_dtypes, NARROW[dtype], None) or NARROW[dtype])
    codes = np.arange(2 ** (dtype.bits - 1), dtype=f"u{dtype.bits // 8}")
    with np.errstate(invalid="ignore"):
        values = codes.view(kind).astype(np.float64)
    return values[np.isfinite(values)].tolist()


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_each_value_of_a_narrow_float_is_kept(dtype: DType):
    values = finite_values(dtype)
    assert [round_float(v, dtype) for v in values] == values
    assert [round_float(-v, dtype) for v in values] == [-v for v in values]
    assert values[-1] == dtype.largest


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_between_two_values_the_nearest_is_taken_and_of_two_the_even(dtype: DType):
    for code, (below, above) in enumerate(pairwise(finite_values(dtype))):
        middle = (below + above) / 2
        even = below if code % 2 == 0 else above
        assert round_float(middle, dtype) == even
        assert round_float(-middle, dtype) == -even
        assert round_float(math.nextafter(middle, 0), dtype) == below
        assert round_float(math.nextafter(middle, math.inf), dtype) == above


@pytest.mark.parametrize("dtype", [t for t in FLOATS if t is not f64], ids=str)
def test_beyond_the_largest_f8_saturates_and_others_are_infinite(dtype: DType):
    step = math.ldexp(1.0, math.frexp(dtype.largest)[1] - 1 - dtype.mantissa)
    just_over, half_over = dtype.largest + step / 4, dtype.largest + step / 2
    beyond = dtype.largest if dtype.bits == 8 else math.inf
    for sign in (1, -1):
        assert round_float(sign * just_over, dtype) == sign * dtype.largest
        # Half a step over is a tie, whose even side is beyond; in e4m3 both sides saturate.
        assert round_float(sign * half_over, dtype) == sign * beyond
        assert round_float(sign * 1e308, dtype) == sign * beyond
        assert round_float(sign * math.inf, dtype) == sign * beyond


@given(st.floats())
def test_f32_and_f16_round_as_numpy(value: float):
    with np.errstate(over="ignore", under="ignore"):
        expected = {f32: float(np.float32(value)), f16: float(np.float16(value))}
    for dtype, wanted in expected.items():
        assert same_bits(round_float(value, dtype), wanted)


@given(st.floats(width=32, allow_nan=False))
def test_narrow_floats_round_as_torch(value: float):
    torch = pytest.importorskip("torch")
    theirs = {
        bf16: torch.bfloat16,
        f16: torch.float16,
        f8e4m3: torch.float8_e4m3fn,
        f8e5m2: torch.float8_e5m2,
    }
    for dtype, kind in theirs.items():
        # Only to f8 do we saturate.
        if dtype.bits == 16 or abs(value) <= dtype.largest:
            cast = torch.tensor(value, dtype=torch.float32).to(kind).to(torch.float64).item()
            assert same_bits(round_float(value, dtype), cast)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_tf32_is_the_nearest_float_of_ten_bits_and_the_range_of_f32(value: float):
    rounded = round_float(value, tf32)
    if abs(value) > tf32.largest:
        assert abs(rounded) in (tf32.largest, math.inf)
        return
    exponent = max(math.frexp(value)[1] - 1, -126)
    step = Fraction(2) ** (exponent - 10)
    quotient = Fraction(rounded) / step
    assert quotient.denominator == 1
    error = abs(Fraction(rounded) - Fraction(value))
    assert error < step / 2 or (error == step / 2 and quotient.numerator % 2 == 0)
    assert math.copysign(1, rounded) == math.copysign(1, value)


@given(st.floats(), st.sampled_from(FLOATS))
def test_rounding_twice_is_rounding_once(value: float, dtype: DType):
    once = round_float(value, dtype)
    assert same_bits(round_float(once, dtype), once)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_zeros_keep_their_sign_and_nan_stays(dtype: DType):
    for value in (0.0, -0.0):
        assert same_bits(round_float(value, dtype), value)
    assert same_bits(round_float(-5e-324, dtype), -5e-324 if dtype is f64 else -0.0)
    assert math.isnan(round_float(math.nan, dtype))


def same_bits(a: float, b: float) -> bool:
    return (math.isnan(a) and math.isnan(b)) or (
        a == b and math.copysign(1, a) == math.copysign(1, b)
    )
