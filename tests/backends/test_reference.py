"""The reference gives the algorithm's values, and needs no more of an Input than they do."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang import Func, Input, Param, RDom, Size, Var
from tensorlang.backends import numerics
from tensorlang.backends.reference import compile_algorithm, regions
from tensorlang.closing import close_algorithm
from tensorlang.errors import BoundsError
from tensorlang.ir.types import DType

M, N, K = Size("M"), Size("N"), Size("K")
i, j, x, y = (Var(n) for n in "ijxy")
RNG = np.random.default_rng(0)


def run(outputs: Any, *arguments: Any, wide: bool = False, **named: Any) -> Any:
    """The outputs ({Func: shape}) for Inputs, each followed by its array, sizes and params."""
    inputs, arrays = list(arguments[::2]), list(arguments[1::2])
    algorithm = close_algorithm("p", inputs, outputs)
    sizes = {s.name: named[s.name] for s in algorithm.sizes}
    params = {p.name: named[p.name] for p in algorithm.params}
    results = []
    for f, shape in outputs.items():
        extents = [n if isinstance(n, int) else sizes[n.name] for n in shape]
        for dtype in f.dtypes:
            made = np.dtype(np.float64) if wide and dtype.is_float else numerics.storage(dtype)
            results.append(np.full(extents, 77, made))
    compile_algorithm(algorithm, wide=wide).run(sizes, params, arrays, results)
    return results[0] if len(results) == 1 else results


def normal(*shape: int, made: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(made)


# --- pure definitions ---------------------------------------------------------------------------


def test_a_two_stage_blur_reads_exactly_the_stencil_that_it_needs():
    a = Input("a", tl.u16, [M, N])
    blur_x, blur_y = Func("blur_x"), Func("blur_y")
    blur_x[y, x] = (a[y, x] + a[y, x + 1] + a[y, x + 2]) // 3
    blur_y[y, x] = (blur_x[y, x] + blur_x[y + 1, x] + blur_x[y + 2, x]) // 3
    image = RNG.integers(0, 1 << 12, (9, 11)).astype(np.uint16)
    out = run({blur_y: [7, 9]}, a, image, M=9, N=11)
    rows = (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) // 3
    assert np.array_equal(out, (rows[:-2] + rows[1:-1] + rows[2:]) // 3)


def test_an_input_that_is_too_small_is_named_with_what_is_needed():
    a = Input("a", tl.i32, [N])
    f = Func("f")
    f[x] = a[x + 2]
    with pytest.raises(BoundsError, match="Input 'a' is too small in dimension 0") as caught:
        run({f: [4]}, a, np.arange(5, dtype=np.int32), N=5)
    assert caught.value.code == "region-outside-array"
    assert "indices 2 to 5 are needed, and it has 0 to 4" in caught.value.what
    with pytest.raises(BoundsError, match="it has 0 to -1"):
        run({f: [4]}, a, np.zeros(0, np.int32), N=0)


def test_a_select_guards_what_its_other_side_would_read():
    a = Input("a", tl.i32, [N])
    f = Func("f")
    f[x] = tl.select((x >= 2) & (x < N + 2), a[x - 2], -1)
    assert run({f: [6]}, a, np.arange(3, dtype=np.int32), N=3).tolist() == [-1, -1, 0, 1, 2, -1]


def test_a_guard_in_a_consumer_guards_the_producer_too():
    a = Input("a", tl.i32, [N])
    f, g = Func("f"), Func("g")
    g[x] = a[x] * 10
    f[x] = tl.select((x > 0) & (x < 4), g[x - 1], 0) + tl.select(x > 4, g[x - 5], 0)
    assert run({f: [7]}, a, np.arange(3, dtype=np.int32), N=3).tolist() == [0, 0, 10, 20, 0, 0, 10]


def test_points_between_two_regions_that_are_needed_may_be_undefined():
    a, b = Input("a", tl.i32, [4]), Input("b", tl.i32, [4])
    f, g = Func("f"), Func("g")
    g[x] = tl.select(x < 4, a[x], b[x - 10])
    f[x] = g[tl.select(x < 4, x, x + 6)]
    out = run({f: [8]}, a, np.arange(4, dtype=np.int32), b, np.arange(4, 8, dtype=np.int32))
    assert out.tolist() == [*range(8)]


@pytest.mark.parametrize(
    ("condition", "mode"),
    [
        (tl.repeat_edge, "edge"),
        (tl.repeat_image, "wrap"),
        (tl.mirror_image, "symmetric"),
        (tl.mirror_interior, "reflect"),
        (lambda a: tl.constant_exterior(a, 5), "constant"),
    ],
)
def test_boundary_conditions_agree_with_numpy_pad(condition: Any, mode: str):
    a = Input("a", tl.i32, [M, N])
    padded, f = condition(a), Func("f")
    f[y, x] = padded[y - 3, x - 4]
    image = np.arange(30, dtype=np.int32).reshape(5, 6)
    more = {"constant_values": 5} if mode == "constant" else {}
    expected = np.pad(image, ((3, 2), (4, 3)), mode=mode, **more)
    assert np.array_equal(run({f: [10, 13]}, a, image, M=5, N=6), expected)


def test_any_strides_zero_sizes_and_a_huge_sparse_input():
    a = Input("a", tl.i32, [M, N])
    f = Func("f")
    f[i, j] = a[i, j] + 1
    base = np.arange(64, dtype=np.int32).reshape(8, 8)
    for view in (base[::2, ::-2], base[1::2, ::2].T, np.broadcast_to(base[0], (8, 8))):
        assert np.array_equal(run({f: [M, N]}, a, view, M=view.shape[0], N=view.shape[1]), view + 1)
    assert run({f: [M, N]}, a, base[:0], M=0, N=8).shape == (0, 8)
    g = Func("g")
    g[i] = a[M - 1, N - 1 - i]
    far = np.broadcast_to(np.int32(3), (2**33, 4))
    assert run({g: [2]}, a, far, M=2**33, N=4).tolist() == [3, 3]


def test_bf16_arrays_are_bits_and_arithmetic_rounds_each_time():
    a = Input("a", tl.bf16, [N])
    f = Func("f")
    f[x] = a[x] * a[x] + a[x]
    values = normal(100, made=ml_dtypes.bfloat16)
    out = run({f: [N]}, a, values.view(np.uint16), N=100)
    assert np.array_equal(out.view(ml_dtypes.bfloat16), values * values + values)


def test_params_and_tuples_and_random_numbers():
    scale = Param("scale", tl.f32)
    f = Func("f")
    f[x] = (scale * tl.f32(x), tl.random_uniform(3, x))
    products, numbers = run({f: [5]}, scale=np.float32(0.5))
    assert products.tolist() == [0, 0.5, 1, 1.5, 2]
    draw = numerics.function("random_uniform", tl.i64)
    assert np.array_equal(numbers, draw(np.int64(3), np.arange(5)))


def test_a_large_definition_is_computed_in_pieces(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(regions, "LANES", 7)
    monkeypatch.setattr(regions.pieces, "__defaults__", (7,))
    a = Input("a", tl.i32, [M, N])
    f, g = Func("f"), Func("g")
    k = RDom("k", N)
    g[i, j] = a[i, j] * 2
    f[i] = tl.sum(g[i, (k + i) % N] * tl.i32(k), over=k)
    image = RNG.integers(0, 100, (6, 5)).astype(np.int32)
    expected = [sum(2 * image[r, (c + r) % 5] * c for c in range(5)) for r in range(6)]
    assert run({f: [M]}, a, image, M=6, N=5).tolist() == expected


# --- what depends on data -----------------------------------------------------------------------


def test_a_gather_from_a_func_through_a_func():
    a, at = Input("a", tl.i32, [N]), Input("at", tl.i32, [M])
    f, g, h = Func("f"), Func("g"), Func("h")
    g[x] = a[x] + 1
    h[x] = at[x] - 1
    f[x] = g[tl.clamp(h[x], 0, N - 1)]
    values, indices = np.arange(5, dtype=np.int32) * 10, np.array([3, 0, 9, 5], np.int32)
    out = run({f: [M]}, a, values, at, indices, N=5, M=4)
    assert out.tolist() == [21, 1, 41, 41]


def test_a_guard_over_data_limits_what_is_needed():
    a, at = Input("a", tl.i32, [N]), Input("at", tl.i32, [M])
    f, g, h = Func("f"), Func("g"), Func("h")
    g[x] = a[x] + 1
    h[x] = at[x]
    f[x] = tl.select((h[x] >= 0) & (h[x] < N), g[h[x]], -1)
    indices = np.array([1, -(2**30), 2**30, 0], np.int32)
    out = run({f: [M]}, a, np.array([10, 20], np.int32), at, indices, N=2, M=4)
    assert out.tolist() == [21, -1, -1, 11]


def test_a_chain_of_gathers_settles():
    at = Input("at", tl.i32, [N])
    funcs = [Func(f"f{n}") for n in range(30)]
    funcs[0][x] = at[x]
    for producer, consumer in itertools.pairwise(funcs):
        consumer[x] = producer[tl.clamp(producer[x], 0, N - 1)]
    permutation = RNG.permutation(17).astype(np.int32)
    expected = permutation
    for _ in range(29):
        expected = expected[expected]
    assert np.array_equal(run({funcs[-1]: [N]}, at, permutation, N=17), expected)


def test_a_broken_promise_is_an_error_only_where_it_is_chosen():
    a, at = Input("a", tl.i32, [N]), Input("at", tl.i32, [M])
    f = Func("f")
    f[x] = tl.select(x > 0, a[tl.promise(at[x], 0, N - 1)], 0)
    values = np.array([10, 20], np.int32)
    assert run({f: [M]}, a, values, at, np.array([9, 1], np.int32), N=2, M=2).tolist() == [0, 20]
    with pytest.raises(BoundsError, match="a promised value is 9") as caught:
        run({f: [M]}, a, values, at, np.array([0, 9], np.int32), N=2, M=2)
    assert caught.value.code == "promise-broken"


# --- reductions and other updates ---------------------------------------------------------------


@pytest.mark.parametrize(("m", "n", "k"), [(5, 7, 9), (1, 1, 1), (3, 2, 0), (0, 4, 2)])
def test_matmul_with_an_epilogue(m: int, n: int, k: int):
    a, b = Input("A", tl.f16, [M, K]), Input("B", tl.f16, [K, N])
    c, d, r = Func("C"), Func("D"), RDom("k", K)
    c[i, j] = tl.sum(tl.f32(a[i, r]) * tl.f32(b[r, j]), over=r)
    d[i, j] = tl.f16(tl.maximum(c[i, j] - 1, 0))
    left, right = normal(m, k, made=np.float16), normal(k, n, made=np.float16)
    out = run({d: [M, N]}, a, left, b, right, M=m, N=n, K=k)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    expected = np.maximum(exact.astype(np.float32) - np.float32(1), 0).astype(np.float16)
    assert np.array_equal(out, expected)


def test_a_sum_in_f32_is_the_exact_sum_rounded_once():
    a, f, r = Input("a", tl.f32, [N]), Func("f"), RDom("r", N)
    f[()] = tl.sum(a[r], over=r)
    values = np.concatenate([[2.0**24], np.ones(1000), [-(2.0**24)]]).astype(np.float32)
    assert run({f: []}, a, values, N=1002) == 1000


def test_an_f16_accumulator_rounds_at_every_step():
    a, f, r = Input("a", tl.f16, [N]), Func("f"), RDom("r", N)
    f[()] = tl.sum(a[r], over=r, dtype=tl.f16)
    ones = np.ones(3000, np.float16)
    assert run({f: []}, a, ones, N=3000) == 2048
    assert run({f: []}, a, ones, N=3000, wide=True) == 3000


@pytest.mark.parametrize("dtype", [tl.i8, tl.u16, tl.i64, tl.f32, tl.f64, tl.bf16], ids=str)
@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "any", "all"])
def test_reductions_agree_with_the_definition_term_by_term(op: str, dtype: DType):
    a, f = Input("a", dtype, [M, N]), Func("f")
    r = RDom("r", (0, N), (1, 2))
    f[i] = getattr(tl, op)(a[i, r[0]] - a[i, r[1]], over=r.where(r[0] != r[1]))
    integers = RNG.integers(0, 3, (5, 4))
    stored = numerics.pack(dtype)(numerics.cast(tl.i64, dtype)(integers))
    carried = numerics.unpack(dtype)(stored)
    out = run({f: [M]}, a, stored, M=5, N=4)
    made = out.dtype.type if not dtype.is_float else np.float64
    with numerics.quiet():
        terms = [
            [carried[p, q] - carried[p, s] for q in range(4) for s in (1, 2) if q != s]
            for p in range(5)
        ]
        wide = np.array(terms).astype(made if op not in ("any", "all") else bool)
        expected = getattr(np, op)(wide, axis=1).astype(wide.dtype)
    assert np.array_equal(
        numerics.unpack(f.dtypes[0])(out).astype(np.float64), expected.astype(np.float64)
    )


def test_min_and_max_propagate_nan_and_an_empty_domain_gives_initial():
    a, f, g, r = Input("a", tl.f32, [N]), Func("f"), Func("g"), RDom("r", N)
    f[()] = tl.max(a[r], over=r, initial=3)
    g[()] = tl.min(a[r], over=r.where(r > 5))
    values = np.array([1, np.nan, 2], np.float32)
    largest, smallest = run({f: [], g: []}, a, values, N=3)
    assert np.isnan(largest)
    assert smallest == np.inf
    assert run({f: []}, a, values[:0], N=0) == 3


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_argmax_takes_the_first_of_ties_and_nan_before_all(op: str):
    a, f, r = Input("a", tl.f32, [M, N]), Func("f"), RDom("r", N)
    f[i] = getattr(tl, op)(a[i, r], over=r)
    values = RNG.integers(0, 4, (40, 9)).astype(np.float32)
    values[::3, 5] = np.nan
    values[::6, 2] = np.nan
    values[1] = np.inf
    values[2] = -np.inf
    out = run({f: [M]}, a, values, M=40, N=9)
    assert np.array_equal(out, getattr(np, op)(values, axis=1))


def test_a_histogram_counts_scattered_updates():
    a, hist = Input("a", tl.u8, [M, N]), Func("hist")
    r = RDom("r", M, N)
    hist[x] = 0
    hist[tl.i32(a[r[0], r[1]]) // 16] += 1
    image = RNG.integers(0, 256, (31, 17)).astype(np.uint8)
    expected = np.bincount(image.ravel() // 16, minlength=16)
    assert np.array_equal(run({hist: [16]}, a, image, M=31, N=17), expected)


def test_an_update_outside_of_what_is_asked_for_is_computed_and_ignored():
    a, hist, r = Input("a", tl.u8, [N]), Func("hist"), RDom("r", N)
    hist[x] = tl.i32(x)
    hist[tl.i32(a[r])] += 100
    out = run({hist: [2]}, a, np.array([0, 200, 0, 1], np.uint8), N=4)
    assert out.tolist() == [200, 101]


def test_a_scatter_with_where_takes_only_the_points_of_the_domain():
    a, f, r = Input("a", tl.i32, [N]), Func("f"), RDom("r", 6)
    f[x] = 0
    f[tl.clamp(a[r.where(r < N)], 0, 3)] += tl.i32(r.where(r < N)) + 1
    out = run({f: [4]}, a, np.array([3, 1, 3], np.int32), N=3)
    assert out.tolist() == [0, 2, 0, 4]


def test_the_last_store_to_an_element_wins():
    a, f, r = Input("a", tl.i32, [N]), Func("f"), RDom("r", N)
    f[x] = -1
    f[a[r]] = tl.i32(r)
    assert run({f: [3]}, a, np.array([0, 2, 0, 2], np.int32), N=4).tolist() == [2, -1, 3]


def test_scans_run_in_order_and_round_at_every_step():
    a, f, r = Input("a", tl.f32, [M, N]), Func("f"), RDom("r", (1, N - 1))
    f[i, x] = a[i, x]
    f[i, r] = f[i, r - 1] + a[i, r]
    values = normal(4, 50)
    expected = np.cumsum(values, axis=1, dtype=np.float32)
    assert np.array_equal(run({f: [M, N]}, a, values, M=4, N=50), expected)


def test_a_scan_is_computed_from_its_start_when_only_its_end_is_read():
    f, g, r = Func("f"), Func("g"), RDom("r", (2, N - 2))
    f[x] = tl.select(x < 2, tl.i64(x), 0)
    f[r] = f[r - 1] + f[r - 2]
    g[()] = f[N - 1]
    assert run({g: []}, N=50) == 7778742049


def test_a_triangular_domain_over_a_pure_var():
    a, f, r = Input("a", tl.f32, [N]), Func("f"), RDom("r", N)
    f[i] = tl.sum(a[r], over=r.where(r <= i))
    values = RNG.integers(0, 9, 12).astype(np.float32)
    assert np.array_equal(run({f: [N]}, a, values, N=12), np.cumsum(values))


def test_where_guards_what_the_term_reads():
    a, f, r = Input("a", tl.f32, [N]), Func("f"), RDom("r", 9)
    f[i] = tl.sum(a[i + r - 4], over=r.where((i + r >= 4) & (i + r < N + 4)))
    values = RNG.integers(0, 9, 12).astype(np.float32)
    padded = np.pad(values, 4)
    expected = [padded[k : k + 9].sum() for k in range(12)]
    assert np.array_equal(run({f: [N]}, a, values, N=12), expected)


def test_components_of_a_tuple_are_updated_at_once():
    f, r = Func("f"), RDom("r", N)
    f[()] = (tl.i64(0), tl.i64(1))
    f[()] = (f[()][1] + 0 * tl.i64(r), f[()][0] + f[()][1])
    first, second = run({f: []}, N=10)
    assert (first, second) == (55, 89)


def test_updates_run_one_after_the_other():
    f, r = Func("f"), RDom("r", 3)
    f[x, y] = tl.i32(x)
    f[x, 0] = f[x, 0] * 2
    f[1, y] += 100
    f[x, 1] += f[x, 0] * tl.i32(r)
    out = run({f: [3, 2]})
    assert out.tolist() == [[0, 0], [102, 101 + 306], [4, 2 + 12]]


def test_wide_computes_in_f64_and_still_rounds_casts():
    a, f = Input("a", tl.f32, [N]), Func("f")
    f[x] = (a[x] / 3, tl.f32(tl.f16(a[x] / 3)), tl.f64(a[x] / 3))
    third, narrow, wide = run({f: [N]}, a, np.ones(1, np.float32), N=1, wide=True)
    assert third[0] == wide[0] == 1 / 3
    assert narrow[0] == float(np.float16(1 / 3))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 6), st.integers(0, 6), st.integers(-3, 3), st.integers(1, 4))
def test_a_strided_stencil_over_a_reduction_agrees_with_loops(
    m: int, n: int, shift: int, step: int
):
    a, f, g, r = Input("a", tl.i32, [M, N]), Func("f"), Func("g"), RDom("r", N)
    padded = tl.constant_exterior(a, 0)
    g[i, j] = padded[i, j] - padded[i - shift, j]
    f[i] = tl.sum(g[step * i, r] * tl.i32(r + 1), over=r)
    image = RNG.integers(-9, 9, (m, n)).astype(np.int32)

    def at(p: int, q: int) -> int:
        return int(image[p, q]) if 0 <= p < m else 0

    expected = [
        sum((at(step * p, q) - at(step * p - shift, q)) * (q + 1) for q in range(n))
        for p in range(m)
    ]
    assert run({f: [M]}, a, image, M=m, N=n).tolist() == expected


# --- matrix products ----------------------------------------------------------------------------


def matmul(dtype: DType, left: Any, right: Any) -> Any:
    a, b = Input("A", dtype, [M, K]), Input("B", dtype, [K, N])
    c, r = Func("C"), RDom("k", K)
    c[i, j] = tl.sum(tl.f32(a[i, r]) * tl.f32(b[r, j]), over=r)
    m, k = left.shape
    return run({c: [M, N]}, a, left, b, right, M=m, N=right.shape[1], K=k)


def test_a_product_of_matrices_is_formed_as_one_and_equals_the_sum_of_its_terms():
    left, right = normal(40, 60, made=np.float16), normal(60, 30, made=np.float16)
    terms = left.astype(np.float64)[:, :, None] * right.astype(np.float64)[None]
    out = matmul(tl.f16, left, right)
    assert np.array_equal(out, terms.sum(1).astype(np.float32))


def test_factors_that_are_infinite_or_whose_product_underflows_are_multiplied_in_f32():
    left = np.array([[1e-30, 1, np.inf]], np.float32).astype(ml_dtypes.bfloat16)
    right = np.array([[1e-30], [1], [1]], np.float32).astype(ml_dtypes.bfloat16)
    assert matmul(tl.bf16, left.view(np.uint16), right.view(np.uint16)).item() == np.inf
    big = np.array([[2.0**100]], np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    assert matmul(tl.bf16, big, big).item() == np.inf
    tiny = np.array([[2.0**-80, 2.0**-80]], np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
    # Each product is below the smallest f32, and so is a zero before it is added.
    assert matmul(tl.bf16, tiny, tiny.T).item() == 0


def test_a_sum_of_f32_products_rounds_each_product():
    a, b = Input("a", tl.f32, [N]), Input("b", tl.f32, [N])
    f, r = Func("f"), RDom("r", N)
    f[()] = tl.sum(a[r] * b[r], over=r)
    x1 = np.array([1 + 2.0**-23, 1], np.float32)
    x2 = np.array([1 + 2.0**-23, -1 - 2.0**-22], np.float32)
    assert run({f: []}, a, x1, b, x2, N=2) == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_func_that_no_point_chooses_is_not_needed(rank: int) -> None:
    a, f, g = Input("a", tl.f32, [N]), Func("f"), Func("g")
    at = (i,) * rank
    f[at] = a[0] * 2
    g[i] = tl.select((i > 5) & (a[i] > 0), f[at], a[i])
    assert np.array_equal(run({g: [N]}, a, np.ones(2, np.float32), N=2), [1, 1])


def test_a_condition_below_one_that_never_holds_needs_nothing() -> None:
    a = Input("a", tl.f32, [N])
    never, inner, chosen, out = Func("never"), Func("inner"), Func("chosen"), Func("out")
    never[i] = a[i] * 0.0
    inner[i], chosen[i] = a[i] + 1.0, a[i] + 2.0
    out[i] = tl.select(never[i] > 0, tl.select(inner[i] > 0, chosen[i], 3.0), 4.0)
    found = run({out: [N]}, a, np.ones(5, np.float32), N=5)
    np.testing.assert_array_equal(found, np.full(5, 4.0, np.float32))
