"""Stores: lanes that one element is reduced along."""

import numpy as np
import pytest

from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    f16,
    i32,
    select,
    sum,
)
from tensorlang.func import define_update

M, N = Size("M"), Size("N")
i = Var("i")
ROWS = np.array([1, -2, 3], np.int32)


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("of", ["rows", "a number", "a Param"])
def test_a_term_that_lanes_do_not_change_counts_for_each_of_them(of: str, n: int) -> None:
    a, f, k = Input("a", i32, [M]), Func("f"), RDom("k", N)
    f[i] = sum({"rows": a[i], "a number": i32(7), "a Param": Param("p", i32)}[of], over=k)
    p = Pipeline("p", inputs=[a] if of == "rows" else [], outputs={f: [M]})
    s = Schedule(p)
    s[f].vectorize(i)
    s[f].update(0).vectorize(i).vectorize(k)
    arrays, params = ([ROWS], {}) if of == "rows" else ([], {"p": 5} if of == "a Param" else {})
    found = p.compile(s, target="triton")(*arrays, sizes={"M": 3, "N": n}, **params)
    expected = {"rows": ROWS * n, "a number": [7 * n] * 3, "a Param": [5 * n] * 3}[of]
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("n", [1, 4, 5])
def test_of_lanes_that_are_alike_one_is_the_first(n: int) -> None:
    a, f, k = Input("a", i32, [M]), Func("f"), RDom("k", N)
    f[i] = (i32(0), i32(0))
    better = f[i][0] < a[i]
    define_update(f, i, (select(better, a[i], f[i][0]), select(better, 9, f[i][1])), k.domain)
    p = Pipeline("p", inputs=[a], outputs={f: [M]})
    s = Schedule(p)
    s[f].update(0).vectorize(i).vectorize(k)
    best, at = p.compile(s, target="triton")(ROWS, sizes={"N": n})
    assert best.tolist() == [1, 0, 3]
    assert at.tolist() == [9, 0, 9]


def test_narrow_floats_are_summed_in_f32_and_rounded_once() -> None:
    a, f, k = Input("a", f16, [N]), Func("f"), RDom("k", N)
    f[()] = sum(a[k], over=k, dtype=f16)
    p = Pipeline("p", inputs=[a], outputs={f: []})
    s = Schedule(p)
    s[f].update(0).vectorize(k)
    # In f16 2048 + 1 is 2048, whatever the order; 2051 lies between 2050 and 2052.
    found = p.compile(s, target="triton")(np.array([2048, 1, 1, 1], np.float16))
    assert found == 2052


def test_a_tile_that_a_condition_defines_is_there_after_it() -> None:
    a, f, g = Input("a", i32, [M]), Func("f"), Func("g")
    f[i] = a[i] * Param("p", i32)
    g[i] = f[i] + 1
    p = Pipeline("p", inputs=[a], outputs={g: [M]})
    s = Schedule(p)
    s[g].split(i, "io", "ii", 4).gpu_blocks("io").vectorize("ii")
    s[f].compute_at(g, "io").vectorize(i)
    s[f].specialize(Param("p", i32) == 1).vectorize(i)
    for value in (1, 5):
        found = p.compile(s, target="triton")(ROWS, p=value)
        assert np.array_equal(found, ROWS * value + 1)
