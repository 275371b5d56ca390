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
# # 8. Compiling a transformer block, and reading what it did
#
# `torch.compile(model, backend="tensorlang")` takes a model as it is. PyTorch captures it as graphs
# of ATen operators; here these graphs are divided into **regions**, and each region becomes one
# `Pipeline`: an algorithm, and a schedule that says which of its Funcs get loops of their own.
# This page compiles one block of a LLaMA-like model and reads what was made of it.
#
# It needs PyTorch and a C compiler, and no GPU; on a GPU the same regions become Triton kernels.

# %%
import torch
from torch import nn
from torch.nn import functional

import tensorlang
from tensorlang.torch.compiler import tensorlang_backend

# %% [markdown]
# ## A block, in plain PyTorch


# %%
class Block(nn.Module):
    def __init__(self, width=64, heads=4, hidden=128):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        b, t, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in parts)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(b, t, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


torch.manual_seed(0)
block = Block().eval()
x = torch.randn(2, 16, 64)

# %% [markdown]
# ## One call
#
# With the package installed `backend="tensorlang"` is enough; the function itself may be given too.
# The first call compiles, the next ones run what was compiled.

# %%
fast = torch.compile(block, backend=tensorlang_backend, fullgraph=True)
with torch.no_grad():
    torch.testing.assert_close(fast(x), block(x), rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## What was done
#
# `tensorlang.explain` compiles the model for these arguments and tells: which operators form a
# region, what a region moves (one operator after the other, and as compiled), the schedule of each,
# what a library computes by choice, and what is left to PyTorch, with the reason.

# %%
with torch.no_grad():
    told = tensorlang.explain(block, x)
print(told)

# %% [markdown]
# Read it from the top. Between two matrix products there is one region. The products and the
# attention are the libraries': their kernels are tuned for each machine. PyTorch is left nothing:

# %%
assert told.fallbacks == ()
print(f"{told.before} bytes one by one, {told.after} as compiled")
assert told.after < told.before

# %% [markdown]
# ## One region
#
# A region is an algorithm like any other. This is the first: rms_norm in front of attention. What a
# reduction needs is a Func of its own; what is read once, by one reader, needs none.

# %%
region = told.regions[0]
print(" ".join(region.nodes))
print(tensorlang.Pipeline.of(region.algorithm))

# %% [markdown]
# And this is **fusion**: nothing but its schedule. Each row is computed at once: its mean square,
# then its elements, while the row is in the cache. A Func that the schedule does not name is
# computed where it is read.

# %%
print(region.kernel.schedule)

# %% [markdown]
# The kernel is C that can be read:

# %%
print(region.kernel.source[-1200:])

# %% [markdown]
# ## Training
#
# The gradient is a graph as well: PyTorch decides which values are kept for it and which are
# computed again, and its regions are compiled like those of the forward graph. Its sums over rows
# stand in one region with what they sum.

# %%
trained = tensorlang.explain(Block(), x)
for graph in trained.graphs:
    moved = sum(r.before for r in graph.regions), sum(r.after for r in graph.regions)
    print(f"{graph.role}: {len(graph.regions)} regions, {moved[0]} -> {moved[1]} bytes")

# %% [markdown]
# ## Frozen weights
#
# Where the weights stay as they are, `freeze` takes them for constants: the gate's and the up
# projection's products, which read the same tensor, become one product with joined weights, and
# batch norms disappear into convolutions. What is computed of weights is computed once, and again
# only when one of them is written to. It costs the memory of the joined weights.

# %%
with torch.no_grad():
    frozen = tensorlang.explain(block, x, options={"freeze": True})
print(told.graphs[0].library["mm"], "products;", frozen.graphs[0].library["mm"], "when frozen")

# %% [markdown]
# ## Ahead of time
#
# `warmup` gives the compiled model back once its kernels are there, so that the first request does
# not wait. Kernels are kept on disk by their content: a second process compiles nothing.

# %%
ready = tensorlang.warmup(block, x)
torch.testing.assert_close(ready(x), block(x), rtol=1e-4, atol=1e-5)
