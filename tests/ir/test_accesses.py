"""Where a program touches a buffer, and what guards say of it."""

import numpy as np

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, constant_exterior, f64

N = Size("N")
i = Var("i")


def test_a_copy_placed_under_a_boundary_condition_reads_only_what_select_lets_it():
    a, out = Input("A", f64, [N]), Func("out")
    edge = constant_exterior(a, 3)
    out[i] = edge[i * 2 - 2] - edge[i + 1]
    p = Pipeline("boundary", inputs=[a], outputs={out: [N]})
    s = Schedule(p)
    copy = s[a].in_(edge)
    s[copy].compute_at(out, i)
    values = np.arange(5.0) + 1
    padded = np.concatenate([[3, 3], values, [3] * 8])
    expected = padded[np.arange(5) * 2] - padded[np.arange(5) + 3]
    np.testing.assert_array_equal(p.compile(s, "interpreter")(values), expected)
