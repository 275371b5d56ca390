"""Traps that compilers of this kind are known to fall into, each with a known value, everywhere.

Each trap runs on every target: most are the fault of one lowering pass, some of one backend.
"""

import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ShapeError,
    Size,
    Var,
    all,
    argmax,
    argmin,
    bf16,
    f16,
    f32,
    i8,
    i32,
    i64,
    max,
    maximum,
    min,
    minimum,
    prod,
    select,
    sum,
    u8,
)

M, N, K = Size("M"), Size("N"), Size("K")
i, j, k = Var("i"), Var("j"), RDom("k", K)

Array = np.ndarray[Any, Any]
Run = Callable[..., Array]


@pytest.fixture(params=["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"])
def run(request: pytest.FixtureRequest) -> Run:
    """run(pipeline, schedule, *inputs, sizes=, **params): the output on one target, as an array."""

    def call(pipeline: Pipeline, schedule: Schedule | None, *inputs: Array, **rest: Any) -> Array:
        kernel = pipeline.compile(schedule or Schedule(pipeline), target=request.param)
        return np.asarray(kernel(*inputs, **rest))

    return call


def copy_of(a: Input, name: str = "out") -> Pipeline:
    """out[i, j] = a[i, j]"""
    out = Func(name)
    vars = (i, j)[: len(a.shape)]
    out[vars] = a[vars]
    return Pipeline("copy", inputs=[a], outputs={out: list(a.shape)})


# Splits that do not divide


@pytest.mark.parametrize("tail", ["auto", "guard", "predicate"])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("lanes", [False, True])
def test_nested_splits_that_do_not_divide_count_each_point_once(run, tail, symbolic, lanes):
    # 100 = 2*48 + 4 and 48 = 32 + 16: a mask of the inner split alone lets 128 points through.
    r, count = RDom("r", K if symbolic else 100), Func("count")
    count[i] = sum(i32(1), over=r)
    pipeline = Pipeline("count", inputs=[], outputs={count: [2]})
    s = Schedule(pipeline)
    stage = s[count].update(0)
    stage.split(r, "ro", "ri", 48, tail=tail).split("ri", "rio", "rii", 32, tail=tail)
    if lanes:
        stage.vectorize("rii")
    out = run(pipeline, s, sizes={"K": 100} if symbolic else {})
    assert out.tolist() == [100, 100]


@pytest.mark.parametrize("n", [1024, 1000, 31, 1, 0])
@pytest.mark.parametrize("tail", ["auto", "guard", "predicate", "shift_inwards"])
def test_producer_at_the_outer_loop_of_a_split_covers_what_is_read(run, n, tail):
    a, f, g = Input("a", i32, [N + 1]), Func("f"), Func("g")
    f[i] = a[i] * 2
    g[i] = f[i] + f[i + 1]
    pipeline = Pipeline("g", inputs=[a], outputs={g: [N]})
    s = Schedule(pipeline)
    s[g].split(i, "io", "ii", 128, tail=tail).vectorize("ii")
    s[f].compute_at(g, "io").split(i, "fo", "fi", 32).vectorize("fi")
    values = np.arange(n + 1, dtype=np.int32) ** 2
    assert np.array_equal(run(pipeline, s, values), 2 * values[:-1] + 2 * values[1:])


@pytest.mark.parametrize("n", [1024, 1000, 31, 1, 0])
def test_producer_split_by_what_does_not_divide_its_tile(run, n):
    a, f, g = Input("a", i32, [N]), Func("f"), Func("g")
    f[i] = a[i] + 1
    g[i] = f[i] * 3
    pipeline = Pipeline("g", inputs=[a], outputs={g: [N]})
    s = Schedule(pipeline)
    s[g].split(i, "io", "ii", 100)
    s[f].compute_at(g, "io").split(i, "fo", "fi", 32).vectorize("fi")
    values = np.arange(n, dtype=np.int32)
    assert np.array_equal(run(pipeline, s, values), 3 * (values + 1))


# Padding must not join a reduction

