"""Rows in slices: the largest and the sum of exponentials in one read."""

import pytest
import torch
from torch.nn import functional as theirs

from tensorlang import f32, i64
from tensorlang.nn.schedules import in_slices, soft_rows
from tensorlang.nn.softmax import cross_entropy, softmax


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


def test_only_long_rows_are_taken_in_slices():
    p = softmax(f32, logarithm=False, out_dtype="")
    assert soft_rows(p, "triton", {"N": 1024}) is None
    assert "rolling_update" in str(soft_rows(p, "triton", {"N": 65536}))
