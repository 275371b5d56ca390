"""NumPy's meaning of every operation, against torch, ml_dtypes, math and fractions."""

import math
import operator
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.backends import numerics, rounding
from tensorlang.backends.philox import philox
from tensorlang.ir.conversion import convert, wrap
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.types import (
    DTYPES,
    DType,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    index,
    round_float,
    tf32,
    u8,
    u64,
)

PEERS = {bf16: ml_dtypes.bfloat16, f8e4m3: ml_dtypes.float8_e4m3fn, f8e5m2: ml_dtypes.float8_e5m2}
FLOATS = [f8e4m3, f8e5m2, f16, bf16, tf32, f32, f64]
INTEGERS = [t for t in DTYPES.values() if t.is_integer and t is not index]
floats = st.floats(width=64, allow_subnormal=True)
singles = st.floats(width=32, allow_subnormal=True)


@pytest.fixture(autouse=True)
def _quiet():
    with numerics.quiet():
        yield


def same(a: object, b: object) -> bool:
    """Equal with NaN equal to NaN and -0.0 different from 0.0."""
    a, b = np.asarray(a), np.asarray(b)
    both = np.isnan(a) & np.isnan(b)
    return bool(np.all(both | ((a == b) & (np.signbit(a) == np.signbit(b)))))


def every_bf16() -> np.ndarray:
    return numerics.unpack(bf16)(np.arange(1 << 16).astype(np.uint16))


@pytest.mark.parametrize("dtype", PEERS, ids=str)
def test_every_code_of_a_narrow_float_means_what_ml_dtypes_says(dtype: DType):
    codes = np.arange(1 << dtype.bits).astype(numerics.storage(dtype))
    values = numerics.unpack(dtype)(codes)
    assert values.dtype == np.float32
    assert same(values, codes.view(PEERS[dtype]).astype(np.float32))


@pytest.mark.parametrize("dtype", PEERS, ids=str)
def test_packing_inverts_unpacking_for_every_code_but_nan(dtype: DType):
    codes = np.arange(1 << dtype.bits).astype(numerics.storage(dtype))
    values = numerics.unpack(dtype)(codes)
    back = numerics.pack(dtype)(values)
    assert back.dtype == codes.dtype
    assert np.array_equal(back[~np.isnan(values)], codes[~np.isnan(values)])
    assert np.isnan(numerics.unpack(dtype)(back)[np.isnan(values)]).all()


@pytest.mark.parametrize("dtype", [f16, bf16, f8e4m3, f8e5m2, tf32], ids=str)
@pytest.mark.parametrize("source", [f32, f64], ids=str)
def test_rounding_agrees_with_the_scalar_definition_at_and_beside_ties(dtype: DType, source: DType):
    low = rounding.lowest_exponent(dtype) - dtype.mantissa - 2
    high = math.frexp(dtype.largest)[1] + 1
    made = numerics.carrier(source).type
    grid = [m * 2.0**e for e in range(low, high) for m in (1, 1.25, 1.5, 1.75, 1 + 3 / 16, 1.9375)]
    step = 2.0 ** -(dtype.mantissa + 1)
    grid += [2.0**e * (1 + k * step) for e in range(low, high) for k in (1, 2, 3)]
    values = np.array(grid).astype(made)
    values = np.concatenate(
        [values, np.nextafter(values, made(0)), np.nextafter(values, made(9e99))]
    )
    values = np.concatenate([values, -values, np.array([0.0, -0.0, np.inf, -np.inf, np.nan], made)])
    rounded = numerics.cast(source, dtype)(values)
    assert rounded.dtype == numerics.carrier(dtype)
    assert same(rounded.astype(np.float64), [round_float(float(v), dtype) for v in values])


def test_f32_to_bf16_agrees_with_ml_dtypes_on_random_bits_and_on_nans():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 100_000).astype(np.uint32)
    bits[:4] = [0x7F800001, 0xFF800001, 0x7FFFFFFF, 0x7F7FFFFF]
    values = bits.view(np.float32)
    expected = values.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert same(numerics.cast(f32, bf16)(values), expected)


def test_f64_to_bf16_rounds_once():
    # In f32 this would round to a tie, and the tie to even, downwards.
    value = np.float64(1 + 2.0**-8 + 2.0**-40)
    assert numerics.cast(f64, bf16)(value) == 1 + 2.0**-7