REDUCTIONS: dict[str, tuple[Callable[..., Any], list[int], int]] = {
    # Padding with zeros would be the largest, the smallest, the product, or false.
    "max": (max, [-7, -3, -9, -4, -5, -6, -8], -3),
    "min": (min, [7, 3, 9, 4, 5, 6, 8], 3),
    "prod": (prod, [1, -2, 3, 1, 1, 2, 1], -12),
    "all": (all, [1, 2, 3, 4, 5, 6, 7], 1),
    "argmax": (argmax, [-7, -3, -9, -3, -5, -6, -8], 1),
    "argmin": (argmin, [7, 3, 9, 4, 3, 6, 8], 1),
}


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("form", ["split", "tree", "whole", "nested"])
def test_padding_does_not_join_a_reduction(run, op, form):
    reduce, values, expected = REDUCTIONS[op]
    a, out = Input("a", i32, [K]), Func("out")
    out[i] = reduce(a[k] + i32(i), over=k)
    pipeline = Pipeline("reduce", inputs=[a], outputs={out: [1]})
    s = Schedule(pipeline)
    reducing = next(f for f in pipeline.algorithm.funcs if not f.is_pure)
    stage = s[reducing.name].update(0)
    if form in ("split", "tree", "nested"):
        stage.split(k, "ko", "ki", 4)
    if form == "nested":
        stage.split("ki", "kio", "kii", 3).vectorize("kii")
    if form == "tree":
        stage.vectorize("ki")
    if form == "whole":
        stage.vectorize(k)
    assert run(pipeline, s, np.array(values, np.int32)).tolist() == [expected]


@pytest.mark.parametrize("op", ["max", "min"])
def test_padding_does_not_join_a_reduction_of_infinities(run, op):
    worst = -np.inf if op == "max" else np.inf
    a, out = Input("a", f32, [K]), Func("out")
    out[i] = {"max": max, "min": min}[op](a[k] + f32(i), over=k)
    pipeline = Pipeline("reduce", inputs=[a], outputs={out: [1]})
    s = Schedule(pipeline)
    s[out].update(0).split(k, "ko", "ki", 4).vectorize("ki")
    assert run(pipeline, s, np.full(5, worst, np.float32)).tolist() == [worst]


def test_domain_emptied_by_where_gives_the_identity(run):
    a, out = Input("a", i32, [8]), Func("out")
    r = RDom("r", 8)
    out[i] = min(a[r], over=r.where(a[r] > 100), initial=77)
    pipeline = Pipeline("nothing", inputs=[a], outputs={out: [3]})
    s = Schedule(pipeline)
    s[out].update(0).split(r, "ro", "ri", 3).vectorize("ri")
    assert run(pipeline, s, np.arange(8, dtype=np.int32)).tolist() == [77, 77, 77]


# Fusing and splitting with a modulus


@pytest.mark.parametrize(("m", "n", "size"), [(5, 7, 3), (3, 13, 5), (1, 1, 1), (4, 9, 16)])
@pytest.mark.parametrize("vectorized", [False, True])
def test_modulus_of_a_fused_and_split_loop(run, m, n, size, vectorized):
    b, out = Input("B", i32, [K]), Func("out")
    out[i, j] = b[j % K]
    pipeline = Pipeline("modulus", inputs=[b], outputs={out: [M, N]})
    s = Schedule(pipeline)
    stage = s[out].fuse(i, j, "t").split("t", "to", "ti", 4)
    if vectorized:
        stage.vectorize("ti")
    table = np.arange(10, 10 + size, dtype=np.int32)
    out = run(pipeline, s, table, sizes={"M": m, "N": n})
    assert np.array_equal(out, np.broadcast_to(table[np.arange(n) % size], (m, n)))


# Integers

NEGATIVES = [-9, -8, -7, -1, 0, 1, 7, 8, 9]


