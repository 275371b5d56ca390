"""Depthwise convolutions are sums over taps on a GPU, forward and backward, without matmuls."""

import numpy as np
import pytest
import torch
from torch.nn import functional as reference

from tensorlang import Target, f16, f32
from tensorlang.autodiff import gradients
from tensorlang.ir.types import DType
from tensorlang.nn import functional as ours
from tensorlang.nn.conv import conv
from tensorlang.nn.conv_channels import by_channel
from tensorlang.nn.conv_schedules import conv_tiles
from tensorlang.pipeline import Pipeline
from tests.nn.checks import call, check, draw


def depthwise(dtype: DType, stride: int, *, channels_last: bool, rank: int = 2) -> Pipeline:
    one = (1,) * rank
    return conv(
        *(dtype, dtype, None, None, None, None),
        extent=(3,) * rank,
        stride=(stride,) * rank,
        dilation=one,
        before=one,
        after=one,
        channels_last=channels_last,
        activation="none",
    )


@pytest.mark.parametrize(
    ("rank", "stride", "channels_last"), [(2, 1, True), (2, 2, False), (1, 1, False)]
)
def test_tiles_give_the_values_of_any_schedule(rank: int, stride: int, channels_last: bool) -> None:
    pipeline = depthwise(f32, stride, channels_last=channels_last, rank=rank)
    space = (5, 6)[:rank]
    small = tuple((n - 1) // stride + 1 for n in space)
    rng = np.random.default_rng(0)

    def image(places: tuple[int, ...], channels: int) -> tuple[int, ...]:
        return (2, *places, 3, channels) if channels_last else (2, 3, channels, *places)

    shapes = {"x": image(space, 1), "weight": (3, 2, 1, *(3,) * rank)}
    shapes["grad_out"] = image(small, 2)
    sizes = {f"H{d}": n for d, n in enumerate(space)} | {"B": 2, "G": 3, "C": 1, "O": 2}
    for one in (pipeline, gradients(pipeline, ["x"]), gradients(pipeline, ["weight"])):
        arrays = [
            rng.standard_normal(shapes[a.name]).astype(np.float32) for a in one.algorithm.inputs
        ]
        told = {e.name for a in one.algorithm.inputs for e in a.shape if hasattr(e, "name")}
        rest = {s.name: sizes[s.name] for s in one.algorithm.sizes if s.name not in told}
        kernel = one.compile(by_channel(one, "triton", sizes), "triton")
        found, want = kernel(*arrays, sizes=rest), one(*arrays, sizes=rest)
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_gpu_multiplies_no_matrices_and_reads_lines(channels_last: bool) -> None:
    pipeline = depthwise(f16, 1, channels_last=channels_last)
    sizes = {"B": 32, "G": 64, "C": 1, "O": 1, "H0": 56, "H1": 56}
    for one in (pipeline, gradients(pipeline, ["x", "weight"])):
        kernel = one.compile(conv_tiles(one, "triton", sizes), Target("triton", arch="sm_90"))
        assert "tl.dot" not in kernel.source
        assert kernel.notes == ()
    assert by_channel(pipeline, "triton", {**sizes, "C": 2}) is None
    assert by_channel(pipeline, "c", sizes) is None


@pytest.mark.cc
def test_the_operator_is_torchs() -> None:
    of = call("conv2d", padding=1, groups=6, stride=2)
    check(of(ours), of(reference), draw(2, 6, 7, 8), draw(12, 1, 3, 3, seed=1), draw(12, seed=2))
    x = draw(2, 6, 7, 8).detach().to(memory_format=torch.channels_last)
    torch.testing.assert_close(
        *(of(m)(x, draw(6, 1, 3, 3, seed=1), None) for m in (ours, reference))
    )
