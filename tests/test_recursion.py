"""Programs nest as deeply as their algorithm has stages."""

import sys

import numpy as np

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, i64
from tensorlang.recursion import deep_recursion

N = Size("N")
i = Var("i")


def test_a_chain_of_a_hundred_stages_at_root_lowers_and_runs():
    count = 100
    a = Input("A", i64, [N + count])
    stages: list[Func] = []
    before: Input | Func = a
    for k in range(count):
        f = Func(f"f{k}")
        f[i] = before[i + 1] + 1
        stages.append(f)
        before = f
    p = Pipeline("chain", inputs=[a], outputs={stages[-1]: [N]})
    s = Schedule(p)
    for f in stages[:-1]:
        s[f].compute_root()
    values = np.arange(count + 3)
    np.testing.assert_array_equal(p.compile(s, "interpreter")(values), [200, 201, 202])


def test_the_limit_is_put_back():
    before = sys.getrecursionlimit()
    with deep_recursion():
        assert sys.getrecursionlimit() > before
    assert sys.getrecursionlimit() == before
