"""A Pipeline as an operator of torch: shapes, gradients, compile, vmap, autocast."""

import pytest
import torch
from torch.library import opcheck

from tensorlang import (
    DefinitionError,
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    ShapeError,
    Size,
    Var,
    f32,
    f64,
    sigmoid,
    sum,
)
from tensorlang.autodiff import gradients
from tensorlang.ir.types import DType
from tensorlang.torch import custom_op

pytestmark = pytest.mark.cc
M, N, K = Size("M"), Size("N"), Size("K")
i, j, k = Var("i"), Var("j"), RDom("k", K)


def gated(x: DType, w: DType, bias: DType | None, *, gate: bool) -> Pipeline:
    """x @ w + bias, times its own sigmoid."""
    X, W, B = Input("x", x, [M, K]), Input("w", w, [K, N]), Input("bias", x, [N])
    wide, h, out = f64 if x is f64 else f32, Func("h"), Func("out")
    h[i, j] = sum(wide(X[i, k]) * wide(W[k, j]), over=k)
    z = h[i, j] if bias is None else h[i, j] + wide(B[j])
    out[i, j] = x(z * sigmoid(z) if gate else z)
    inputs = [X, W] if bias is None else [X, W, B]
    return Pipeline("gated", inputs=inputs, outputs={out: [M, N]})


linear = custom_op("tensorlang_test::gated", gated, autocast=torch.float16)


def tensors(dtype=torch.float64, grad=True):
    torch.manual_seed(0)
    shapes = (5, 3), (3, 4), (4,)
    return [torch.randn(s, dtype=dtype, requires_grad=grad) for s in shapes]


def eager(x, w, b, gate=True):
    z = x @ w + (0 if b is None else b)
    return torch.nn.functional.silu(z) if gate else z


@pytest.mark.parametrize("gate", [True, False])
def test_forward_and_gradient_are_those_of_torch(gate):
    x, w, b = tensors()
    torch.testing.assert_close(linear(x, w, b, gate), eager(x, w, b, gate))
    torch.testing.assert_close(linear(x, w, None, gate), eager(x, w, None, gate))
    assert torch.autograd.gradcheck(lambda *t: linear(*t, gate), (x, w, b))


def test_only_the_gradients_that_are_asked_for_are_computed():
    x, w, b = tensors()
    (found,) = torch.autograd.grad(linear(x, w, b, True).sum(), [b])
    (want,) = torch.autograd.grad(eager(x, w, b).sum(), [b])
    torch.testing.assert_close(found, want)


def test_gradients_may_be_strided_or_expanded():
    x, w, b = tensors()
    found = torch.autograd.grad(linear(x, w, b, True)[..., ::2].sum(), [x, w])
    want = torch.autograd.grad(eager(x, w, b)[..., ::2].sum(), [x, w])
    torch.testing.assert_close(found, want)


def test_opcheck_passes():
    x, w, b = tensors(torch.float32)
    for bias in (b, None):
        opcheck(linear, (x, w, bias, True))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_has_no_graph_break(backend):
    x, w, b = tensors(torch.float32)
    compiled = torch.compile(
        lambda *t: linear(*t, True).exp(), backend=backend, fullgraph=True, dynamic=True
    )
    torch.testing.assert_close(compiled(x, w, b), eager(x, w, b).exp())
    compiled(x, w, b).sum().backward()
    want = torch.autograd.grad(eager(x, w, b).exp().sum(), [x, w, b])
    torch.testing.assert_close([x.grad, w.grad, b.grad], list(want))


def test_exported_code_keeps_the_operator():
    class Model(torch.nn.Module):
        def forward(self, x, w):
            return linear(x, w, None, True) + 1

    x, w, _ = tensors(torch.float32, grad=False)
    program = torch.export.export(Model(), (x, w))
    assert "tensorlang_test.gated" in program.graph_module.code
    torch.testing.assert_close(program.module()(x, w), eager(x, w, None) + 1)


def test_a_batch_is_mapped_over():
    _, w, b = tensors(torch.float32)
    many = torch.randn(3, 5, 3)
    found = torch.vmap(lambda t: linear(t, w, b, True))(many)
    torch.testing.assert_close(found, eager(many, w, b))


def test_autocast_converts_the_tensors():
    x, w, b = tensors(torch.float32, grad=False)
    with torch.autocast("cpu", torch.float16):
        assert linear(x, w, b, True).dtype is torch.float16


def test_the_gradient_of_the_gradient_is_refused():
    x, w, b = tensors()
    (slope,) = torch.autograd.grad(linear(x, w, b, True).sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="gated_backward"):
        slope.sum().backward()


