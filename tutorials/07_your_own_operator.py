# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 7. Your own fused operator, with its gradient, in PyTorch
#
# A layer of a model is often a few lines that no library has as one kernel: a normalisation here,
# a gate there, a residual. In eager PyTorch every line reads and writes the whole tensor. This
# page writes such a layer as **one definition** and makes it an operator of PyTorch in one call:
# it has a gradient, `torch.compile` sees through it, and it runs on the CPU and on a GPU.
#
# It needs PyTorch, and no GPU.

# %%
import torch

from tensorlang import (
    Func,
    Input,
    Param,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Var,
    autoschedule,
    f32,
    rsqrt,
    sigmoid,
    sum,
)
from tensorlang.autodiff import gradients
from tensorlang.torch import custom_op

# %% [markdown]
# ## The layer in eager PyTorch
#
# Bring each row to mean square 1, scale it, gate it by another tensor, and add the input.


# %%
def eager(x, gate, weight, eps=1e-6):
    normal = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight
    return x + normal * torch.sigmoid(gate)


# %% [markdown]
# ## What: the same, as definitions
#
# `M` and `N` are symbols: one operator serves all shapes. `eps` is a number given in each call.

# %%
M, N = Size("M"), Size("N")
i, j, k = Var("i"), Var("j"), RDom("k", N)
x, gate, weight = Input("x", f32, [M, N]), Input("gate", f32, [M, N]), Input("weight", f32, [N])
eps = Param("eps", f32)

squares, scale, out = Func("squares"), Func("scale"), Func("out")
squares[i] = sum(x[i, k] * x[i, k], over=k)
scale[i] = rsqrt(squares[i] / f32(N) + eps)
out[i, j] = x[i, j] + x[i, j] * scale[i] * weight[j] * sigmoid(gate[i, j])

layer = Pipeline("gated_norm", inputs=[x, gate, weight], outputs={out: [M, N]})

# %% [markdown]
# ## An operator of PyTorch
#
# That is all that PyTorch needs. The arguments are the Inputs, then the Params.

# %%
gated_norm = custom_op("tutorial::gated_norm", layer)

torch.manual_seed(0)
a, g = torch.randn(6, 33, requires_grad=True), torch.randn(6, 33, requires_grad=True)
w = torch.randn(33, requires_grad=True)
torch.testing.assert_close(gated_norm(a, g, w, 1e-6), eager(a, g, w))

# %% [markdown]
# ## Its gradient is a Pipeline too
#
# `gradients` runs the chain rule over the definitions. Nobody wrote the backward pass, and it is no
# black box: it prints, and it could be scheduled by hand like any other.

# %%
print(gradients(layer))

# %%
slopes = torch.randn(6, 33)
found = torch.autograd.grad(gated_norm(a, g, w, 1e-6), [a, g, w], slopes)
wanted = torch.autograd.grad(eager(a, g, w), [a, g, w], slopes)
torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-4)

# %% [markdown]
# PyTorch has a test of its own for operators: schema, fake kernels (shapes without values),
# autograd registration, and whether compiled code agrees.

# %%
torch.library.opcheck(gated_norm, (a, g, w, 1e-6))

# %% [markdown]
# `torch.compile` traces a model into a graph; what it cannot see through breaks the graph in two.
# With `fullgraph=True` a break would be an error.


# %%
@torch.compile(fullgraph=True, backend="aot_eager")
def block(a, g, w):
    return torch.relu(gated_norm(a, g, w, 1e-6))


torch.testing.assert_close(block(a, g, w), eager(a, g, w).relu())

# %% [markdown]
# ## How: a schedule of your own
#
# Without a schedule a formula made one. Here is what it chose for C, and one by hand: each row in
# parallel, its sum in 16 lanes, then its elements while they are still in cache. The schedule
# changes no number beyond the order of the sum.

# %%
print(autoschedule(layer, "c"))

# %%
by_hand = Schedule(layer)
by_hand[out].parallel(i).split(j, "jo", "ji", 16).vectorize("ji")
by_hand[squares].compute_at(out, i).update(0).split(k, "ko", "ki", 16).vectorize("ki")
print(by_hand.loop_nest())

scheduled = custom_op("tutorial::gated_norm_by_hand", layer, schedules={"c": by_hand})
torch.testing.assert_close(scheduled(a, g, w, 1e-6), eager(a, g, w))

# %% [markdown]
# ## One operator for every dtype
#
# A Pipeline has fixed dtypes. A *function* from dtypes to a Pipeline makes one operator for all of
# them: each argument is a tensor, and what comes after `*` is a constant that chooses the code. A
# tensor that may be missing is a `DType | None`.

# %%
from tensorlang.ir.types import DType


def norm(x: DType, weight: DType | None, *, gated: bool) -> Pipeline:
    X, W = Input("x", x, [M, N]), Input("weight", x, [N])
    squares, out = Func("squares"), Func("out")
    squares[i] = sum(f32(X[i, k]) * f32(X[i, k]), over=k)
    value = f32(X[i, j]) * rsqrt(squares[i] / f32(N) + 1e-6)
    if weight is not None:
        value = value * f32(W[j])
    out[i, j] = x(value * sigmoid(value) if gated else value)
    return Pipeline("norm", inputs=[X] if weight is None else [X, W], outputs={out: [M, N]})


any_norm = custom_op("tutorial::norm", norm, autocast=torch.bfloat16)

# %%
half = torch.randn(4, 40, dtype=torch.float16)
want = torch.nn.functional.rms_norm(half.float(), (40,), eps=1e-6)
torch.testing.assert_close(any_norm(half, None, False).float(), want, atol=2e-3, rtol=2e-3)
with torch.autocast("cpu", torch.bfloat16):
    assert any_norm(half.float(), None, True).dtype is torch.bfloat16

# %% [markdown]
# ## What there is already
#
# `tensorlang.nn.functional` has the usual functions under torch's names, made in just this way:
# `linear` with an epilogue, `softmax`, `layer_norm`, `rms_norm`, `cross_entropy`, `rope`,
# `dropout`, `scaled_dot_product_attention`. Their definitions are a few lines each, to read and to
# change.

# %%
from tensorlang.nn import functional

scores = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
assert torch.autograd.gradcheck(lambda t: functional.log_softmax(t, -1), (scores,))