@pytest.mark.parametrize("dtype", [i8, i32, i64])
def test_division_floors_and_the_remainder_has_the_sign_of_the_divisor(run, dtype):
    a, b, out = Input("a", dtype, [M, N]), Input("b", dtype, [M, N]), Func("out")
    out[i, j] = (a[i, j] // b[i, j]) * 100 + a[i, j] % b[i, j]
    pipeline = Pipeline("floors", inputs=[a, b], outputs={out: [M, N]})
    s = Schedule(pipeline)
    s[out].split(j, "jo", "ji", 4).vectorize("ji")
    x, y = np.meshgrid(NEGATIVES, NEGATIVES, indexing="ij")
    expected = [
        [(p // q) * 100 + p % q if q else 0 for q in NEGATIVES] for p in NEGATIVES
    ]  # fmt: skip
    as_numpy = np.dtype(dtype.name.replace("i", "int"))
    expected = np.array(expected).astype(as_numpy)
    assert np.array_equal(run(pipeline, s, x.astype(as_numpy), y.astype(as_numpy)), expected)


@pytest.mark.parametrize("dtype", [i8, i32, i64])
def test_a_number_divided_by_itself_is_one_in_every_lane(run, dtype):
    # a // a is (a != 0), which a C compiler may make -1 of when it finds it in lanes.
    a, out = Input("a", dtype, [M, N]), Func("out")
    out[i, j] = a[i, j] // a[i, j]
    pipeline = Pipeline("ones", inputs=[a], outputs={out: [M, N]})
    s = Schedule(pipeline)
    s[out].reorder(j, i).vectorize(j)
    values = (np.arange(3 * 37).reshape(3, 37) % 7 - 3).astype(f"int{dtype.bits}")
    assert np.array_equal(run(pipeline, s, values), values != 0)


@pytest.mark.parametrize("divisor", [-4, -3, 3, 4])
def test_division_of_coordinates_floors_below_zero(run, divisor):
    out = Func("out")
    out[i] = i32((i - 9) // divisor) * 100 + i32((i - 9) % divisor)
    pipeline = Pipeline("floors", inputs=[], outputs={out: [N]})
    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", 4).vectorize("ii")
    expected = [(n // divisor) * 100 + n % divisor for n in range(-9, 10)]
    assert run(pipeline, s, sizes={"N": 19}).tolist() == expected


def test_the_lowest_integer_by_minus_one_wraps(run):
    a, out = Input("a", i32, [N]), Func("out")
    out[i] = a[i] // -1 + a[i] % -1
    pipeline = Pipeline("wraps", inputs=[a], outputs={out: [N]})
    lowest = np.iinfo(np.int32).min
    assert run(pipeline, None, np.array([lowest, 5], np.int32)).tolist() == [lowest, -5]


# Floats


@pytest.mark.parametrize("dtype", [f16, f32])
def test_nan_goes_through_maximum_and_minimum_from_either_side(run, dtype):
    a, b, out = Input("a", dtype, [N]), Input("b", dtype, [N]), Func("out")
    out[i] = maximum(a[i], b[i]) + minimum(a[i], b[i])
    pipeline = Pipeline("nan", inputs=[a, b], outputs={out: [N]})
    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", 4).vectorize("ii")
    as_numpy = np.dtype(f"float{dtype.bits}")
    x = np.array([np.nan, 1, np.nan, 1, -np.inf], as_numpy)
    y = np.array([1, np.nan, np.nan, 2, 3], as_numpy)
    expected = np.array([np.nan, np.nan, np.nan, 3, -np.inf], as_numpy)
    np.testing.assert_array_equal(run(pipeline, s, x, y), expected)


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("at", [0, 3, 6])
def test_nan_goes_through_a_reduction(run, op, lanes, at):
    a, out = Input("a", f32, [M, K]), Func("out")
    out[i] = {"max": max, "min": min}[op](a[i, k], over=k)
    pipeline = Pipeline("nan", inputs=[a], outputs={out: [M]})
    s = Schedule(pipeline)
    if lanes:
        s[out].update(0).split(k, "ko", "ki", 4).vectorize("ki")
    values = np.arange(14, dtype=np.float32).reshape(2, 7)
    values[0, at] = np.nan
    expected = np.array([np.nan, 13 if op == "max" else 7], np.float32)
    np.testing.assert_array_equal(run(pipeline, s, values), expected)


@pytest.mark.parametrize(("dtype", "as_numpy"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16)])
def test_narrow_floats_round_each_operation_to_nearest_even(run, dtype, as_numpy):
    a, b, out = Input("a", dtype, [N]), Input("b", dtype, [N]), Func("out")
    out[i] = (a[i] + b[i]) - a[i]
    pipeline = Pipeline("rounds", inputs=[a, b], outputs={out: [N]})
    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", 4).vectorize("ii")
    # Between `big` and the next number lies 2: halves go to the even neighbour, 0 or +4 away.
    big = {f16: 2048, bf16: 256}[dtype]
    x = np.array([big, big + 2, big, big, big + 2], as_numpy)
    y = np.array([1, 1, 3, 0.5, 1.5], as_numpy)
    out = run(pipeline, s, x, y)
    assert out.dtype == as_numpy
    assert out.astype(np.float64).tolist() == [0, 2, 4, 0, 2]


@pytest.mark.parametrize(("dtype", "as_numpy"), [(f16, np.float16), (bf16, ml_dtypes.bfloat16)])
def test_casts_to_narrow_floats_round_to_nearest_even(run, dtype, as_numpy):
    a, out = Input("a", f32, [N]), Func("out")
    out[i] = dtype(a[i])
    pipeline = Pipeline("casts", inputs=[a], outputs={out: [N]})
    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", 4).vectorize("ii")
    step = {f16: 2.0**-10, bf16: 2.0**-7}[dtype]
    tiny = {f16: 2.0**-24, bf16: 2.0**-133}[dtype]  # the smallest subnormal
    values = [1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 2.0**-20, -(1 + step / 2), 3e38]
    values += [tiny, tiny / 2, tiny * 1.5, np.inf, np.nan, -0.0, 65520.0, 65519.0]
    values = np.array(values, np.float32)
    with np.errstate(over="ignore"):
        expected = values.astype(as_numpy)
    out = run(pipeline, s, values)
    assert out.dtype == as_numpy
    # NumPy compares NaNs only of the floats that it knows itself.
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))
    assert np.signbit(out[10])


def test_sum_of_narrow_floats_accumulates_in_f32(run):
    a, out = Input("a", f16, [K]), Func("out")
    out[i] = sum(a[k], over=k) + f32(i)
    pipeline = Pipeline("narrow", inputs=[a], outputs={out: [1]})
    # In f16 the sum would stop at 2048, where adding 1 rounds back.
    assert run(pipeline, None, np.ones(2051, np.float16)).tolist() == [2051]


# Strides

VIEWS: dict[str, Callable[[Array], Array]] = {
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every_second": lambda a: np.repeat(np.repeat(a, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "part_of_a_row": lambda a: np.pad(a, ((1, 1), (2, 3)))[1:-1, 2:-3],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("vectorized", [False, True])
def test_strides_of_an_input_are_followed(run, view, vectorized):
    pipeline = copy_of(Input("a", i32, [M, N]))
    s = Schedule(pipeline)
    if vectorized:
        s["out"].split(j, "jo", "ji", 4).vectorize("ji")
    a = np.arange(35, dtype=np.int32).reshape(5, 7)
    viewed = VIEWS[view](a)
    assert viewed.strides != a.strides
    assert np.array_equal(run(pipeline, s, viewed), a)


@pytest.mark.parametrize("shape", [(5, 1), (1, 7)])
def test_stride_zero_is_followed(run, shape):
    a = np.arange(max_of(shape), dtype=np.int32).reshape(shape)
    spread = np.broadcast_to(a, (5, 7))
    assert 0 in spread.strides
    pipeline = copy_of(Input("a", i32, [M, N]))
    s = Schedule(pipeline)
    s["out"].split(j, "jo", "ji", 4).vectorize("ji")
    assert np.array_equal(run(pipeline, s, spread), spread)


def max_of(shape: tuple[int, ...]) -> int:
    return shape[0] * shape[1]


@pytest.mark.parametrize("view", ["transposed", "every_second", "part_of_a_row"])
def test_strides_of_an_output_are_followed_and_what_is_between_stays(run, view):
    pipeline = copy_of(Input("a", i32, [M, N]))
    s = Schedule(pipeline)
    s["out"].split(j, "jo", "ji", 4).vectorize("ji")
    a = np.arange(35, dtype=np.int32).reshape(5, 7)
    whole = np.full((20, 20), -1, np.int32)
    target = {
        "transposed": whole[:7, :5].T,
        "every_second": whole[:10:2, :14:2],
        "part_of_a_row": whole[3:8, 4:11],
    }[view]
    run(pipeline, s, a, out=target)
    assert np.array_equal(target, a)
    assert np.count_nonzero(whole == -1) == 400 - 35


# Sizes


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0)])
def test_arrays_of_no_element(run, shape):
    a, f, out = Input("a", i32, [M, N]), Func("f"), Func("out")
    f[i, j] = a[i, j] + 1
    out[i, j] = f[i, j] * 2
    pipeline = Pipeline("empty", inputs=[a], outputs={out: [M, N]})
    s = Schedule(pipeline)
    s[out].split(j, "jo", "ji", 4).vectorize("ji").fuse(i, "jo", "t")
    s[f].compute_at(out, "t")
    assert run(pipeline, s, np.zeros(shape, np.int32)).shape == shape


@pytest.mark.parametrize(("m", "n", "depth"), [(3, 2, 0), (0, 2, 4), (3, 0, 4), (0, 0, 0)])
def test_matmul_of_no_element(run, m, n, depth):
    a, b, out = Input("a", f32, [M, K]), Input("b", f32, [K, N]), Func("out")
    out[i, j] = sum(a[i, k] * b[k, j], over=k)
    pipeline = Pipeline("matmul", inputs=[a, b], outputs={out: [M, N]})
    s = Schedule(pipeline)
    s[out].update(0).split(k, "ko", "ki", 4).reorder("ko", i, j, "ki")
    out = run(pipeline, s, np.ones((m, depth), np.float32), np.ones((depth, n), np.float32))
    assert np.array_equal(out, np.zeros((m, n)))


def test_max_of_no_element_is_refused_where_the_output_has_one(run):
    a, out = Input("a", i32, [M, K]), Func("out")
    out[i] = max(a[i, k], over=k)
    pipeline = Pipeline("empty", inputs=[a], outputs={out: [M]})
    with pytest.raises(ShapeError, match="empty-reduction"):
        run(pipeline, None, np.zeros((3, 0), np.int32))
    assert run(pipeline, None, np.zeros((0, 0), np.int32)).shape == (0,)


# More than 2^31 elements in reach, and few in memory

FAR = 2**31 + 5


def test_index_past_two_to_the_31_of_a_repeated_element(run):
    a, out = Input("a", i32, [M, N]), Func("out")
    out[i] = a[M - 1 - i, N - 1] + select(M * N > 2**33, 1, 0)
    pipeline = Pipeline("far", inputs=[a], outputs={out: [3]})
    values = np.array([[10], [20], [30]], np.int32)
    far = as_strided(values, (3, FAR), (4, 0))
    assert run(pipeline, None, far).tolist() == [30, 20, 10]


@pytest.mark.parametrize("vectorized", [False, True])
def test_offset_past_two_to_the_31(run, vectorized):
    # Zeros that are never touched take no memory: three rows of 2^30 + 7 bytes, two bytes used.
    row = 2**30 + 7
    memory = np.zeros(2 * row + 2, np.uint8)
    far = as_strided(memory, (3, 2), (row, 1))
    far[...] = [[1, 2], [3, 4], [5, 6]]
    pipeline = copy_of(Input("a", u8, [M, N]))
    s = Schedule(pipeline)
    if vectorized:
        s["out"].split(j, "jo", "ji", 4).vectorize("ji").vectorize(i)
    assert run(pipeline, s, far).tolist() == [[1, 2], [3, 4], [5, 6]]


def test_offset_past_two_to_the_31_of_an_output(run):
    row = 2**30 + 7
    memory = np.zeros(2 * row + 2, np.uint8)
    far = as_strided(memory, (3, 2), (row, 1))
    pipeline = copy_of(Input("a", u8, [M, N]))
    run(pipeline, None, np.array([[1, 2], [3, 4], [5, 6]], np.uint8), out=far)
    assert far.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert memory[row : row + 2].tolist() == [3, 4]


def test_coordinates_past_two_to_the_31(run):
    a, out = Input("a", i64, [N]), Func("out")
    out[i] = i64(i + N - 4) * 3 + a[i + N - 4]
    pipeline = Pipeline("coordinates", inputs=[a], outputs={out: [4]})
    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", 3).vectorize("ii")
    far = as_strided(np.array([7], np.int64), (FAR,), (0,))
    expected = [(FAR - 4 + n) * 3 + 7 for n in range(4)]
    assert run(pipeline, s, far).tolist() == expected


# Long and deep definitions


def long_sum(terms: int) -> Pipeline:
    """out[i] = a[i] + a[i]*1 + a[i]*2 + ..."""
    a, out = Input("a", i32, [N]), Func("out")
    total = a[i]
    for n in range(1, terms):
        total = total + a[i] * n
    out[i] = total
    return Pipeline("long", inputs=[a], outputs={out: [N]})


def doublings(times: int) -> Pipeline:
    """out[i] = a[i]*2*2*..., each doubling a sum of one shared expression with itself."""
    a, out = Input("a", i32, [N]), Func("out")
    value = a[i]
    for _ in range(times):
        value = value + value
    out[i] = value
    return Pipeline("doublings", inputs=[a], outputs={out: [N]})


@pytest.mark.usefixtures("as_shipped")
@pytest.mark.parametrize("make", [lambda: long_sum(2000), lambda: doublings(20)])
def test_long_and_shared_expressions_lower_in_well_under_a_second(make):
    make().lower()  # what is imported or remembered once
    start = time.thread_time()
    make().lower()
    assert time.thread_time() - start < 0.8


def test_sum_of_two_thousand_terms(run):
    values = np.array([1, -2, 3], np.int32)
    expected = values * (1 + 1999 * 2000 // 2)
    assert np.array_equal(run(long_sum(2000), None, values), expected)


def test_twenty_doublings(run):
    values = np.array([1, -2, 3], np.int32)
    assert np.array_equal(run(doublings(20), None, values), values << 20)
