"""The oracle accepts every correct result and refuses wrong ones."""

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import Func, Input, Param, Pipeline, RDom, Schedule, Size, Var, f16, f32, i32, i64
from tensorlang.backends.interpreter import Interpreted
from tensorlang.testing import assert_equivalent
from tensorlang.testing.oracle import signed_zeros_matter

M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def pointwise(build, dtype=f32):
    """out[i] = build(A[i])."""
    a, out = Input("A", dtype, [N]), Func("out")
    out[i] = build(a[i])
    return Pipeline("pointwise", inputs=[a], outputs={out: [N]})


def linear():
    a, b = Input("A", f16, [M, K]), Input("B", f16, [K, N])
    k, c, d = RDom("k", K), Func("C"), Func("D")
    c[i, j] = tl.sum(f32(a[i, k]) * f32(b[k, j]), over=k)
    d[i, j] = tl.maximum(c[i, j], 0)
    return Pipeline("linear", inputs=[a, b], outputs={d: [M, N]})


def softmax():
    x, k = Input("x", f32, [M, N]), RDom("k", N)
    m, p, s, out = Func("m"), Func("p"), Func("s"), Func("out")
    m[i] = tl.max(x[i, k], over=k)
    p[i, j] = tl.exp(x[i, j] - m[i])
    s[i] = tl.sum(p[i, k], over=k)
    out[i, j] = p[i, j] / s[i]
    return Pipeline("softmax", inputs=[x], outputs={out: [M, N]})


@pytest.fixture
def spoil(monkeypatch):
    """spoil(change): every result of the interpreter is changed before it comes back."""

    def install(change):
        run = Interpreted.run

        def wrong(self, sizes, params, inputs, outputs):
            run(self, sizes, params, inputs, outputs)
            for out in outputs:
                change(out)

        monkeypatch.setattr(Interpreted, "run", wrong)

    return install


def check(pipeline, *inputs, **named):
    return assert_equivalent(pipeline, None, "interpreter", inputs or None, **named)


def refused(pipeline, *inputs, **named):
    with pytest.raises(AssertionError) as caught:
        check(pipeline, *inputs, **named)
    return str(caught.value)


# --- what is accepted ----------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["reference", "interpreter"])
@pytest.mark.parametrize("make", [linear, softmax])
def test_a_correct_result_is_accepted(make, target):
    report = assert_equivalent(make(), target=target)
    assert report.elements > 50
    assert report.loose == 0


def test_the_report_says_how_much_was_exact():
    report = check(pointwise(lambda a: a * 2 + 1))
    assert report.exact == report.elements == 13
    assert str(report) == "13 elements: 13 bit for bit, 0 within their bound, 0.00% either way"
    assert check(softmax()).exact < 13 * 7


def test_sums_of_whole_numbers_are_exact():
    pipeline = linear()
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, s).astype(np.float16) for s in ((5, 40), (40, 6)))
    report = check(pipeline, a, b)
    assert report.exact == report.elements == 30


def test_a_reduction_in_another_order_is_accepted(spoil):
    terms = np.random.default_rng(0).standard_normal((3, 1000)).astype(np.float32)
    a, k, out = Input("A", f32, [M, N]), RDom("k", N), Func("out")
    out[i] = tl.sum(a[i, k], over=k)
    pipeline = Pipeline("total", inputs=[a], outputs={out: [M]})

    def backwards(result):
        result[...] = 0
        for column in terms.T[::-1]:
            result += column

    spoil(backwards)
    check(pipeline, terms)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_small_and_empty_outputs_are_compared(shape):
    a, out = Input("A", f32, [M, N]), Func("out")
    out[i, j] = a[i, j] + 1
    pipeline = Pipeline("add", inputs=[a], outputs={out: [M, N]})
    assert check(pipeline, np.ones(shape, np.float32)).elements == np.prod(shape)


