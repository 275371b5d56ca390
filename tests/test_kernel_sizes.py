"""Kernel: sizes are solved, Params and Asserts are checked, before anything runs."""

import numpy as np
import pytest

from tensorlang import kernel as kernel_module
from tensorlang.errors import BoundsError, ShapeError
from tensorlang.ir.expr import Const, Param, as_expr
from tensorlang.ir.stmt import Assert
from tensorlang.ir.types import bf16, bool_, f32, f64, i32, index, u8
from tests.recording import K, M, N, arange, buffer, code_of, kernel_of, product, program

# --- sizes ---------------------------------------------------------------------------------------


def sizes_of(shapes, arrays, *, sizes=(M, N, K), given=None):
    inputs = [buffer(f"A{k}", f32, *shape) for k, shape in enumerate(shapes)]
    kernel, backend = kernel_of(program(inputs, [buffer("out", f32)], sizes=sizes))
    kernel(*(np.zeros(shape, np.float32) for shape in arrays), sizes=given)
    return backend.last[0]


def test_linear_extents_are_solved():
    assert sizes_of([(2 * M, N + 1, 3 * K - 2)], [(8, 5, 4)]) == {"M": 4, "N": 4, "K": 2}
    assert sizes_of([(10 - M,)], [(3,)], sizes=(M,)) == {"M": 7}
    assert sizes_of([(2 * (M + 1) - M,)], [(5,)], sizes=(M,)) == {"M": 3}


def test_sizes_are_solved_in_any_order():
    assert sizes_of([(M + N + K,), (N + K,), (K,)], [(9,), (5,), (3,)]) == {"M": 4, "N": 2, "K": 3}


