"""Where an adjoint is not zero: there it is handed on, and nowhere else formed."""

import numpy as np

from tensorlang import Func, Input, Pipeline, RDom, Size, Var, exp2, f32, select, sum
from tensorlang.autodiff import gradients

N = Size("N")
i, j = Var("i"), Var("j")


def triangle() -> Pipeline:
    """w[i] = sum of exp2(x[i] * y[r]) over r up to i"""
    x, y, r = Input("x", f32, [N]), Input("y", f32, [N]), RDom("r", N)
    f, w = Func("f"), Func("w")
    f[i, j] = exp2(x[i] * y[j])
    w[i] = sum(f[i, r], over=r.where(r <= i))
    return Pipeline("triangle", inputs=[x, y], outputs={w: [N]})


def test_a_sum_over_half_a_square_has_gradients_over_that_half() -> None:
    text = str(gradients(triangle()))
    assert "select" not in text
    assert text.count("where j <= i") == 2


def test_what_is_not_summed_says_nothing_even_where_it_is_infinite() -> None:
    x, y = np.array([100, 2, 3, 4], np.float32), np.array([1, 2, 3, 2], np.float32)
    grad_x, grad_y = gradients(triangle())(x, y, np.ones(4, np.float32))
    values = np.tril(np.exp2(np.outer(x, y).astype(np.float64))) * np.log(2)
    assert np.allclose(grad_x, values @ y, rtol=1e-5)
    assert np.allclose(grad_y, x @ values, rtol=1e-5)


def test_a_read_that_a_condition_guards_is_formed_under_it() -> None:
    """Of elements below 0 there is none, so that the condition stays with the product."""
    a, b = Input("A", f32, [N]), Input("B", f32, [N])
    f, g, h = Func("f"), Func("g"), Func("h")
    f[i] = a[i] * a[i]
    g[i] = f[i] * 3
    h[i] = select(i >= 1, g[i] * b[i - 1], 0)
    p = Pipeline("guarded", inputs=[a, b], outputs={h: [N]})
    values, others = np.arange(1, 6, dtype=np.float32), np.arange(5, dtype=np.float32)
    grad_a, grad_b = gradients(p)(values, others, np.ones(5, np.float32))
    shifted = np.concatenate([[0], others[:-1]])
    assert np.allclose(grad_a, 6 * values * shifted)
    assert np.allclose(grad_b[:-1], 3 * values[1:] ** 2)
    assert grad_b[-1] == 0
