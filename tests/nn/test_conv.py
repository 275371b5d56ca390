"""Convolutions are torch's, forward and backward, and matmuls on a GPU."""

import numpy as np
import pytest
import torch
from torch.nn import functional as reference

from tensorlang import DefinitionError, Target, autoschedule, f16, f32
from tensorlang.autodiff import gradients
from tensorlang.nn import functional as ours
from tensorlang.nn.conv import conv
from tensorlang.nn.conv_schedules import implicit_matmul
from tests.nn.checks import call, check, draw

pytestmark = pytest.mark.cc
CASES = {
    "same, dilated": (("conv1d", (2, 3, 11), (4, 3, 3)), {"padding": "same", "dilation": 2}),
    "groups, strided": (
        ("conv2d", (2, 4, 9, 8), (6, 2, 3, 3)),
        {"stride": 2, "padding": 1, "groups": 2},
    ),
    "a volume, no batch": (("conv3d", (2, 4, 5, 4), (3, 2, 2, 3, 1)), {"padding": (1, 1, 0)}),
    "transposed": (
        ("conv_transpose1d", (2, 4, 5), (4, 3, 3)),
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    "transposed, groups": (
        ("conv_transpose2d", (2, 4, 5, 4), (4, 3, 3, 2)),
        {"stride": (2, 3), "padding": 1, "groups": 2, "dilation": (1, 2)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_convolutions(name):
    (function, *shapes), how = CASES[name]
    features = shapes[1][1 if "transpose" in function else 0]
    features *= how.get("groups", 1) if "transpose" in function else 1
    tensors = draw(*shapes[0]), draw(*shapes[1], seed=1), draw(features, seed=2)
    of = call(function, **how)
    check(of(ours), of(reference), *tensors)


def test_channels_stay_innermost():
    x = draw(2, 4, 6, 5).detach().to(memory_format=torch.channels_last).requires_grad_()
    of = call("conv2d", padding=1)
    tensors = x, draw(3, 4, 3, 3, seed=1), draw(3, seed=2)
    check(of(ours), of(reference), *tensors)
    made = of(ours)(*tensors)
    assert made.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("grad", [False, True])
def test_the_epilogue(grad):
    x, w, b, r = draw(2, 3, 5, 5), draw(4, 3, 3, 3, seed=1), draw(4, seed=2), draw(2, 4, 3, 3)
    mean, var = torch.randn(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    norm = ours.BatchNorm(mean, var, draw(4, seed=3).detach())

    def want(x, w, b, r):
        z = reference.batch_norm(reference.conv2d(x, w, b), mean, var, norm.weight)
        return reference.relu(z) + r

    def found(x, w, b, r):
        return ours.conv2d(x, w, b, norm=norm, activation="relu", residual=r)

    tensors = [t if grad else t.detach() for t in (x, w, b, r)]
    check(found, want, *tensors)


def test_what_does_not_fit_is_refused():
    x, w = draw(1, 3, 5, 5), draw(4, 3, 3, 3)
    for refused in (
        lambda: ours.conv2d(x[:, :2], w),
        lambda: ours.conv2d(x, w, stride=2, padding="same"),
        lambda: ours.conv2d(x[0, 0], w),
    ):
        with pytest.raises(DefinitionError, match="not-supported"):
            refused()


def _conv(dtype, channels_last, stride=1):
    return conv(
        dtype, dtype, dtype, None, None, None,
        extent=(3, 3), stride=(stride,) * 2, dilation=(1, 1), before=(1, 1), after=(1, 1),
        channels_last=channels_last, activation="none",
    )  # fmt: skip


@pytest.mark.parametrize("channels_last", [False, True])
def test_a_gpu_multiplies_matrices_for_every_sum(channels_last):
    pipeline = _conv(f16, channels_last)
    for one in (pipeline, gradients(pipeline, wrt=["x", "weight"])):
        kernel = one.compile(implicit_matmul(one, "triton"), Target("triton", arch="sm_90"))
        sums = sum(not f.is_pure for f in one.algorithm.funcs)
        assert kernel.source.count("tl.dot") == sums
        assert kernel.ptx.count("wgmma.mma_async") >= sums


def test_tiles_give_the_values_of_any_schedule():
    pipeline = _conv(f32, channels_last=True, stride=2)
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 5, 4, 1, 3), "weight": (1, 2, 3, 3, 3), "bias": (1, 2)}
    shapes["grad_out"] = (1, 3, 2, 1, 2)
    for one in (pipeline, gradients(pipeline, wrt=["x"])):
        names = [a.name for a in one.algorithm.inputs]
        arrays = [rng.standard_normal(shapes[n]).astype(np.float32) for n in names]
        sizes = {"H0": 5, "H1": 4}
        sizes = {s.name: sizes[s.name] for s in one.algorithm.sizes if s.name in sizes}
        tiled = one.compile(implicit_matmul(one, "triton"), "triton")(*arrays, sizes=sizes)
        plain = one.compile(autoschedule(one, "c"), "c")(*arrays, sizes=sizes)
        np.testing.assert_allclose(tiled, plain, rtol=1e-5, atol=1e-5)