def test_an_extent_that_cannot_be_solved_is_checked_once_its_sizes_are_known():
    shapes = [((M + 1) // 2,), (M,)]
    assert sizes_of(shapes, [(3,), (5,)], sizes=(M,)) == {"M": 5}
    with pytest.raises(ShapeError) as caught:
        sizes_of(shapes, [(4,), (5,)], sizes=(M,))
    assert caught.value.code == "size-conflict"


def test_a_product_is_solved_once_one_factor_is_known():
    assert sizes_of([(M * N,), (N,)], [(12,), (4,)], sizes=(M, N)) == {"M": 3, "N": 4}


def test_a_size_times_zero_is_not_known():
    with pytest.raises(ShapeError) as caught:
        sizes_of([(M * N,), (N,)], [(0,), (0,)], sizes=(M, N))
    assert caught.value.code == "size-not-known"


def test_given_sizes_are_taken_and_checked():
    assert sizes_of([(M * N,)], [(12,)], sizes=(M, N), given={"N": 4}) == {"M": 3, "N": 4}
    with pytest.raises(ShapeError) as caught:
        sizes_of([(M,)], [(12,)], sizes=(M,), given={M: 4})
    assert caught.value.code == "size-conflict"
    assert "sizes=" in caught.value.why


@pytest.mark.parametrize("extent", [7, 1])
def test_a_size_is_whole_and_not_negative(extent):
    with pytest.raises(ShapeError) as caught:
        sizes_of([(2 * M + 4,)], [(extent,)], sizes=(M,))
    assert caught.value.code == "size-not-whole"
    assert caught.value.fix == "an extent of 4, 6, 8, ..."


@pytest.mark.parametrize("value", [-1, 2.0, True, "3", None, [1]])
def test_a_given_size_is_a_whole_number(value):
    kernel, _ = kernel_of(program([], [buffer("out", f32, M)], sizes=(M,)))
    assert code_of(kernel, sizes={"M": value}) == "size-value"


def test_an_unknown_size_is_refused():
    kernel, _ = product()
    assert code_of(kernel, arange(2, 3), arange(3, 4), sizes={"m": 2}) == "unknown-size"


def test_numpy_integers_are_sizes():
    kernel, backend = kernel_of(program([], [buffer("out", f32, M)], sizes=(M,)))
    kernel(sizes={"M": np.int64(3)})
    assert backend.last[0] == {"M": 3}
    assert type(backend.last[0]["M"]) is int


def test_an_output_of_negative_extent_is_refused():
    kernel, _ = kernel_of(program([buffer("A", f32, M)], [buffer("out", f32, M - 2)], sizes=(M,)))
    assert kernel(arange(2)).shape == (0,)
    assert code_of(kernel, arange(1)) == "negative-extent"


def test_sizes_pass_2_to_the_31():
    big = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (1 << 40,), (0,))
    kernel, backend = kernel_of(program([buffer("A", u8, M)], [buffer("out", f32)], sizes=(M,)))
    kernel(big)
    assert backend.last[0] == {"M": 1 << 40}


# --- params --------------------------------------------------------------------------------------


def with_param(dtype, *, shape=(), asserts=()):
    alpha = Param("alpha", dtype)
    return kernel_of(
        program([], [buffer("out", f32, *shape)], params=(alpha,), asserts=asserts, sizes=())
    )


@pytest.mark.parametrize(
    ("dtype", "given", "passed"),
    [
        (f32, 0.1, float(np.float32(0.1))),
        (f32, 3, 3.0),
        (f32, float("inf"), float("inf")),
        (bf16, np.float32(1.01), 1.0078125),
        (f64, np.float64(0.1), 0.1),
        (i32, np.int8(-3), -3),
        (u8, 255, 255),
        (bool_, True, True),
        (bool_, np.bool_(False), False),
    ],
)
def test_params_are_rounded_to_their_dtype(dtype, given, passed):
    kernel, backend = with_param(dtype)
    kernel(alpha=given)
    value = backend.last[1]["alpha"]
    assert value == passed
    assert type(value) is type(passed)


@pytest.mark.parametrize(
    ("dtype", "given", "code"),
    [
        (i32, 2.0, "param-dtype"),
        (i32, True, "param-dtype"),
        (f32, True, "param-dtype"),
        (f32, "1", "param-dtype"),
        (f32, np.zeros(()), "param-dtype"),
        (bool_, 1, "param-dtype"),
        (u8, 256, "param-out-of-range"),
        (u8, -1, "param-out-of-range"),
        (f32, 1e39, "param-out-of-range"),
        (f64, 10**400, "param-out-of-range"),
    ],
)
def test_params_that_do_not_fit_are_refused(dtype, given, code):
    kernel, backend = with_param(dtype)
    assert code_of(kernel, alpha=given) == code
    assert backend.runs == []


def test_missing_and_unknown_params_are_refused():
    kernel, _ = with_param(f32)
    assert code_of(kernel) == "missing-param"
    assert code_of(kernel, alpha=1.0, beta=2.0) == "unknown-param"
    assert code_of(product()[0], arange(2, 3), B=arange(3, 4)) == "unknown-param"


def test_new_values_of_a_param_are_not_checked_anew(monkeypatch):
    kernel, backend = with_param(f32)
    kernel(alpha=1.0)
    monkeypatch.setattr(kernel_module, "make_plan", lambda *_: pytest.fail("checked again"))
    kernel(alpha=2.0)
    assert backend.last[1] == {"alpha": 2.0}


def test_a_param_may_be_an_extent():
    kernel, _ = with_param(i32, shape=(Param("alpha", i32).as_expr() + 1,))
    assert kernel(alpha=2).shape == (3,)
    assert kernel(alpha=4).shape == (5,)


# --- asserts -------------------------------------------------------------------------------------


def at_least(e, least, error="BoundsError"):
    return Assert(e >= least, error, "too-few", "{0} is under {1}", "why {0}", "fix", (e, least))


def test_asserts_are_evaluated_exactly_before_anything_runs():
    e = M * (1 << 62) * 4
    limit = Const(1 << 64, index)
    kernel, backend = kernel_of(
        program(
            [buffer("A", f32, M)],
            [buffer("out", f32)],
            sizes=(M,),
            asserts=(at_least(e, limit),),
        )
    )
    with pytest.raises(BoundsError) as caught:
        kernel(arange(0))
    assert caught.value.code == "too-few"
    assert caught.value.what == f"0 is under {1 << 64}"
    assert caught.value.why == "why 0"
    assert backend.runs == []
    kernel(arange(1))
    assert len(backend.runs) == 1


def test_asserts_over_params_are_evaluated_for_every_value():
    alpha = Param("alpha", f32)
    kernel, _ = with_param(f32, asserts=(at_least(alpha * 2, as_expr(3.0), "ShapeError"),))
    kernel(alpha=1.5)
    assert code_of(kernel, alpha=1.25) == "too-few"
