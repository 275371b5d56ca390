"""The gradient is a Pipeline like any other: its arguments, names, schedules and errors."""

import numpy as np
import pytest

from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    exp,
    f16,
    f32,
    f64,
    i32,
    sum,
)
from tensorlang.autodiff import gradients
from tests.autodiff.checking import check_differences

M, N, K = Size("M"), Size("N"), Size("K")
i, j, k = Var("i"), Var("j"), RDom("k", K)
x, y, X = Input("x", f64, [N]), Input("y", f64, [N]), Input("X", f64, [M, N])


def array(*shape):
    return np.random.default_rng(0).standard_normal(shape)


def product():
    f = Func("f")
    f[i] = x[i] * y[i]
    return Pipeline("product", inputs=[x, y], outputs={f: [N]})


def matmul(dtype=f32):
    A, B, C = Input("A", dtype, [M, K]), Input("B", dtype, [K, N]), Func("C")
    C[i, j] = sum(f32(A[i, k]) * f32(B[k, j]), over=k)
    return Pipeline("matmul", inputs=[A, B], outputs={C: [M, N]})


def test_the_gradient_of_a_product_is_two_products(golden):
    golden(str(gradients(matmul())))


def test_only_what_is_needed_is_an_input():
    algorithm = gradients(product(), wrt=["x"]).algorithm
    assert [a.name for a in algorithm.inputs] == ["y", "grad_f"]
    assert [name for name, _ in algorithm.outputs] == ["grad_x"]


def test_wrt_takes_objects_and_keeps_their_order():
    algorithm = gradients(product(), wrt=[y, x]).algorithm
    assert [name for name, _ in algorithm.outputs] == ["grad_y", "grad_x"]


def test_a_param_has_a_gradient_without_dimensions():
    s, f = Param("s", f64), Func("f")
    f[i, j] = exp(s * X[i, j]) + s
    pipeline = Pipeline("p", inputs=[X], outputs={f: [M, N]})
    check_differences(pipeline, [array(3, 4)], wrt=["s", "X"], params={"s": 0.7})


def test_an_input_that_nothing_depends_on_has_gradient_zero():
    f = Func("f")
    f[i] = x[i] * 2
    pipeline = Pipeline("p", inputs=[x, y], outputs={f: [N]})
    made = gradients(pipeline)
    gx, gy = made(np.ones(3))
    assert np.array_equal(gx, [2, 2, 2])
    assert np.array_equal(gy, [0, 0, 0])


def test_outputs_left_out_count_for_nothing():
    f, g = Func("f"), Func("g")
    f[i] = x[i] * x[i]
    g[i] = f[i] * x[i]
    pipeline = Pipeline("p", inputs=[x], outputs={f: [N], g: [N]})
    made = gradients(pipeline, grad_outputs=["f"])
    assert [a.name for a in made.algorithm.inputs] == ["x", "grad_f"]
    check_differences(pipeline, [array(4)])


def test_a_tuple_has_an_incoming_gradient_for_each_float():
    f, g = Func("f"), Func("g")
    f[i] = (x[i] * 2, i32(i), x[i] * y[i])
    g[i] = f[i][0] * f[i][2]
    pipeline = Pipeline("p", inputs=[x, y], outputs={f: [N], g: [N]})
    names = [a.name for a in gradients(pipeline).algorithm.inputs]
    assert names == ["x", "y", "grad_f_0", "grad_f_2", "grad_g"]
    check_differences(pipeline, [array(5), array(2, 5)[1]])


def test_the_gradient_of_a_gradient():
    f = Func("f")
    f[i] = x[i] * x[i] * x[i]
    first = gradients(Pipeline("p", inputs=[x], outputs={f: [N]}))
    check_differences(first, [array(4), array(2, 4)[1]])


def test_half_precision_adds_in_f32_and_is_rounded_at_the_end():
    made = gradients(matmul(f16)).algorithm
    assert made.func("grad_A").dtypes == (f16,)
    assert made.func("grad_A_sum").dtypes == (f32,)


def test_an_adjoint_kept_in_f16_makes_products_of_f16():
    C, D = Func("C"), Func("D")
    A, B = Input("A", f16, [M, K]), Input("B", f16, [K, N])
    C[i, j] = sum(f32(A[i, k]) * f32(B[k, j]), over=k)
    D[i, j] = exp(C[i, j])
    pipeline = Pipeline("p", inputs=[A, B], outputs={D: [M, N]})
    made = gradients(pipeline, dtypes={"C": f16})
    assert made.algorithm.func("grad_C").dtypes == (f16,)
    assert "f32(grad_C[i, j])*f32(B[k, j])" in str(made)


@pytest.mark.cc
def test_a_schedule_of_the_gradient_keeps_its_values():
    made = gradients(matmul(), wrt=["A"])
    s = Schedule(made)
    s["grad_A"].update(0).split("k", "ko", "ki", 4).reorder("ko", "i", "j", "ki").vectorize("ki")
    arrays = [a.astype(np.float32) for a in (array(5, 7), array(3, 7))]
    plain = made(*arrays)
    np.testing.assert_allclose(made.compile(s, "c")(*arrays), plain, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"wrt": ["z"]}, "unknown-name"),
        ({"wrt": []}, "unknown-name"),
        ({"wrt": ["ids"]}, "integer-gradient"),
        ({"grad_outputs": ["z"]}, "unknown-name"),
        ({"grad_outputs": ["count"]}, "integer-gradient"),
    ],
)
def test_what_has_no_gradient_is_refused(arguments, code):
    ids, f, count = Input("ids", i32, [N]), Func("f"), Func("count")
    f[i] = x[i] * ids[i]
    count[i] = ids[i]
    pipeline = Pipeline("p", inputs=[x, ids], outputs={f: [N], count: [N]})
    with pytest.raises(DefinitionError, match=code):
        gradients(pipeline, **arguments)


def test_names_that_the_gradients_take_are_no_obstacle():
    grad_x, f = Func("grad_x"), Func("f")
    grad_x[i] = x[i] * x[i]
    f[i] = grad_x[i] * x[i]
    check_differences(Pipeline("p", inputs=[x], outputs={f: [N]}), [array(4)])
