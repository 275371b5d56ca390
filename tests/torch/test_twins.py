"""Gradients with the same definition are one output."""

from tensorlang import Func, Input, Pipeline, RDom, Size, Var, f32, sum
from tensorlang.autodiff import gradients
from tensorlang.torch.twins import without_twins

M = Size("M")
i, r = Var("i"), RDom("r", M)


def gradient_of(value):
    x, y, out = Input("x", f32, [M]), Input("y", f32, [M]), Func("out")
    out[i] = value(x, y)
    return gradients(Pipeline("p", inputs=[x, y], outputs={out: [M]}), wrt=["x", "y"])


def test_the_terms_of_a_sum_share_their_gradient():
    made, places = without_twins(gradient_of(lambda x, y: (x[i] + y[i]) * (x[i] + y[i])))
    assert places == (0, 0)
    assert [name for name, _ in made.algorithm.outputs] == ["grad_x"]
    assert all(f.name != "grad_y" for f in made.algorithm.funcs)


def test_what_differs_stays():
    for value in (
        lambda x, y: x[i] - y[i],
        lambda x, y: sum(x[r], over=r) * y[i],
    ):
        gradient = gradient_of(value)
        assert without_twins(gradient) == (gradient, (0, 1))