def scaled():
    x, factor, out = Input("x", f32, [2 * M]), Param("factor", f32), Func("halves")
    out[i] = x[2 * i] * factor
    return Pipeline("halves", inputs=[x], outputs={out: [M]})


def test_a_pipeline_is_an_operator_with_its_params_last():
    op = custom_op("tensorlang_test::halves", scaled())
    x = torch.arange(6.0, requires_grad=True)
    assert op(x, 3.0).tolist() == [0, 6, 12]
    assert torch.autograd.grad(op(x, 3.0).sum(), [x])[0].tolist() == [3, 0, 3, 0, 3, 0]
    opcheck(op, (x, 3.0))
    with pytest.raises(DefinitionError, match="wrong-dtype"):
        op(x.double(), 3.0)


def test_zero_elements_are_no_special_case():
    x, w, b = tensors(torch.float32)
    assert linear(x[:0], w, b, True).shape == (0, 4)
    empty = linear(x[:, :0], w[:0], b, False)
    torch.testing.assert_close(empty, b.expand(5, 4))


def test_more_than_2_to_the_31_elements():
    """Of one that is repeated, so that they take no memory."""
    X, out = Input("x", f32, [M, N]), Func("out")
    out[i] = X[i, N - 1]
    op = custom_op("tensorlang_test::last", Pipeline("last", inputs=[X], outputs={out: [M]}))
    x = torch.arange(3.0)[:, None].expand(3, 2**31 + 5)
    assert op(x).tolist() == [0, 1, 2]


def test_what_torch_cannot_know_is_refused():
    out = Func("ramp")
    out[i] = f32(i)
    op = custom_op(
        "tensorlang_test::ramp", Pipeline("ramp", inputs=[Input("x", f32, [M])], outputs={out: [N]})
    )
    with pytest.raises(ShapeError, match="unknown-size"), torch._subclasses.FakeTensorMode():
        op(torch.empty(3))

    def untyped(x: DType, *, what: list) -> Pipeline:
        raise NotImplementedError

    with pytest.raises(DefinitionError, match="not-a-family"):
        custom_op("tensorlang_test::untyped", untyped)


def shifted(x: DType, *, by: tuple[int, ...]) -> Pipeline:
    """x plus the product of the numbers, and what a schedule sees."""
    X, out, factor = Input("x", x, [M]), Func("out"), 1
    for n in by:
        factor *= n
    out[i] = X[i] + factor
    return Pipeline("shifted", inputs=[X], outputs={out: [M]})


def test_constants_may_be_tuples_and_schedules_may_see_sizes():
    seen = []

    def schedule(pipeline, target, sizes):
        seen.append((target, dict(sizes)))

    op = custom_op("tensorlang_test::shifted", shifted, schedules=schedule)
    x = torch.arange(3.0, requires_grad=True)
    assert op(x, [2, 3]).tolist() == [6, 7, 8]
    assert op(x, [5]).tolist() == [5, 6, 7]
    assert torch.autograd.grad(op(x, [5]).sum(), [x])[0].tolist() == [1, 1, 1]
    opcheck(op, (x, [2, 3]))
    # On a CPU one schedule is for all Sizes.
    assert {target for target, _ in seen} == {"c"}
    assert all(not sizes for _, sizes in seen)


def folded(x: DType, *, backwards: bool) -> Pipeline:
    """The sum of x, from either end."""
    X, total, r = Input("x", x, [M]), Func("total"), RDom("r", M)
    total[i] = sum(X[M - 1 - r if backwards else r], over=r)
    return Pipeline("folded", inputs=[X], outputs={total: [1]})


def test_a_gradient_may_be_derived_from_another_definition():
    asked = []

    def derivative(pipeline, wrt):
        asked.append(str(pipeline))
        return gradients(pipeline, wrt)

    op = custom_op(
        "tensorlang_test::folded", folded, derivative=derivative, derived_as={"backwards": False}
    )
    x = torch.arange(3.0, requires_grad=True)
    assert torch.autograd.grad(op(x, True), [x])[0].tolist() == [1, 1, 1]
    assert asked == [str(folded(f32, backwards=False))]
    with pytest.raises(DefinitionError, match="derived_as"):
        custom_op("tensorlang_test::unfolded", folded, derived_as={"forwards": True})


def peaked(x: DType) -> Pipeline:
    """x - top, and top again: nothing depends on top."""
    X, top, out, r = Input("x", x, [M]), Func("top"), Func("out"), RDom("r", M)
    top[()] = sum(X[r], over=r)
    out[i] = (X[i] - top[()]) + top[()]
    return Pipeline("peaked", inputs=[X], outputs={out: [M]})


def test_no_gradient_passes_through_what_is_constant():
    op = custom_op("tensorlang_test::peaked", peaked, constant=["top"])
    x = torch.arange(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(op, (x,))