@pytest.mark.parametrize("dtype", [f8e4m3, f8e5m2], ids=str)
def test_casts_to_f8_saturate_and_keep_nan(dtype: DType):
    beyond = np.array([1e30, -1e30, np.inf, -np.inf, np.nan], np.float32)
    largest = dtype.largest
    assert same(numerics.cast(f32, dtype)(beyond), [largest, -largest, largest, -largest, np.nan])


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
def test_every_pair_of_f8e4m3_gives_the_f32_result_rounded(op: str):
    a, b = np.meshgrid(*2 * [rounding.f8_values(f8e4m3)])
    wide = numerics.binary(op, f32)(a, b)
    narrow = numerics.binary(op, f8e4m3)(a, b)
    assert same(narrow, [[round_float(float(x), f8e4m3) for x in row] for row in wide])


@pytest.mark.parametrize("op", ["add", "mul", "div"])
def test_bf16_arithmetic_agrees_with_torch(op: str):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    a, b = (rng.permutation(every_bf16()) for _ in range(2))
    x, y = (torch.from_numpy(v).to(torch.bfloat16) for v in (a, b))
    expected = getattr(operator, {"div": "truediv"}.get(op, op))(x, y).float().numpy()
    assert same(numerics.binary(op, bf16)(a, b), expected)


def exactly(op: str, a: int, b: int, dtype: DType) -> int:
    if op in ("floordiv", "mod") and b == 0:
        return 0
    if op in ("shl", "shr") and not 0 <= b < dtype.bits:
        return 0 if op == "shl" or a >= 0 else -1
    name = {"shl": "lshift", "shr": "rshift", "and": "and_", "or": "or_"}.get(op, op)
    exact = {"min": min, "max": max}.get(op) or getattr(operator, name)
    return wrap(exact(a, b), dtype)


INTEGER_OPS = [
    "add",
    "sub",
    "mul",
    "floordiv",
    "mod",
    "min",
    "max",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
]


@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("dtype", [i8, u8], ids=str)
def test_every_pair_of_8_bit_integers_wraps_and_floors(op: str, dtype: DType):
    made = numerics.carrier(dtype)
    values = range(dtype.lowest, dtype.highest + 1)
    a, b = np.meshgrid(np.array(values, made), np.array(values, made), indexing="ij")
    result = numerics.binary(op, dtype)(a, b)
    assert result.dtype == made
    expected = [[exactly(op, x, y, dtype) for y in values] for x in values]
    assert np.array_equal(result, np.array(expected, made))


