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
# # 2. One matmul, six schedules
#
# A matrix product is three loops around one line. How fast the three loops are depends on their
# order, their tiles, and on what is kept where: on most machines the best way is tens of times
# faster than the first that comes to mind. Here the line is written once, and the loops six times.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32, sum
from tensorlang.target import available

# %% [markdown]
# ## What
#
# `RDom("k", K)` is a *reduction domain*: a loop variable that is summed over, in order.

# %%
M, N, K = Size("M"), Size("N"), Size("K")
A, B = Input("A", f32, [M, K]), Input("B", f32, [K, N])
i, j, k = Var("i"), Var("j"), RDom("k", K)

C = Func("C")
C[i, j] = sum(A[i, k] * B[k, j], over=k)

matmul = Pipeline("matmul", inputs=[A, B], outputs={C: [M, N]})
print(matmul)

# %% [markdown]
# A sum is two definitions: first `C[i, j] = 0` everywhere, the *pure* definition, then `C[i, j] +=
# ...` for every `k`, an *update*. Each has loops of its own, so each is scheduled on its own:
# `s[C]` is the first, `s[C].update(0)` the second. All the work is in the second.
#
# The sizes are symbolic: one kernel serves them all. Odd sizes, on purpose: nothing below divides
# them.

# %%
target = "c" if available()["c"].works else "interpreter"
m, n, p = (517, 389, 451) if target == "c" else (9, 7, 5)
random = np.random.default_rng(0)
a = random.standard_normal((m, p), dtype=np.float32)
b = random.standard_normal((p, n), dtype=np.float32)
exact = a.astype(np.float64) @ b.astype(np.float64)

# %% [markdown]
# Reordering a sum of floats changes its last bits. That is the one thing that a schedule may do to
# the numbers, and it has a bound: the error of a sum of `K` products is at most about `K` roundings
# of the sum of their absolute values. Each schedule is checked against it.

# %%
eps = np.finfo(np.float32).eps
bound = p * eps * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
results = {}


def measure(name, schedule):
    """Compile, check against the bound, and note the best time of a few calls."""
    kernel = matmul.compile(schedule, target=target)
    assert (np.abs(kernel(a, b) - exact) <= bound).all(), name
    times = []
    for _ in range(5):
        start = time.perf_counter()
        kernel(a, b)
        times.append(time.perf_counter() - start)
    results[name] = min(times)
    gflops = 2e-9 * m * n * p / min(times)
    print(f"{name}: {1e3 * min(times):.2f} ms, {gflops:.2f} GFLOP/s")


# %% [markdown]
# ## 1. As on paper
#
# With no directive, `k` is the innermost loop: for each element of `C`, a row of `A` against a
# column of `B`. Going down a column of `B` jumps a whole row in memory at each step, and no two
# steps share a cache line.

# %%
paper = Schedule(matmul)
print(paper.loop_nest())
measure("1 as on paper", paper)

# %% [markdown]
# ## 2. Another order
#
# Put `j` innermost. Now the inner loop goes along a row of `B` and a row of `C`, both contiguous in
# memory, while `A[i, k]` stays the same. `reorder` names the loops outermost first, as they print.
#
# May the loops of a reduction be exchanged? `k` moves outside `j`, and for each `C[i, j]` the terms
# still come in the order of `k`: even the last bits are the same.

# %%
reordered = Schedule(matmul)
reordered[C].update(0).reorder(i, k, j)
print(reordered.loop_nest())
measure("2 reordered", reordered)

# %% [markdown]
# ## 3. Vectors
#
# The inner loop does the same thing to neighbours in memory, which is what the vector unit of a
# processor is for. Split off a loop of 16 and `vectorize` it.

# %%
io, jo, ii, ji, ko, ki = (Var(n) for n in ("io", "jo", "ii", "ji", "ko", "ki"))

vectors = Schedule(matmul)
vectors[C].split(j, jo, ji, 16).vectorize(ji)
vectors[C].update(0).split(j, jo, ji, 16).reorder(i, k, jo, ji).vectorize(ji)
print(vectors.loop_nest())
measure("3 vectors", vectors)