def test_several_outputs_and_params_and_sizes_are_passed():
    a, s, p, q = Input("A", f32, [N]), Param("s", f32), Func("p"), Func("q")
    p[i], q[i, j] = a[i] * s, i * 10 + j
    pipeline = Pipeline("two", inputs=[a], outputs={p: [N], q: [N, M]})
    report = check(pipeline, np.ones(3, np.float32), params={"s": 2.5}, sizes={"M": 2})
    assert report.elements == 9


def test_torch_tensors_are_compared():
    torch = pytest.importorskip("torch")
    a, b = torch.randn(4, 8).to(torch.float16), torch.randn(8, 3).to(torch.float16)
    assert check(linear(), a, b).elements == 12


@pytest.mark.parametrize("dtype", [tl.bf16, tl.f8e4m3, tl.f8e5m2, tl.bool, tl.u8], ids=str)
def test_every_dtype_is_compared(dtype):
    pytest.importorskip("ml_dtypes")
    assert check(pointwise(lambda a: tl.select(a > 0, a, a), dtype)).elements == 13


def test_nan_and_infinities_are_compared():
    values = np.float32([np.nan, np.inf, -np.inf, 0, -0.0, 3e38, 1e-45])
    for build in (lambda a: a * 2, lambda a: 1 / a, lambda a: a - a, tl.exp, tl.log, tl.sqrt):
        check(pointwise(build), values)


# --- what may go either way ----------------------------------------------------------------------


def test_a_straddling_cast_is_accepted_and_counted(spoil):
    # tanh is known within 8 ulp, and at atanh(0.5) that is enough for either integer.
    pipeline = pointwise(lambda a: i32(tl.tanh(a) * 2))
    values = np.append(np.linspace(1, 2, 199), np.arctanh(0.5)).astype(np.float32)
    assert check(pipeline, values).loose == 1

    def other(result):
        result[-1] = 1 - result[-1]

    spoil(other)
    assert check(pipeline, values).loose == 1


def test_an_outcome_beyond_both_ways_is_refused(spoil):
    def beyond(result):
        result[-1] = 2

    spoil(beyond)
    values = np.append(np.linspace(1, 2, 199), np.arctanh(0.5)).astype(np.float32)
    assert "[199]" in refused(pointwise(lambda a: i32(tl.tanh(a) * 2)), values)


def test_a_straddling_argmax_may_be_either_index(spoil):
    x, k, out = Input("x", f32, [M, N]), RDom("k", N), Func("out")
    out[i] = tl.argmax(tl.exp(x[i, k]), over=k)
    pipeline = Pipeline("best", inputs=[x], outputs={out: [M]})
    values = np.tile(np.float32([0, 3, 1, 2]), (150, 1))
    assert check(pipeline, values).loose == 0
    values[7, 3] = np.nextafter(np.float32(3), np.float32(0))
    assert check(pipeline, values).loose == 1

    def third(result):
        result[7] = 3

    spoil(third)
    assert check(pipeline, values).loose == 1
    values[7, 3] = 2
    assert "[7]" in refused(pipeline, values)


def test_too_many_ways_are_refused():
    pipeline = pointwise(lambda a: tl.floor(tl.tanh(a) * 2))
    values = np.full(200, np.arctanh(0.5), np.float32)
    assert "decides too little: 200 of 200" in refused(pipeline, values)


def test_a_comparison_that_does_not_matter_is_not_counted():
    pipeline = pointwise(lambda a: tl.select(tl.tanh(a) * 2 < 1, a, a))
    assert check(pipeline, np.full(200, np.arctanh(0.5), np.float32)).loose == 0


# --- what is refused -----------------------------------------------------------------------------


def test_one_wrong_bit_of_a_strict_expression_is_refused(spoil):
    def nudge(result):
        result[3] = np.nextafter(result[3], np.float32(np.inf))

    spoil(nudge)
    message = refused(pointwise(lambda a: a * 3 + 0.1))
    assert "wrong at 1 of 13 elements" in message
    assert "[3]" in message


def test_a_function_beyond_its_ulp_is_refused(spoil):
    def nudge(result):
        result *= np.float32(1 + 2.0**-20)

    spoil(nudge)
    assert "wrong at 13 of 13" in refused(pointwise(tl.exp))