@pytest.mark.parametrize("op", INTEGER_OPS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_scalars_behave_as_arrays_at_the_edges(op: str, dtype: DType):
    made = numerics.carrier(dtype).type
    edges = {dtype.lowest, dtype.lowest + 1, 0, 1, 2, 7, dtype.bits - 1, dtype.bits, dtype.highest}
    edges |= {-1, -7} if dtype.is_signed else set()
    operation = numerics.binary(op, dtype)
    for x in sorted(edges):
        for y in sorted(edges):
            result = operation(made(x), made(y))
            assert (type(result), int(result)) == (made, exactly(op, x, y, dtype)), (x, y)
            assert operation(np.array([x], made), np.array([y], made))[0] == result


@given(st.integers(), st.integers())
def test_exact_index_arithmetic_agrees_with_i64_where_that_does_not_overflow(a: int, b: int):
    for op, exact in numerics.EXACT.items():
        if op == "shl" and b > 80:
            continue
        result = exact(a, b)
        if max(abs(a), abs(b), abs(result)) < 2**63:
            assert numerics.binary(op, i64)(np.int64(a), np.int64(b)) == result


@pytest.mark.parametrize("target", INTEGERS, ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_float_to_integer_truncates_and_saturates_and_nan_is_0(source: DType, target: DType):
    edge = [float(target.lowest), float(target.highest), 0.0]
    values = [v + d for v in edge for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    values += [1e30, -1e30, math.inf, -math.inf, math.nan, -0.0, 2.0**63, -(2.0**63), 2.0**64]
    held = [round_float(v, source) for v in values]
    carried = np.array(held).astype(numerics.carrier(source))
    convertor = numerics.cast(source, target)
    expected = [convert(v, target) for v in held]
    assert convertor(carried).tolist() == expected
    assert [convertor(v).item() for v in carried] == expected
    assert convertor(carried).dtype == numerics.carrier(target)


@pytest.mark.parametrize("source", INTEGERS, ids=str)
@pytest.mark.parametrize("target", DTYPES.values(), ids=str)
def test_integer_casts_wrap_or_round_once(source: DType, target: DType):
    values = [source.lowest, source.highest, 0, 1, source.highest // 3, source.lowest // 3 + 1, 17]
    # Const's conversion goes through f64, which holds these.
    values = [v for v in values if abs(v) < 2**53 or not target.is_float]
    result = numerics.cast(source, target)(np.array(values, numerics.carrier(source)))
    # In arrays an index is an i64.
    assert result.tolist() == [convert(v, i64 if target is index else target) for v in values]


def test_i64_to_f32_rounds_once():
    value = 2**60 + 2**36 + 1
    assert int(numerics.cast(i64, f32)(np.int64(value))) == 2**60 + 2**37


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_float_to_bool_is_whether_it_differs_from_zero(source: DType):
    values = np.array([0.0, -0.0, 0.5, np.nan], numerics.carrier(source))
    assert numerics.cast(source, bool_)(values).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_minimum_and_maximum_propagate_nan(dtype: DType):
    nan, one = numerics.constant(math.nan, dtype), numerics.constant(1.0, dtype)
    for op in ("min", "max"):
        operation = numerics.binary(op, dtype)
        assert np.isnan(operation(nan, one))
        assert np.isnan(operation(one, nan))
    assert not numerics.comparison("le")(nan, one)
    assert numerics.comparison("ne")(nan, nan)


def fma_by_fractions(a: float, b: float, c: float, made: type) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return c if math.isfinite(a) and math.isfinite(b) else a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    return nearest(exact, made)


def nearest(exact: Fraction, made: type) -> float:
    """The float of a binary format nearest to a fraction, ties to even, by integer arithmetic."""
    info = np.finfo(made)
    e = exact.numerator.bit_length() - exact.denominator.bit_length()
    e -= abs(exact) < Fraction(2) ** e
    quantum = Fraction(2) ** (max(e, int(info.minexp)) - info.nmant)
    rounded = round(exact / quantum) * quantum
    if abs(rounded) > Fraction(float(info.max)):
        return math.inf if exact > 0 else -math.inf
    return float(rounded) if rounded else math.copysign(0.0, exact)


@given(singles, singles, singles)
def test_f32_fma_rounds_once(a: float, b: float, c: float):
    result = numerics.function("fma", f32)(*(np.float32(v) for v in (a, b, c)))
    assert type(result) is np.float32
    assert same(result, fma_by_fractions(a, b, c, np.float32))


@given(floats, floats, floats)
def test_f64_fma_rounds_once(a: float, b: float, c: float):
    result = numerics.function("fma", f64)(*(np.float64(v) for v in (a, b, c)))
    assert same(result, fma_by_fractions(a, b, c, np.float64))


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_fma_rounds_once_where_the_sum_nearly_cancels_or_nearly_ties(dtype: DType):
    made = numerics.carrier(dtype).type
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((2, 4000)).astype(made)
    near = (-(a.astype(np.float64) * b)).astype(made)
    half = made(2.0 ** -(dtype.mantissa + 1))
    c = np.where(
        rng.random(4000) < 0.5, near, near * (1 + half) * made(2.0) ** rng.integers(-30, 30, 4000)
    )
    c = c.astype(made)
    # A tie of a product that is a power of two, broken by one bit far below.
    a[:2], b[:2], c[:2] = 1, 1 + 2 * half, [2 / half, -2 / half]
    a[2], b[2], c[2] = 1 + 2 * half, half / 2 * (1 - 2 * half), 1
    result = numerics.function("fma", dtype)(a, b, c)
    expected = [fma_by_fractions(*map(float, v), made) for v in zip(a, b, c, strict=True)]
    assert same(result, expected)


def test_f16_fma_is_that_of_f32_rounded():
    a, b, c = np.float16(1 + 2**-10), np.float16(1 + 2**-10), np.float16(2**-14)
    expected = np.float16(np.float32(float(a) * float(b) + float(c)))
    assert numerics.function("fma", f16)(a, b, c) == expected


TRUTH = {
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "log": math.log,
    "log2": math.log2,
    "sin": math.sin,
    "cos": math.cos,
    "tanh": math.tanh,
    "erf": math.erf,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
ALIASES = {f"approx.{name}": TRUTH[name] for name in ("tanh", "exp2", "erf")}


@pytest.mark.parametrize("name", [*TRUTH, *ALIASES, "approx.rcp", "pow"])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_functions_are_within_an_ulp_of_the_truth(name: str, dtype: DType):
    values = np.concatenate([np.linspace(0.03, 6, 200), np.linspace(-6, -0.03, 200)])
    values = values[values > 0] if name in ("log", "log2", "rsqrt", "pow") else values
    carried = numerics.cast(f64, dtype)(values)
    operation = numerics.function(name, dtype)
    if name == "pow":
        result, truth = operation(carried, carried), [x**x for x in carried.astype(float)]
    else:
        truth_of = (TRUTH | ALIASES | {"approx.rcp": lambda x: 1 / x})[name]
        result, truth = operation(carried), [truth_of(x) for x in carried.astype(float)]
    assert result.dtype == numerics.carrier(dtype)
    error = np.abs(result.astype(np.float64) - [round_float(float(t), dtype) for t in truth])
    quantum = 2.0 ** (np.frexp(np.abs(truth))[1] - 1.0 - dtype.mantissa)
    quantum = np.maximum(
        quantum, 2.0 ** max(-1000, rounding.lowest_exponent(dtype) - dtype.mantissa)
    )
    assert (error <= (2 if dtype is f64 else 0.01) * quantum + (dtype.bits < 32) * quantum).all()
    assert same(
        operation(carried[3:4], carried[3:4])[0] if name == "pow" else operation(carried[3]),
        result[3],
    )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_strict_functions_are_exact_and_round_goes_to_even(dtype: DType):
    values = numerics.cast(f64, dtype)(np.array([-2.5, -1.5, -0.5, -0.25, 0.5, 1.5, 2.5, 3.75]))
    wide = values.astype(np.float64)
    for name, truth in (
        ("floor", np.floor),
        ("ceil", np.ceil),
        ("round", np.rint),
        ("abs", np.abs),
    ):
        assert same(numerics.function(name, dtype)(values), truth(wide)), name
    assert same(numerics.function("sqrt", dtype)(np.abs(values)), [
        round_float(math.sqrt(v), dtype) for v in np.abs(wide)
    ])  # fmt: skip
    assert np.isnan(numerics.function("sqrt", dtype)(values[:1])).all()


def test_abs_of_the_lowest_integer_is_itself():
    assert numerics.function("abs", i8)(np.int8(-128)) == -128
    assert numerics.unary("neg", i8)(np.int8(-128)) == -128
    assert numerics.unary("neg", u8)(np.uint8(5)) == 251


def test_not_is_logical_on_bools_and_bitwise_on_integers():
    assert numerics.unary("not", bool_)(np.bool_(True)) == np.bool_(False)
    assert numerics.unary("not", u8)(np.uint8(0xF0)) == 0x0F


def test_philox_gives_the_known_answers_of_its_authors():
    zero, ones = np.uint64(0), np.uint64(0xFFFFFFFF)
    words = philox((zero,) * 4, (zero, zero), rounds=7)
    assert [int(w) for w in words] == [0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48]
    words = philox((zero,) * 4, (zero, zero), rounds=10)
    assert [int(w) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    words = philox((ones,) * 4, (ones, ones), rounds=10)
    assert [int(w) for w in words] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


def test_random_uniform_picks_the_word_of_the_index_and_takes_negative_ones():
    draw = numerics.function("random_uniform", i64)
    words = philox(tuple(np.uint64(c) for c in (1, 0, 0, 0)), (np.uint64(5), np.uint64(0)))
    expected = [(int(w) >> 8) * 2.0**-24 for w in words]
    assert draw(np.int64(5), np.arange(4, 8)).tolist() == expected
    assert draw(np.int64(5), np.int64(6)) == np.float32(expected[2])
    # -1 is word 3 of the counter whose low 64 bits are all ones.
    ones = np.uint64(0xFFFFFFFF)
    words = philox((ones, ones, np.uint64(0), np.uint64(0)), (ones, ones))
    assert draw(np.int64(-1), np.int64(-1)) == np.float32((int(words[3]) >> 8) * 2.0**-24)


def test_every_function_of_the_language_has_a_meaning():
    for function in FUNCTIONS.values():
        dtype = i64 if function.rule == "random" else f32
        args = [np.ones(3, numerics.carrier(dtype))] * function.arity
        assert numerics.function(function.name, dtype)(*args).shape == (3,)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_constants_are_carried_in_their_type(dtype: DType):
    assert numerics.constant(1, dtype) == 1
    assert numerics.constant(1, dtype).dtype == numerics.carrier(dtype)
    assert numerics.cast(i32, u64)(np.int32(-1)) == 2**64 - 1
