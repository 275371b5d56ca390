"""A convolution of pixels by channels is that of torch, in one loop of dots on a GPU."""

import pytest
import torch
from torch.nn import functional as reference

from tensorlang import Target, f16, f32
from tensorlang.ir.types import DType
from tensorlang.nn.conv import conv
from tensorlang.nn.conv_pixels import takes, tiles_of_pixels
from tensorlang.nn.windows import Windows
from tensorlang.pipeline import Pipeline
from tests.nn.checks import draw

ONE, SAME = (1, 1), (1, 1)


def pixels(dtype: DType, windows: Windows, *, channels_last: bool = True) -> Pipeline:
    return conv(
        *(dtype, dtype, None, dtype, dtype, None),
        extent=windows.extent,
        stride=windows.stride,
        dilation=windows.dilation,
        before=windows.before,
        after=windows.after,
        channels_last=channels_last,
        activation="relu",
        pixels=True,
    )


CASES = {
    "same": (Windows((3, 3), ONE, ONE, SAME, SAME), (2, 16, 5, 6), 8, 1),
    "strided, dilated": (Windows((5, 3), (3, 2), ONE, (2, 1), (2, 1)), (1, 8, 8, 9), 8, 1),
    "groups": (Windows((1, 1), ONE, ONE, (0, 0), (0, 0)), (2, 8, 3, 4), 12, 2),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_torch(name: str) -> None:
    windows, shape, channels, groups = CASES[name]
    batch, c, *space = shape
    pipeline = pixels(f32, windows)
    schedule = tiles_of_pixels(pipeline, "triton", {"O": channels // groups, "C": c // groups})
    torch.manual_seed(0)
    x, w = torch.randn(shape), torch.randn(channels, c // groups, *windows.extent)
    scale, shift = torch.randn(channels), torch.randn(channels)
    of = reference.conv2d(x, w, None, windows.stride, windows.before, windows.dilation, groups)
    want = torch.relu(of * scale[:, None, None] + shift[:, None, None])
    kernel = pipeline.compile(schedule, target="triton")
    assert kernel.notes == ()
    last = x.reshape(batch, groups, -1, *space).permute(0, 3, 4, 1, 2).contiguous()
    rest = (t.reshape(groups, -1, *t.shape[1:]) for t in (w, scale, shift))
    got = kernel(last, *rest).permute(0, 3, 4, 1, 2).reshape(want.shape)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


def test_the_dot_takes_what_was_loaded(golden) -> None:
    pipeline = pixels(f16, CASES["same"][0])
    kernel = pipeline.compile(tiles_of_pixels(pipeline, "triton"), Target("triton", arch="sm_90"))
    golden(kernel.source)


def test_windows_that_stay_inside_are_left_to_the_other_definition() -> None:
    weight = torch.empty(8, 8, 3, 3)
    assert takes(CASES["same"][0], weight)
    assert not takes(Windows((3, 3), ONE, ONE, (0, 0), (0, 0)), weight)
    assert not takes(CASES["same"][0], weight.double())
    assert not takes(CASES["same"][0], weight[:, :1])


def test_the_operator_derives_its_gradient_from_pixels_apart() -> None:
    x, w = draw(2, 4, 5, 6), draw(6, 4, 3, 3, seed=1)
    how = (3, 3), ONE, ONE, SAME, SAME, False, "none", True
    made = torch.ops.tensorlang.conv(x[:, None], w[None], *[None] * 4, *how)[:, 0]
    want = reference.conv2d(x, w, padding=1)
    torch.testing.assert_close(made, want)
    slopes = torch.randn_like(want)
    torch.testing.assert_close(
        torch.autograd.grad(made, [x, w], slopes), torch.autograd.grad(want, [x, w], slopes)
    )