def test_a_sum_beyond_its_bound_is_refused(spoil):
    def nudge(result):
        result[0, 0] += np.float32(1e-3)

    spoil(nudge)
    assert "wrong at 1 of" in refused(linear())


def test_a_wrong_integer_is_refused(spoil):
    def nudge(result):
        result[-1] += 1

    spoil(nudge)
    assert "[12]" in refused(pointwise(lambda a: a // 3, i64))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_a_nan_or_infinity_in_the_wrong_place_is_refused(spoil, wrong):
    def put(result):
        result[0] = wrong

    spoil(put)
    assert "[0]" in refused(pointwise(lambda a: a + 1))


def test_a_missing_nan_is_refused(spoil):
    def put(result):
        result[0] = 1

    spoil(put)
    assert "[0]" in refused(pointwise(tl.sqrt), np.float32([-1, 4]))


def test_an_element_that_is_never_written_is_refused(monkeypatch):
    monkeypatch.setattr(Interpreted, "run", lambda *_: None)
    for dtype in (f32, f16, tl.bf16, tl.f8e4m3, tl.f8e5m2, i32, tl.u8):
        assert "wrong at" in refused(pointwise(lambda a: a * 1, dtype))


def test_the_sign_of_a_zero_is_compared_where_it_is_defined(spoil):
    def negate(result):
        result[...] = -result

    zero = np.zeros(3, np.float32)
    check(pointwise(lambda a: a * -1), zero)
    spoil(negate)
    assert "wrong at 3 of 3" in refused(pointwise(lambda a: a * -1), zero)
    check(pointwise(lambda a: tl.maximum(a * -1, 0)), zero)


def test_a_minimum_or_a_reduction_leaves_the_sign_of_a_zero_open():
    pure, softer = pointwise(lambda a: a * 2), pointwise(lambda a: tl.minimum(a, 0) * 2)
    assert signed_zeros_matter(pure.algorithm, "out")
    assert not signed_zeros_matter(softer.algorithm, "out")
    assert not signed_zeros_matter(linear().algorithm, "D")


def test_the_message_shows_values_bounds_and_the_schedule(spoil, golden):
    def nudge(result):
        result[2] += 1

    spoil(nudge)
    pipeline = pointwise(lambda a: a * 2)
    schedule = Schedule(pipeline)
    schedule["out"].split(i, "io", "ii", 4).unroll("ii")
    with pytest.raises(AssertionError) as caught:
        assert_equivalent(pipeline, schedule, "interpreter", [np.arange(5, dtype=np.float32)])
    golden(str(caught.value))


# --- updates -------------------------------------------------------------------------------------


def test_scans_and_histograms_are_enclosed():
    a, f = Input("A", f32, [N]), Func("f")
    k = RDom("k", (1, N - 1))
    f[i] = a[i] * 0.5
    f[k] = f[k - 1] * 0.5 + tl.exp(a[k])
    report = check(Pipeline("scan", inputs=[a], outputs={f: [N]}))
    assert report.exact <= 1

    b, h, r = Input("B", i32, [N]), Func("h"), RDom("r", N)
    h[i] = 0
    h[tl.clamp(b[r], 0, 4)] += 1
    report = check(Pipeline("histogram", inputs=[b], outputs={h: [5]}))
    assert report.exact == 5


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "argmin", "argmax"])
@pytest.mark.parametrize("dtype", [f32, f16, i32, tl.u8], ids=str)
def test_every_reduction_is_enclosed(op, dtype):
    a, k, out = Input("A", dtype, [M, N]), RDom("k", N), Func("out")
    out[i] = getattr(tl, op)(a[i, k], over=k)
    check(Pipeline("reduction", inputs=[a], outputs={out: [M]}))


def test_a_domain_with_a_condition_is_enclosed():
    a, out, k = Input("A", f32, [M, N]), Func("out"), RDom("k", N)
    k = k.where(k <= i)
    out[i] = tl.sum(tl.exp(a[i, k]), over=k)
    check(Pipeline("triangle", inputs=[a], outputs={out: [M]}), np.ones((3, 9), np.float32))
