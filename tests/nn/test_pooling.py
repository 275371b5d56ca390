"""Pooling is torch's: values, places, gradients where windows overlap and where values tie."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError
from tensorlang.nn import functional as ours
from tests.nn.checks import call, check, draw

pytestmark = pytest.mark.cc
CASES = {
    "max, overlapping": ("max_pool1d", (2, 3, 11), (3, 2, 1), {}),
    "max, ceil": ("max_pool2d", (2, 9, 8), ((3, 2), 2, 1), {"ceil_mode": True}),
    "max, dilated": ("max_pool3d", (2, 1, 5, 5, 4), (2, 1), {"dilation": (1, 2, 1)}),
    "mean": ("avg_pool1d", (2, 3, 11), (3, 2, 1), {}),
    "mean, ceil": (
        "avg_pool2d",
        (2, 3, 9, 8),
        ((3, 2), 2, 1),
        {"ceil_mode": True, "count_include_pad": False},
    ),
    "mean, a divisor": ("avg_pool3d", (2, 2, 4, 4, 4), (2,), {"divisor_override": 3}),
    "adaptive mean": ("adaptive_avg_pool2d", (2, 3, 7, 5), ((3, None),), {}),
    "adaptive max": ("adaptive_max_pool1d", (2, 3, 7), (3,), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_pooling(name):
    function, shape, extra, how = CASES[name]
    # Zeros tie, as after a relu: the first of them gets the gradient.
    x = draw(*shape).detach().relu().requires_grad_()
    of = call(function, *extra, **how)
    check(of(ours), of(reference), x)
    if "max" in function:
        found, want = (call(function, *extra, return_indices=True, **how)(m)(x) for m in MODULES)
        assert torch.equal(found[1], want[1])


MODULES = (ours, reference)


def test_pooling_keeps_channels_innermost_and_nan():
    x = torch.randn(2, 3, 6, 4).to(memory_format=torch.channels_last)
    x[0, 1, 2, 3] = torch.nan
    x[1, :, :2, :2] = -torch.inf
    for of in (call("max_pool2d", 2, return_indices=True), call("avg_pool2d", 3, 2, 1)):
        found, want = of(ours)(x), of(reference)(x)
        torch.testing.assert_close(found, want, equal_nan=True)
        made = found[0] if isinstance(found, tuple) else found
        assert made.is_contiguous(memory_format=torch.channels_last)


def test_what_does_not_fit_is_refused():
    x = draw(1, 2, 5)
    for refused in (
        lambda: ours.max_pool1d(x, 2, padding=2),
        lambda: ours.avg_pool3d(x, 2),
        lambda: ours.avg_pool2d(x, 2, divisor_override=0),
        lambda: ours.adaptive_avg_pool2d(x[0, 0], 2),
    ):
        with pytest.raises(DefinitionError, match="not-supported"):
            refused()
