"""Rows in slices: the largest and the sum of exponentials in one read."""

import pytest
import torch
from torch.nn import functional as theirs

from tensorlang import f16, f32, i64
from tensorlang.nn.schedules import in_slices, soft_rows
from tensorlang.nn.softmax import cross_entropy, cross_entropy_with_gradient, softmax


def draw(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 4


@pytest.mark.parametrize("logarithm", [False, True])
def test_softmax_of_a_row_in_slices(logarithm):
    p = softmax(f32, logarithm=logarithm, out_dtype="")
    kernel = p.compile(in_slices(p, 16), "triton")
    assert kernel.source.count("in tl.range(") == 2
    x = draw(3, 37)
    x[1, :20] = -torch.inf
    want = (theirs.log_softmax if logarithm else theirs.softmax)(x, -1)
    torch.testing.assert_close(kernel(x), want, rtol=2e-6, atol=2e-6)


def test_cross_entropy_of_a_row_in_slices():
    p = cross_entropy(f32, i64, None, ignore_index=-100, label_smoothing=0.1)
    kernel = p.compile(in_slices(p, 16), "triton")
    x, target = draw(4, 37), torch.tensor([3, 36, -100, 0])
    want = theirs.cross_entropy(x, target, reduction="none", label_smoothing=0.1)
    torch.testing.assert_close(kernel(x, target), want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("target", "dtype", "weighted", "smoothing", "programs"),
    [
        ("triton", f32, False, 0.0, 0),
        ("triton", f32, True, 0.1, 3),
        ("triton", f16, False, 0.0, 3),
        pytest.param("c", f32, True, 0.1, 0, marks=pytest.mark.cc),
    ],
)
def test_a_loss_and_its_gradient_in_one_kernel(target, dtype, weighted, smoothing, programs):
    weight = f32 if weighted else None
    p = cross_entropy_with_gradient(
        dtype, i64, weight, f32, ignore_index=-100, label_smoothing=smoothing
    )
    s = in_slices(p, 16, programs=programs) if target == "triton" else None
    kernel = p.compile(s, target)
    assert kernel.source.count("@triton.jit") == (target == "triton")
    x = draw(5, 37).to(torch.float16 if dtype is f16 else torch.float32)
    target_of, w = torch.tensor([3, 36, -100, 0, 7]), torch.rand(37) if weighted else None
    counts = torch.rand(5)
    loss, grad = kernel(*(t for t in (x, target_of, w, counts) if t is not None))
    leaf = x.double().requires_grad_()
    each = theirs.cross_entropy(
        leaf,
        target_of,
        None if w is None else w.double(),
        reduction="none",
        label_smoothing=smoothing,
    )
    (each * counts).sum().backward()
    near = {"rtol": 2e-6, "atol": 2e-6} if dtype is f32 else {"rtol": 1e-3, "atol": 1e-5}
    torch.testing.assert_close(loss.double(), each.detach(), **near)
    torch.testing.assert_close(grad.double(), leaf.grad, **near)


def test_only_long_rows_are_taken_in_slices():
    p = softmax(f32, logarithm=False, out_dtype="")
    assert soft_rows(p, "triton", {"N": 1024}) is None
    assert "rolling_update" in str(soft_rows(p, "triton", {"N": 65536}))
