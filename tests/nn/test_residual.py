"""A residual goes into a norm or softmax in its kernel, and its gradient is that of the input."""

import numpy as np
import pytest
import torch
from torch.library import opcheck
from torch.nn import functional as reference

from tensorlang import Target, bf16, f32
from tensorlang.nn import functional as ours
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.functions.normalization import group_norm_op, layer_norm_op, rms_norm_op
from tensorlang.nn.norm_gradients import norm_gradients
from tensorlang.nn.normalization import layer_norm, rms_norm
from tests.nn.checks import draw

pytestmark = pytest.mark.cc
MEAN, VAR = torch.randn(6, dtype=torch.float64), torch.rand(6, dtype=torch.float64)
# How each is called, of x [4, 6, 5], weights, and what goes on.
CALLS = {
    "layer_norm": ((5,), lambda m, h, w, b, **r: m.layer_norm(h, (5,), w, b, **r)),
    "rms_norm": ((5,), lambda m, h, w, b, **r: m.rms_norm(h, (5,), w, 1e-5, **r)),
    "group_norm": ((6,), lambda m, h, w, b, **r: m.group_norm(h, 3, w, b, **r)),
    "batch_norm": ((6,), lambda m, h, w, b, **r: m.batch_norm(h, None, None, w, b, True, **r)),
    "batch_norm, past": ((6,), lambda m, h, w, b, **r: m.batch_norm(h, MEAN, VAR, w, b, **r)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("used", ["norm", "both"])
def test_a_norm_of_a_sum_gives_the_sum_too(name, used):
    shape, call = CALLS[name]
    x, r = draw(4, 6, 5), draw(6, 5, seed=1)
    tensors = [x, r, draw(*shape, seed=2), draw(*shape, seed=3)]
    made, total = call(ours, x, *tensors[2:], residual=r)
    h = x + r
    want = call(reference, h, *tensors[2:])
    torch.testing.assert_close((made, total), (want, h))
    slopes = draw(4, 6, 5, seed=4).detach()
    found, exact = (
        (y * slopes).sum() + (z.square().sum() if used == "both" else 0)
        for y, z in ((made, total), (want, h))
    )
    wrt = tensors[:3] if name == "rms_norm" else tensors
    torch.testing.assert_close(torch.autograd.grad(found, wrt), torch.autograd.grad(exact, wrt))


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_a_sum(name):
    x, r = draw(3, 4, 5), draw(4, 1, seed=1)
    for dim in (0, 2):
        found = getattr(ours, name)(x, dim, residual=r)
        want = getattr(reference, name)(x + r, dim)
        torch.testing.assert_close(found, want)
        pair = [torch.autograd.grad((y**2).sum(), [x, r]) for y in (found, want)]
        torch.testing.assert_close(*pair)


def test_the_gradients_of_a_sum_are_one_tensor():
    x, r, w = draw(3, 5), draw(3, 5, seed=1), draw(5, seed=2)
    out, total, _ = rms_norm_op(x, w, r, True, "", 1e-5)
    of_x, of_r, _ = torch.autograd.grad((out * total).sum(), [x, r, w])
    assert of_x.data_ptr() == of_r.data_ptr()


def test_opcheck_passes_with_a_list_of_outputs():
    x, w, r = (draw(*s, dtype=torch.float32, seed=k) for k, s in enumerate(((3, 5), (5,), (3, 5))))
    for kept in (False, True):
        opcheck(layer_norm_op, (x, w, w, r, kept, "", 1e-5))
    x, w = draw(2, 2, 3, 4, dtype=torch.float32), draw(2, 3, dtype=torch.float32)
    opcheck(group_norm_op, (x, w, None, x.detach(), "", 1e-5))


def test_compiled_code_has_no_graph_break():
    x, r, w = (draw(4, 6, dtype=torch.float32, seed=k) for k in range(3))

    def layer(module_of):
        return lambda x, r: sum(module_of(x, r))

    mine = layer(lambda x, r: ours.rms_norm(x, (6,), w[0], 1e-5, residual=r))
    want = layer(lambda x, r: (reference.rms_norm(x + r, (6,), w[0], 1e-5), x + r))(x, r)
    found = torch.compile(mine, backend="aot_eager", fullgraph=True)(x, r)
    torch.testing.assert_close(found, want)
    grads = [torch.autograd.grad(y.sum(), [x, r], retain_graph=True) for y in (found, want)]
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_a_gpu_reads_both_once_in_one_kernel(make):
    weights = [bf16] * (2 if make is layer_norm else 1)
    forward = make(bf16, *weights, bf16, kept=True)
    schedule = norm_rows(forward, "triton", {"M": 4096, "N": 4096})
    source = forward.compile(schedule, Target("triton", arch="sm_90")).source
    assert source.count("@triton.jit") == 1
    assert source.count("tl.load(") == 2 + len(weights)
    back = norm_gradients(forward, ["x", "weight"])
    schedule = norm_rows(back, "triton", {"M": 4096, "N": 4096})
    source = back.compile(schedule, Target("triton", arch="sm_90")).source
    rows = source.split("@triton.jit")[1]
    # The sum, weight, what was kept, and both slopes.
    assert rows.count("tl.load(") == 2 + len(weights) + 2


@pytest.mark.parametrize("make", [rms_norm, layer_norm])
def test_kernels_of_a_gpu_give_the_values_of_any_schedule(make):
    weights = [f32] * (2 if make is layer_norm else 1)
    forward = make(f32, *weights, f32, kept=True)
    rng = np.random.default_rng(0)
    x, r, g, h = (rng.standard_normal((5, 37)).astype(np.float32) for _ in range(4))
    w = [rng.standard_normal(37).astype(np.float32) for _ in weights]
    kernel = forward.compile(norm_rows(forward, "triton", {"M": 5, "N": 37}), "triton")
    made = forward(x, *w, r, eps=1e-5)
    for own, other in zip(kernel(x, *w, r, eps=1e-5), made, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-5)
    back = norm_gradients(forward, ["x", "weight"])
    arrays = [w[0], *made[1:], g, h]
    kernel = back.compile(norm_rows(back, "triton", {"M": 5, "N": 37}), "triton")
    for own, other in zip(kernel(*arrays), back(*arrays), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-4)


def test_a_batch_is_mapped_over():
    x, r, w = draw(3, 4, 6).detach(), draw(4, 6, seed=1).detach(), draw(6, seed=2).detach()
    found = torch.vmap(lambda x: ours.rms_norm(x, (6,), w, 1e-5, residual=r))(x)
    torch.testing.assert_close(found, (reference.rms_norm(x + r, (6,), w, 1e-5), x + r))
