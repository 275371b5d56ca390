"""What the outputs need of each Input, checked before anything runs."""

import numpy as np
import pytest

from tensorlang import (
    BoundsError,
    DefinitionError,
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ShapeError,
    clamp,
    i32,
    i64,
    max,
    promise,
    select,
    sum,
    u8,
    u32,
)
from tensorlang.ir.types import DType
from tests.lower.algorithms import K, M, N, i, j


def shifted(by: int) -> Pipeline:
    a, out = Input("A", i32, [M]), Func("out")
    out[i] = a[i + by]
    return Pipeline("shifted", inputs=[a], outputs={out: [N]})


def test_a_region_outside_the_array_is_named_with_what_is_needed_and_what_is_there() -> None:
    a = np.zeros(7, np.int32)
    pipeline = shifted(3)
    assert pipeline(a, sizes={"N": 4}).shape == (4,)
    with pytest.raises(BoundsError) as caught:
        pipeline(a, sizes={"N": 5})
    assert caught.value.code == "region-outside-array"
    assert "Input 'A'" in str(caught.value)
    assert "indices 3 to 7 are needed, and it has 0 to 6" in str(caught.value)
    assert "boundary condition" in str(caught.value)


def test_an_index_below_zero_never_wraps() -> None:
    with pytest.raises(BoundsError, match="indices -1 to 2 are needed"):
        shifted(-1)(np.zeros(7, np.int32), sizes={"N": 4})


def test_an_element_that_is_chosen_nowhere_is_not_needed() -> None:
    a, padded, out = Input("A", i32, [1]), Func("padded"), Func("out")
    padded[i] = select((i >= 1) & (i - 1 < 1), a[i - 1], -7)
    out[()] = padded[0] * 2
    pipeline = Pipeline("first_of_padded", inputs=[a], outputs={out: []})
    assert pipeline(np.ones(1, np.int32)) == -14


def test_an_empty_output_needs_nothing() -> None:
    assert shifted(100)(np.zeros(0, np.int32), sizes={"N": 0}).shape == (0,)


@pytest.mark.parametrize("factor", [4, 16])
def test_no_directive_enlarges_what_is_needed(factor: int) -> None:
    pipeline = shifted(0)
    assert pipeline.asserts
    s = Schedule(pipeline)
    s["out"].split(i, "io", "ii", factor).vectorize("ii")
    a = np.arange(5, dtype=np.int32)
    assert np.array_equal(pipeline.compile(s, target="interpreter")(a, sizes={"N": 5}), a)


@pytest.mark.parametrize("dtype", [i32, i64, u32])
def test_an_index_of_data_has_to_be_bounded(dtype: DType) -> None:
    a, at, out = Input("A", i32, [M]), Input("at", dtype, [N]), Func("out")
    out[i] = a[at[i]]
    with pytest.raises(DefinitionError, match="unbounded-index") as caught:
        Pipeline("gather", inputs=[a, at], outputs={out: [N]})
    assert caught.value.span is not None
    assert caught.value.span.path == __file__
    assert "index 0 of Input 'A' depends on data" in str(caught.value)


BOUNDED = {
    "clamp": lambda a, at: a[clamp(at, 0, M - 1)],
    "promise": lambda a, at: a[promise(at, 0, M - 1)],
    "select": lambda a, at: select((at >= 0) & (at < i32(M)), a[at], -1),
}


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_bounded_index_of_data_is_fine(kind: str) -> None:
    a, at, out = Input("A", i32, [M]), Input("at", i32, [N]), Func("out")
    out[i] = BOUNDED[kind](a, at[i])
    pipeline = Pipeline("gather", inputs=[a, at], outputs={out: [N]})
    values, indices = np.array([10, 20, 30], np.int32), np.array([2, 0, 1, 2], np.int32)
    kernel = pipeline.compile(target="interpreter")
    assert kernel(values, indices).tolist() == [30, 10, 20, 30]


def test_an_index_of_bytes_is_bounded_by_its_dtype() -> None:
    table, at, out = Input("table", i32, [256]), Input("at", u8, [N]), Func("out")
    out[i] = table[at[i]]
    pipeline = Pipeline("lookup", inputs=[table, at], outputs={out: [N]})
    values = np.arange(256, dtype=np.int32) ** 2
    assert pipeline(values, np.array([0, 255, 3], np.uint8)).tolist() == [0, 65025, 9]


def test_a_domain_of_a_triangle_needs_only_the_triangle() -> None:
    # Boxes alone would need A[i, 2*N - 2].
    a, r, out = Input("A", i32, [N, N]), RDom("r", N), Func("out")
    out[i] = sum(a[i, i + r], over=r.where(i + r < N))
    pipeline = Pipeline("triangle", inputs=[a], outputs={out: [N]})
    values = np.arange(16, dtype=np.int32).reshape(4, 4)
    expected = np.triu(values).sum(1)
    assert np.array_equal(pipeline.compile(target="interpreter")(values), expected)


def test_a_reduction_without_a_value_over_nothing_needs_a_point() -> None:
    a, k, out = Input("A", i32, [M, K]), RDom("k", K), Func("out")
    out[i] = max(a[i, k], over=k)
    pipeline = Pipeline("largest", inputs=[a], outputs={out: [M]})
    with pytest.raises(ShapeError, match="empty-reduction"):
        pipeline(np.zeros((2, 0), np.int32))


def test_an_update_may_not_store_outside_its_output() -> None:
    out, r = Func("out"), RDom("r", (0, 4))
    out[i, j] = 0
    out[r + 1, j] = 7
    pipeline = Pipeline("outside", inputs=[], outputs={out: [M, 2]})
    assert pipeline(sizes={"M": 5}).sum() == 7 * 2 * 4
    with pytest.raises(BoundsError, match="output 'out'"):
        pipeline(sizes={"M": 4})
