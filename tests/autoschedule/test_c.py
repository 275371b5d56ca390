"""Schedules for C from formulas: right for any algorithm, and the nests one would write by hand."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Target,
    Var,
    autoschedule,
    f32,
    maximum,
)
from tensorlang.testing import assert_equivalent
from tensorlang.testing.families import pipelines
from tensorlang.testing.strategies import inputs

ZEN = Target("c", vector_bits=256, cores=2, caches=(32 << 10, 512 << 10, 32 << 20))
M, N, K, H, W = (Size(n) for n in "MNKHW")
i, j, y, x, c = (Var(n) for n in "ijyxc")


def check(data: st.DataObject, target: str) -> None:
    pipeline = data.draw(pipelines(), label="pipeline")
    schedule = autoschedule(pipeline, "c")
    assert str(Schedule.parse(str(schedule), pipeline)) == str(schedule)
    case = data.draw(inputs(pipeline, schedule), label="inputs")
    assert_equivalent(pipeline, schedule, target, case.arrays, sizes=case.sizes, params=case.params)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_numbers_stay_in_the_interpreter(data: st.DataObject) -> None:
    check(data, "interpreter")


@pytest.mark.cc
@settings(max_examples=20, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_numbers_stay_in_c(data: st.DataObject) -> None:
    check(data, "c")


def blur() -> Pipeline:
    image = Input("image", f32, [H + 2, W + 2])
    rows, out = Func("rows"), Func("out")
    rows[y, x] = (image[y, x] + image[y, x + 1] + image[y, x + 2]) * (1 / 3)
    out[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) * (1 / 3)
    return Pipeline("blur", inputs=[image], outputs={out: [H, W]})


def test_a_producer_of_neighbouring_rows_slides_in_strips() -> None:
    assert str(autoschedule(blur(), ZEN)).splitlines() == [
        "s[out].split(y, y_o, y_i, 32).parallel(y_o).vectorize(x)",
        "s[rows].store_at(out, y_o).fold_storage(y, 4).compute_at(out, y_i).vectorize(x)",
    ]


def test_what_costs_less_than_a_store_is_inlined() -> None:
    image = Input("image", f32, [H, W + 1])
    twice, out = Func("twice"), Func("out")
    twice[y, x] = image[y, x] * 2.0
    out[y, x] = twice[y, x] + twice[y, x + 1]
    p = Pipeline("inlined", inputs=[image], outputs={out: [H, W]})
    assert "twice" not in str(autoschedule(p, ZEN))


def remapped() -> Pipeline:
    image, at = Input("image", f32, [H, W]), Input("at", tl.i32, [H, W])
    copies, out, half = Func("copies"), Func("out"), Func("half")
    copies[i, y, x] = tl.exp(image[y, x] * f32(i))
    level = tl.clamp(at[y, x], 0, 6)
    out[y, x] = copies[level, y, x] + copies[level + 1, y, x]
    half[y, x] = copies[3, 2 * y, x]
    return Pipeline("remapped", inputs=[image, at], outputs={out: [H, W], half: [H // 2, W]})


def test_a_function_of_one_value_is_computed_again_rather_than_kept_beyond_the_caches() -> None:
    small = autoschedule(remapped(), ZEN, {"H": 64, "W": 64})
    large = autoschedule(remapped(), ZEN, {"H": 4096, "W": 4096})
    # What is read at a place from data is in vectors too.
    assert "s[copies].compute_root().vectorize(x)" in str(small)
    assert "copies" not in str(large)


def test_reductions_of_a_row_are_computed_at_that_row_and_exponentials_once() -> None:
    a, k = Input("a", f32, [M, N]), RDom("k", N)
    e, total, out = Func("e"), Func("total"), Func("out")
    e[i, j] = tl.exp(a[i, j])
    total[i] = tl.sum(e[i, k], over=k)
    out[i, j] = e[i, j] / total[i]
    p = Pipeline("normal", inputs=[a], outputs={out: [M, N]})
    assert str(autoschedule(p, ZEN)).splitlines() == [
        "s[out].parallel(i).vectorize(j)",
        "s[total].compute_at(out, i)",
        "s[total].update(0).vectorize(k)",
        "s[e].compute_at(out, i).vectorize(j)",
    ]


def matmul() -> Pipeline:
    a, b, k = Input("a", f32, [M, K]), Input("b", f32, [K, N]), RDom("k", K)
    product, out = Func("product"), Func("out")
    product[i, j] = tl.sum(a[i, k] * b[k, j], over=k)
    out[i, j] = maximum(product[i, j], 0.0)
    return Pipeline("matmul", inputs=[a, b], outputs={out: [M, N]})


def test_a_product_keeps_a_tile_in_registers_and_packs_its_second_factor() -> None:
    text = str(autoschedule(matmul(), ZEN))
    assert 'tile(i, j, i_o, j_o, i_i, j_i, 4, 24, tail="shift_inwards")' in text
    assert "s[product].update(0).reorder(k, i, j).unroll(i).vectorize(j)" in text
    assert "b_in_product = s[b].in_(product)" in text


def test_a_sum_over_rows_holds_columns_and_runs_columns_in_parallel() -> None:
    a, k, out = Input("a", f32, [M, N]), RDom("k", M), Func("out")
    out[j] = tl.sum(a[k, j], over=k)
    p = Pipeline("columns", inputs=[a], outputs={out: [N]})
    text = str(autoschedule(p, ZEN))
    assert "update(0).split(j, j_o, j_i, 32).reorder(j_o, k, j_i)" in text
    assert "parallel(j_o)" in text


def test_windows_that_do_not_fit_the_cache_are_cut_by_a_func_at_root() -> None:
    image = Input("image", f32, [H + 200, W])
    f = image
    for number in range(100):
        g = Func(f"f{number}")
        g[y, x] = (f[y, x] + f[y + 1, x] + f[y + 2, x]) * 0.25 + tl.exp(f[y + 1, x])
        f = g
    p = Pipeline("long", inputs=[image], outputs={f: [H, W]})
    text = str(autoschedule(p, ZEN))
    assert text.count("compute_root") == 5
    assert text.count("store_at") >= 50


def test_the_sizes_that_are_known_decide() -> None:
    a, out = Input("a", f32, [N]), Func("out")
    out[i] = a[i] + 1.0
    p = Pipeline("line", inputs=[a], outputs={out: [N]})
    assert "parallel" not in str(autoschedule(p, ZEN, {"N": 100}))
    assert "parallel" in str(autoschedule(p, ZEN, {"N": 1 << 20}))


def test_a_histogram_runs_in_order() -> None:
    a, r, out = Input("a", f32, [N]), RDom("r", N), Func("out")
    out[i] = 0
    out[tl.clamp(tl.i32(a[r]), 0, 9)] += 1
    p = Pipeline("histogram", inputs=[a], outputs={out: [10]})
    assert "update" not in str(autoschedule(p, ZEN))


@pytest.mark.parametrize("target", ["c", "triton"])
def test_a_domain_with_a_predicate_has_a_schedule(target: str) -> None:
    n = Size("n")
    a, b = Input("a", f32, [n, n]), Input("b", f32, [n, n])
    k, product = RDom("k", n), Func("product")
    below = k.where(k <= i)
    product[i, j] = tl.sum(a[i, below] * b[below, j], over=below)
    p = Pipeline("below", inputs=[a, b], outputs={product: [n, n]})
    assert str(autoschedule(p, target))
