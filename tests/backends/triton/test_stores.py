"""Stores: lanes that one element is reduced along."""

import numpy as np
import pytest

from tensorlang import Func, Input, Param, Pipeline, RDom, Schedule, Size, Var, i32, select, sum
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
