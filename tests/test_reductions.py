"""sum prod min max any all argmin argmax, against NumPy, and the dtypes they accumulate in."""

from typing import Any

import numpy as np
import pytest

import tensorlang as tl
from tensorlang import DefinitionError, Func, Input, Pipeline, RDom, Size, Var

M, K = Size("M"), Size("K")
i = Var("i")
TABLE = np.array([[3, -1, 4, -1, 5], [-9, 2, 6, 5, 3], [0, 0, 0, 0, 0]], np.int32)


def reduced(op: str, of: tl.ir.types.DType = tl.i32, **options: Any) -> Pipeline:
    a, k, out = Input("A", of, [M, K]), RDom("k", K), Func("out")
    out[i] = getattr(tl, op)(a[i, k], over=k, **options)
    return Pipeline("reduced", inputs=[a], outputs={out: [M]})


def run(pipeline: Pipeline, *arrays: Any) -> Any:
    return pipeline.compile(target="interpreter")(*arrays)


@pytest.mark.parametrize("op", ["sum", "prod", "min", "max", "argmin", "argmax"])
def test_a_reduction_is_numpys(op: str) -> None:
    assert np.array_equal(run(reduced(op), TABLE), getattr(TABLE, op)(1))


@pytest.mark.parametrize("op", ["any", "all"])
def test_any_and_all_ask_whether_a_number_is_not_zero(op: str) -> None:
    out = run(reduced(op), TABLE)
    assert out.dtype == np.bool_
    assert np.array_equal(out, getattr(TABLE != 0, op)(1))


@pytest.mark.parametrize(
    ("op", "initial", "expected"),
    [("sum", 100, [110, 107, 100]), ("min", -5, [-5, -9, -5]), ("max", 4, [5, 6, 4])],
)
def test_initial_is_where_it_starts(op: str, initial: int, expected: list[int]) -> None:
    assert run(reduced(op, initial=initial), TABLE).tolist() == expected


@pytest.mark.parametrize(
    ("op", "value"),
    [("sum", 0), ("prod", 1), ("any", False), ("all", True)],
)
def test_nothing_gives_the_identity(op: str, value: object) -> None:
    assert run(reduced(op), np.zeros((2, 0), np.int32)).tolist() == [value, value]


@pytest.mark.parametrize(
    ("dtype", "accumulated"),
    [("f16", "f32"), ("bf16", "f32"), ("f32", "f32"), ("f64", "f64"), ("u8", "u32"), ("i8", "i32"),
     ("i16", "i32"), ("bool", "i32"), ("i32", "i32"), ("u64", "u64"), ("f8e4m3", "f32")],
)  # fmt: skip
def test_sums_accumulate_where_they_do_not_overflow(dtype: str, accumulated: str) -> None:
    (out,) = reduced("sum", getattr(tl, dtype)).algorithm.funcs
    assert str(out.dtypes[0]) == accumulated


def test_another_accumulator_may_be_asked_for() -> None:
    out = run(reduced("sum", tl.u8, dtype=tl.u8), np.full((1, 3), 100, np.uint8))
    assert out.dtype == np.uint8
    assert out.tolist() == [300 - 256]


@pytest.mark.parametrize("op", ["argmin", "argmax"])
def test_of_equal_values_the_first_is_taken_and_nan_before_all(op: str) -> None:
    values = np.array([[2, 1, 1, 2], [np.nan, 0, np.nan, 9], [1, 9, np.nan, 0]], np.float32)
    out = run(reduced(op, tl.f32), values)
    assert out.dtype == np.int64
    assert out.tolist() == [1 if op == "argmin" else 0, 0, 2]


def test_a_reduction_inside_an_expression_is_a_func_named_after_its_home() -> None:
    a, k, out = Input("A", tl.i32, [M, K]), RDom("k", K), Func("out")
    out[i] = tl.sum(a[i, k], over=k) * 2 + tl.max(a[i, k], over=k) + tl.sum(a[i, k] + 1, over=k)
    pipeline = Pipeline("p", inputs=[a], outputs={out: [M]})
    assert {f.name for f in pipeline.algorithm.funcs} == {"out", "out_sum", "out_max", "out_sum_1"}
    assert np.array_equal(run(pipeline, TABLE), TABLE.sum(1) * 3 + TABLE.max(1) + 5)


def test_a_domain_of_two_dimensions_and_a_predicate() -> None:
    a, out = Input("A", tl.i32, [M, K]), Func("out")
    r = RDom("r", M, K)
    out[i] = tl.sum(a[r[0], r[1]], over=r.where(a[r[0], r[1]] > tl.i32(i)))
    pipeline = Pipeline("p", inputs=[a], outputs={out: [4]})
    assert run(pipeline, TABLE).tolist() == [TABLE[n < TABLE].sum() for n in range(4)]


@pytest.mark.parametrize("op", ["min", "max", "argmin", "argmax"])
def test_a_constant_domain_of_no_point_has_no_value(op: str) -> None:
    a, k = Input("A", tl.i32, [M, K]), RDom("k", 0)
    with pytest.raises(DefinitionError, match="empty-reduction"):
        getattr(tl, op)(a[i, k], over=k)


def test_what_it_runs_over_is_a_domain() -> None:
    a = Input("A", tl.i32, [M])
    with pytest.raises(DefinitionError, match="over-not-a-domain"):
        tl.sum(a[i], over=i)


def test_an_index_has_one_dimension() -> None:
    a, r = Input("A", tl.i32, [M, K]), RDom("r", M, K)
    with pytest.raises(DefinitionError, match="argmax-rank"):
        tl.argmax(a[r[0], r[1]], over=r)