# %% [markdown]
# ## 4. Tiles
#
# Each step of the inner loop reads an element of `C`, adds to it and writes it back. The sum should
# stay in registers instead. So take a small tile of `C`, 6 rows by 16 columns, and run all of `k`
# over it before going on: the tile's loops go *inside* `k`.
#
# Why 6 by 16? Many processors have 16 vector registers of 8 floats. The tile takes 12 of them, a
# piece of a row of `B` takes 2, and an element of `A`, repeated, takes 1.
#
# `tile` is two splits and a reorder.

# %%
tiles = Schedule(matmul)
tiles[C].split(j, jo, ji, 16).vectorize(ji)
tiles[C].update(0).tile(i, j, io, jo, ii, ji, 6, 16).reorder(io, jo, k, ii, ji)
tiles[C].update(0).vectorize(ii).vectorize(ji)
print(tiles.loop_nest())
measure("4 tiles", tiles)

# %% [markdown]
# ## 5. A place of its own
#
# `C` is the output, so every step still goes to the caller's array. Give the sum a place of its
# own: a second Func, `out`, that copies `C`. That changes the *what* a little (there is one more
# definition, which copies), and now `C` can be *placed*: `compute_at(out, jo)` computes just the
# tile of `C` that a tile of `out` needs, in storage of just that size.
#
# This is how a kernel is fused with what comes after it. Here that is a copy; it could be a bias
# and a relu.

# %%
out = Func("out")
product = Func("product")
product[i, j] = sum(A[i, k] * B[k, j], over=k)
out[i, j] = product[i, j]
matmul = Pipeline("matmul", inputs=[A, B], outputs={out: [M, N]})

placed = Schedule(matmul)
placed[out].tile(i, j, io, jo, ii, ji, 6, 16).vectorize(ii).vectorize(ji)
placed[product].compute_at(out, jo).vectorize(i).vectorize(j)
placed[product].update(0).reorder(k, i, j).vectorize(i).vectorize(j)
print(placed.loop_nest())
measure("5 placed", placed)

# %% [markdown]
# ## 6. Cores
#
# The rows of tiles do not depend on each other: run them in `parallel`.

# %%
cores = placed.copy()
cores[out].parallel(io)
print(cores.loop_nest())
measure("6 cores", cores)

# %% [markdown]
# ## Side by side

# %%
figure, axes = plt.subplots(figsize=(8, 3.5))
axes.barh(list(results), [1e3 * seconds for seconds in results.values()])
axes.invert_yaxis()
axes.set_xlabel("milliseconds a call (logarithmic)")
axes.set_xscale("log")
axes.set_title(f"one matmul, {m} x {n} x {p} in f32, target {target!r}")
figure.tight_layout()

# %% [markdown]
# ## And on a GPU?
#
# The same directives. A tile of vectorized loops is a tile of the GPU, `gpu_blocks` gives each to a
# block, and a tile of `k` makes each step a small product of matrices, which the matrix unit does
# in one go. Here is the Triton kernel for it. Without a GPU it still runs, in Triton's interpreter:
# slowly, but the numbers are the ones that a GPU would give.

# %%
t = Var("t")
blocks = Schedule(matmul)
blocks[out].tile(i, j, io, jo, ii, ji, 64, 64).fuse(io, jo, t).gpu_blocks(t)
blocks[out].vectorize(ii).vectorize(ji)
blocks[product].compute_at(out, t).vectorize(i).vectorize(j)
blocks[product].update(0).split(k, ko, ki, 32).reorder(ko, i, j, ki)
blocks[product].update(0).vectorize(i).vectorize(j).vectorize(ki)
print(blocks.loop_nest())

# %%
if available()["triton"].works:
    kernel = matmul.compile(blocks, target="triton")
    small_a, small_b = a[:70, :90], b[:90, :80]
    assert np.allclose(kernel(small_a, small_b), small_a @ small_b, atol=1e-4)
    print(kernel.source)

# %% [markdown]
# ## To try
#
# - Change the 6 x 16 of schedule 5. Where does it stop getting faster, and why there?
# - Add a bias to `out`. Which schedules have to change?
# - Put `product` at `io` in place of `jo`. How much of it is stored now?
#
# Next: [when is a schedule legal?](03_when_is_a_schedule_legal.py).
