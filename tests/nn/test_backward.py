"""The gradient of a norm is one pass over its rows on a GPU, with torch's values."""

import numpy as np
import pytest
import torch
from torch.nn import functional as reference

from tensorlang import Target, bf16, f32
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.functions import normalization
from tensorlang.nn.norm_gradients import norm_gradients
from tensorlang.nn.normalization import layer_norm, rms_norm
from tensorlang.nn.softmax import softmax
from tensorlang.nn.softmax_backward import softmax_gradients, softmax_rows


def norm(name):
    if name == "rms_norm":
        return norm_gradients(rms_norm(f32, f32), ["x", "weight"])
    return norm_gradients(layer_norm(f32, f32, f32), ["x", "weight", "bias"])


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
def test_partial_sums_stand_beside_the_rows(name):
    one = norm(name)
    schedule = norm_rows(one, "triton", {"M": 1100, "N": 37})
    rng = np.random.default_rng(0)
    x, w, b, slopes = (
        rng.standard_normal(s).astype(np.float32) for s in ((21, 37), 37, 37, (21, 37))
    )
    given = {"x": x, "weight": w, "grad_out": slopes}
    arrays = [given[a.name] for a in one.algorithm.inputs]
    found = one.compile(schedule, "triton")(*arrays, eps=1e-5)
    tensors = [torch.tensor(t, requires_grad=True) for t in (x, w, b)][: len(found)]
    if name == "rms_norm":
        made = reference.rms_norm(tensors[0], (37,), tensors[1], 1e-5)
    else:
        made = reference.layer_norm(tensors[0], (37,), *tensors[1:])
    want = torch.autograd.grad(made, tensors, torch.tensor(slopes))
    for own, other in zip(found, want, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", [1024, 4096])
def test_a_gpu_runs_the_rows_and_their_partial_sums_in_one_kernel(length):
    one = norm_gradients(layer_norm(bf16, bf16, bf16), ["x", "weight", "bias"])
    schedule = norm_rows(one, "triton", {"M": 4096, "N": length})
    kernel = one.compile(schedule, Target("triton", arch="sm_90"))
    # The rows; then the sums of weight and bias.  No row is read twice.
    assert kernel.source.count("@triton.jit") == 2
    rows = kernel.source.partition("@triton.jit")[2].partition("@triton.jit")[0]
    assert rows.count("tl.load(") == len(("x", "weight", "grad_out"))
    assert norm_rows(one, "triton", {"M": 1, "N": 1 << 20}) is None


@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("length", [37, 1 << 16])
def test_the_gradient_of_softmax_is_made_of_its_result(logarithm, length):
    one = softmax_gradients(softmax(f32, logarithm=logarithm, out_dtype=""), ["x"])
    assert [a.name for a in one.algorithm.inputs] == ["out", "grad_out"]
    kernel = one.compile(softmax_rows(one, "triton", {"M": 3, "N": length}), "triton")
    x = torch.randn(3, 37, generator=torch.Generator().manual_seed(0), requires_grad=True)
    out = (reference.log_softmax if logarithm else reference.softmax)(x, -1)
    slopes = torch.randn(3, 37, generator=torch.Generator().manual_seed(1))
    (want,) = torch.autograd.grad(out, [x], slopes)
    torch.testing.assert_close(kernel(out.detach(), slopes), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm"])
@pytest.mark.parametrize("wrt", ["x", "weight", "all"])
def test_a_norm_that_keeps_its_statistics_has_the_same_gradients(name, wrt):
    make = torch.Generator().manual_seed(0)
    x, w, b = (torch.randn(s, generator=make) for s in ((5, 33), 33, 33))
    given = [x, w, b][: 3 if name == "layer_norm" else 2]
    for tensor, label in zip(given, ("x", "weight", "bias"), strict=False):
        tensor.requires_grad_(wrt in (label, "all"))
    wanted = [t for t in given if t.requires_grad]
    op = getattr(normalization, f"{name}_op")
    made = op(*given, None, True, "", 1e-5)
    assert [t.requires_grad for t in made] == [True] + [False] * (len(made) - 1)
    want = getattr(reference, name)(x, (33,), *given[1:], eps=1e-5)
    torch.testing.assert_close(made[0], want)
    found = torch.autograd.grad(made[0].square().sum(), wanted)
    for own, other in zip(found, torch.autograd.grad(want.square().sum(), wanted), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_what_a_norm_keeps_comes_from_the_kernel_that_makes_it(make):
    forward = make(*[f32] * (3 if make is layer_norm else 2), kept=True)
    schedule = norm_rows(forward, "triton", {"M": 4, "N": 37})
    kernel = forward.compile(schedule, "triton")
    assert kernel.source.count("@triton.jit") == 1
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((4, 37), 37, 37)]
    arrays = arrays[: len(forward.algorithm.inputs)]
    for own, other in zip(kernel(*arrays, eps=1e-5), forward(*arrays, eps=1e-5), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-6)
    back = norm_gradients(forward, ["x", "weight"])
    names = [a.name for a in back.algorithm.inputs]
    assert names == ["x", "weight", *(n for n, _ in forward.algorithm.outputs[1:]), "grad_out"]


def test_long_rows_leave_their_sums_to_a_kernel_that_reads_them_once_more():
    forward = layer_norm(bf16, bf16, bf16, kept=True)
    one = norm_gradients(forward, ["x", "weight", "bias"])
    schedule = norm_rows(one, "triton", {"M": 64, "N": 16384})
    source = one.compile(schedule, Target("triton", arch="sm_90")).source
    reads = [kernel.count("tl.load(") for kernel in source.split("@triton.jit")[1:]]
    # x, weight, grad_out and the statistics; the same without weight; partial sums.
    assert reads == [5, 4, 2]
    x, w, slopes = torch.randn(5, 40).bfloat16(), torch.randn(40).bfloat16(), torch.ones(5, 40)
    _, mean, scale = forward(x, w, w, eps=1e-5)
    arrays = x, w, mean, scale, slopes.bfloat16()
    found = one.compile(schedule, "triton")(*arrays)
    for own, other in zip(found, one(*arrays), strict=True):
        torch.testing.assert_close(own, other)
