"""Every operation over enclosures contains the operation over their members."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.backends import numerics
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.types import DTYPES, bf16, bool_, f8e4m3, f8e5m2, f16, f32, f64, i8, i32, u8, u64
from tensorlang.testing import enclosed_operations as operations
from tensorlang.testing.enclosed_functions import function
from tensorlang.testing.enclosed_reductions import Along, Scattered, folding
from tensorlang.testing.enclosures import Enclosure, choose, enclosed, hull, point

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = (f16, bf16, f8e4m3, f8e5m2, f32, f64)
INTEGERS = (i8, u8, i32, u64)
# Every example is so many values, which is why few examples are enough.
COUNT = 64
FEW = settings(max_examples=15)


def scalars(rng, dtype):
    """Values of a dtype, with the odd ones among them."""
    if dtype.is_bool:
        return rng.integers(0, 2, COUNT).astype(bool)
    if dtype.is_integer:
        small = rng.integers(max(dtype.lowest, -20), 20, COUNT).astype(object)
        extreme = rng.choice(np.array([dtype.lowest, dtype.highest], object), COUNT)
        return np.where(rng.random(COUNT) < 0.2, extreme, small).astype(numerics.carrier(dtype))
    values = rng.standard_normal(COUNT) * 10.0 ** rng.integers(-3, 4, COUNT)
    odd = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, dtype.largest, -dtype.largest, 1e-40, 2.0]
    values = np.where(rng.random(COUNT) < 0.3, rng.choice(odd, COUNT), values)
    return numerics.cast(f64, dtype)(values)


def enclosures(rng, dtype):
    """An enclosure, and one member of each of its intervals."""
    a, b = scalars(rng, dtype), scalars(rng, dtype)
    near = rng.random(COUNT) < 0.5
    if dtype.is_float:
        step = numerics.cast(f64, dtype)(a.astype(np.float64) * (1 + 1e-2))
        b = np.where(near, step, b)
    low, high = np.minimum(a, b), np.maximum(a, b)
    same = rng.random(COUNT) < 0.3
    low = np.where(same, high, low)
    member = np.where(rng.random(COUNT) < 0.5, low, high)
    if dtype.is_float:
        with np.errstate(all="ignore"):
            between = low.astype(np.float64) * 0.5 + high.astype(np.float64) * 0.5
        between = numerics.cast(f64, dtype)(np.where(np.isnan(between), low, between))
        between = np.clip(between, low, high)
        member = np.where(rng.random(COUNT) < 0.5, between, member).astype(low.dtype)
        nan = rng.random(COUNT) < 0.05
        low, high, member = (
            np.where(nan, np.nan, x).astype(low.dtype) for x in (low, high, member)
        )
    loose = rng.random(COUNT) < 0.1 if rng.random() < 0.3 else None
    return enclosed(low, high, loose, dtype), member


def check(result, values):
    nan = np.isnan(result.low) if np.asarray(result.low).dtype.kind == "f" else np.False_
    loose = np.False_ if result.loose is None else result.loose
    with np.errstate(all="ignore"):
        inside = (result.low <= values) & (values <= result.high)
        inside |= nan & (np.isnan(values) if np.asarray(values).dtype.kind == "f" else False)
    inside |= nan & loose
    wrong = np.flatnonzero(~np.broadcast_to(inside, np.shape(values)))
    assert len(wrong) == 0, [
        (np.asarray(x)[wrong[:3]] if np.ndim(x) else x) for x in (result.low, result.high, values)
    ]


seeds = st.integers(0, 2**32 - 1)
BINARY = ("add", "sub", "mul", "div", "min", "max")
BITS = ("add", "sub", "mul", "floordiv", "mod", "min", "max", "and", "or", "xor", "shl", "shr")
PAIRS = [
    *((op, d) for d in FLOATS for op in BINARY),
    *((op, d) for d in INTEGERS for op in BITS),
    *((op, bool_) for op in ("and", "or", "xor")),
]


@pytest.mark.parametrize(("op", "dtype"), PAIRS, ids=str)
@FEW
@given(seed=seeds)
def test_binary_operations_contain_their_members(op, dtype, seed):
    rng = np.random.default_rng(seed)
    (a, x), (b, y) = enclosures(rng, dtype), enclosures(rng, dtype)
    with numerics.quiet():
        check(operations.binary(op, dtype)((a, b)), numerics.binary(op, dtype)(x, y))
        value = numerics.binary(op, dtype)(x, y)
        exact = operations.binary(op, dtype)((point(x), point(y)))
    assert exact.is_point
    np.testing.assert_array_equal(exact.low, value)


@pytest.mark.parametrize("op", ["lt", "le", "eq", "ne"])
@pytest.mark.parametrize("dtype", [f32, i8, bool_], ids=str)
@FEW
@given(seed=seeds)
def test_comparisons_contain_their_members(op, dtype, seed):
    rng = np.random.default_rng(seed)
    (a, x), (b, y) = enclosures(rng, dtype), enclosures(rng, dtype)
    result = operations.comparison(op)((a, b))
    check(result, numerics.comparison(op)(x, y))
    unsure = result.low != result.high
    assert not np.any(unsure) or np.all(result.loose[unsure])


CASTS = [
    (source, target)
    for source in (f32, f16, f64, i32, u8, bool_)
    for target in DTYPES.values()
    if target is not source
]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
@FEW
@given(seed=seeds)
def test_casts_contain_their_members(source, target, seed):
    a, x = enclosures(np.random.default_rng(seed), source)
    with numerics.quiet():
        check(operations.cast(source, target)((a,)), numerics.cast(source, target)(x))


@pytest.mark.parametrize("dtype", [f32, bf16, f64], ids=str)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n != "random_uniform"])
@FEW
@given(seed=seeds)
def test_functions_contain_their_members(name, dtype, seed):
    rng = np.random.default_rng(seed)
    drawn = [enclosures(rng, dtype) for _ in range(FUNCTIONS[name].arity)]
    with numerics.quiet():
        result = function(name, dtype)([a for a, _ in drawn])
        check(result, numerics.function(name, dtype)(*[x for _, x in drawn]))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "rsqrt", "sin", "sigmoid"])
def test_a_function_of_a_point_is_as_wide_as_its_ulp(name):
    x = np.linspace(0.5, 4, 100, dtype=np.float32)
    with numerics.quiet():
        result = function(name, f32)((point(x),))
        exact = numerics.function(name, f64)(x.astype(np.float64))
    width = (result.high.astype(np.float64) - result.low) / np.spacing(np.abs(exact.astype("f4")))
    ulp = FUNCTIONS[name].ulp
    assert width.max() <= 2 * ulp + 1
    assert width.min() >= ulp


@FEW
@given(seed=seeds)
def test_a_choice_contains_what_either_side_may_be(seed):
    rng = np.random.default_rng(seed)
    (c, z), (a, x), (b, y) = (enclosures(rng, d) for d in (bool_, f32, f32))
    check(choose(c, a, b, f32), np.where(z, x, y))
    check(hull(a, b, f32), x)
    check(hull(a, b, f32), y)


def test_a_choice_that_is_certain_ignores_the_other_side():
    condition = point(np.array([True, False]))
    a, b = point(np.float32([1, np.nan])), Enclosure(np.float32([np.nan, 2]), np.float32([0, 3]))
    chosen = choose(condition, a, b, f32)
    assert chosen.low.tolist() == [1, 2]
    assert chosen.high.tolist() == [1, 3]


def test_outcomes_that_meet_are_not_loose():
    condition = Enclosure(np.False_, np.True_, np.True_)
    assert choose(condition, point(np.float32(1)), point(np.float32(1)), f32).loose in (None, False)
    assert choose(condition, point(np.float32(1)), point(np.float32(2)), f32).loose


# --- reductions ----------------------------------------------------------------------------------


def reduced(op, dtype, terms, start, **options):
    """The terms of the last axis, folded."""
    shape = np.shape(terms.low)
    state = folding(op, dtype, point(np.broadcast_to(start, shape[:-1]).copy()), **options)
    places = Along((slice(None),) * (len(shape) - 1), (len(shape) - 1,), shape)
    state.add(places, terms, np.ones(shape, bool))
    return state.result()


REDUCTIONS = [
    *((op, d) for d in (f32, f16, f64) for op in ("add", "mul", "min", "max")),
    *((op, d) for d in (i8, i32) for op in ("add", "mul", "min", "max", "and", "or", "xor")),
    *((op, bool_) for op in ("and", "or", "xor")),
]


@pytest.mark.parametrize(("op", "dtype"), REDUCTIONS, ids=str)
@FEW
@given(seed=seeds)
def test_a_reduction_contains_every_order_of_its_terms(op, dtype, seed):
    rng = np.random.default_rng(seed)
    drawn = [enclosures(rng, dtype) for _ in range(9)]
    start = scalars(rng, dtype)
    if dtype.is_float and rng.random() < 0.7:
        drawn = [(point(x), x) for _, x in drawn]
    terms = Enclosure(
        *(np.stack([getattr(a, end) for a, _ in drawn], -1) for end in ("low", "high"))
    )
    if any(a.loose is not None for a, _ in drawn):
        nothing = np.zeros(COUNT, bool)
        loose = np.stack([nothing if a.loose is None else a.loose for a, _ in drawn], -1)
        terms = terms._replace(loose=loose)
    operation = numerics.binary(op, dtype)
    with numerics.quiet():
        result = reduced(op, dtype, terms, start)
        for _ in range(4):
            values = [start, *(x for _, x in drawn)]
            while len(values) > 1:
                k = rng.integers(len(values) - 1)
                order = rng.permutation(len(values))
                values = [values[n] for n in order] if rng.random() < 0.5 else values
                values[k : k + 2] = [operation(values[k], values[k + 1])]
            check(result, values[0])


def test_a_sum_of_small_whole_numbers_is_exact():
    terms = point(np.arange(-50, 50, dtype=np.float32)[None])
    result = reduced("add", f32, terms, np.float32(3))
    assert result.low.tolist() == result.high.tolist() == [-47.0]


def test_a_sum_is_as_wide_as_its_number_of_terms_allows():
    rng = np.random.default_rng(0)
    terms = rng.standard_normal((5, 1000)).astype(np.float32)
    result = reduced("add", f32, point(terms), np.float32(0))
    allowed = 1000 * 2.0**-24 * np.abs(terms).sum(-1)
    width = result.high.astype(np.float64) - result.low
    assert np.all(width >= 2 * allowed)
    assert np.all(width <= 5 * allowed)


def test_a_sum_of_one_term_is_exact():
    result = reduced("add", f32, point(np.float32([[0.1]])), np.float32(0))
    assert result.low == result.high == np.float32(0.1)


def test_a_sum_that_may_overflow_on_the_way_is_free():
    terms = np.float32([[3e38, 3e38, -3e38, -3e38]])
    with numerics.quiet():
        assert reduced("add", f32, point(terms), np.float32(0)).is_free.all()


def test_infinities_stay_where_they_are():
    terms = np.float32([[np.inf, 1, 2], [np.inf, -np.inf, 1], [np.nan, 1, 1]])
    with numerics.quiet():
        result = reduced("add", f32, point(terms), np.float32(0))
    assert result.low[0] == result.high[0] == np.inf
    assert result.is_certain_nan.tolist() == [False, True, True]


def test_a_scatter_folds_into_the_element_that_each_index_names():
    state = folding("add", i32, point(np.zeros(3, np.int32)))
    places = Scattered((np.array([0, 2, 2, 2]),))
    state.add(places, point(np.int32([1, 10, 20, 30])), np.ones(4, bool))
    assert state.result().low.tolist() == [1, 0, 60]


def test_products_of_f8_may_be_added_with_fewer_bits():
    terms = point(np.float32([[1, 2, 3, 4]]))
    exact = reduced("add", f32, terms, np.float32(0))
    loose = reduced("add", f32, terms, np.float32(0), imprecise=True)
    assert exact.low == exact.high == 10
    assert loose.low < 10 < loose.high
