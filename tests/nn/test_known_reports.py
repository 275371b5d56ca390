"""What users have reported of other libraries of kernels, each with its value."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang.nn import functional as ours
from tests.nn.checks import check, draw

pytestmark = pytest.mark.cc


def test_a_gradient_of_every_other_element():
    def half(module):
        return lambda x, w: module.rms_norm(x, (10,), w)[..., ::2]

    check(half(ours), half(reference), draw(4, 10), draw(10, seed=1))


def test_the_gradient_of_a_sum_which_has_no_strides():
    x, w = torch.randn(4, 10, requires_grad=True), torch.randn(10, requires_grad=True)
    sums = (module.rms_norm(x, (10,), w).sum() for module in (ours, reference))
    found, want = (torch.autograd.grad(y, [x, w]) for y in sums)
    torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-5)


def test_rows_of_a_transposed_matrix():
    x = torch.randn(512, 8).t()
    for of in (
        lambda m: m.softmax(x, -1),
        lambda m: m.layer_norm(x, (512,)),
        lambda m: m.rms_norm(x, (512,)),
    ):
        torch.testing.assert_close(of(ours), of(reference), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("width", [1, 1000, 5120, 5121])
def test_the_gradient_of_a_norm_whose_width_is_no_power_of_two(width):
    x, w = draw(3, width, dtype=torch.float32), draw(width, dtype=torch.float32, seed=1)
    check(
        lambda x, w: ours.rms_norm(x, (width,), w),
        lambda x, w: reference.rms_norm(x, (width,), w),
        x,
        w,
        rtol=1e-3,
        atol=1e-4,
    )


def test_losses_that_are_weighted_after_they_are_made():
    target = torch.tensor([2, -100, 0, 4])

    def weighted(module):
        def loss(x):
            each = module.cross_entropy(x, target, reduction="none")
            return each * torch.tensor([1.0, 2.0, 0.0, -3.0], dtype=x.dtype)

        return loss

    check(weighted(ours), weighted(reference), draw(4, 5))


def test_scores_of_1e14_stay_finite():
    x = torch.randn(2, 100) * 1e14
    assert ours.softmax(x, -1).isfinite().all()
    torch.testing.assert_close(ours.softmax(x, -1), reference.softmax(x, -1))


def test_nan_is_kept_and_found():
    x = torch.tensor([1.0, torch.nan, 2.0, -1.0])
    assert ours.relu(x).isnan().tolist() == [False, True, False, False]
    assert ours.amax(x).isnan()
    assert ours.argmax(x) == 1
    assert ours.max_pool1d(x[None], 2).isnan().tolist() == [[True, False]]


def test_a_relu_has_no_slope_at_zero():
    x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    assert torch.autograd.grad(ours.relu(x).sum(), [x])[0].tolist() == [0.0, 0.0, 1.0]


def test_the_first_call_gives_what_the_second_gives():
    x = draw(7, 33, dtype=torch.float32, seed=5).detach()
    for call in (
        lambda: ours.softmax(x, -1),
        lambda: ours.layer_norm(x, (33,)),
        lambda: ours.cumsum(x, 1),
        lambda: ours.quantize(x)[0].float(),
    ):
        assert torch.equal(call(), call())


def test_the_gradient_of_a_gradient_is_refused():
    x = draw(2, 5)
    (slope,) = torch.autograd.grad(ours.rms_norm(x, (5,)).sum(), [x], create_graph=True)
    with pytest.raises(RuntimeError, match="rms_norm_backward"):
        slope.sum().backward()


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_arrays_without_elements(shape):
    x = torch.empty(shape, requires_grad=True)
    for made in (ours.rms_norm(x, shape[1:]), ours.cumsum(x, 1), ours.sum(x, 0)):
        assert torch.autograd.grad(made.sum(), [x])[0].shape == shape
    assert ours.bmm(torch.empty(0, 2, 3), torch.empty(0, 3, 4)).shape == (0, 2, 4)
    assert ours.conv1d(torch.empty(0, 2, 5), torch.empty(3, 2, 3)).shape == (0, 3, 3)
