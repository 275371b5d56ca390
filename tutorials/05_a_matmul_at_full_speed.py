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
# # 5. From a naive matmul to a persistent kernel, in eight schedules
#
# One definition of a matrix product, and eight schedules for a GPU. The first runs at a few percent
# of what the chip can do, the last beside the vendor's library. Nothing below needs a GPU: kernels
# are compiled for one (an H100 or H200, `sm_90`) and their machine code is looked at. Where a GPU
# is present the notebook measures; elsewhere it shows what an H200 gave.

# %%
import re

import matplotlib.pyplot as plt
import torch

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    Size,
    Target,
    Var,
    autoschedule,
    bf16,
    f32,
    sum,
)

# %% [markdown]
# ## What
#
# Products of 16-bit floats, summed in 32 bits, rounded once at the end: `C` is the sum and `D` what
# leaves the kernel. `f32(A[i, k])` is exact, so nothing is lost before the sum.

# %%
M, N, K = Size("M"), Size("N"), Size("K")
A, B = Input("A", bf16, [M, K]), Input("B", bf16, [K, N])
i, j, k = Var("i"), Var("j"), RDom("k", K)

C, D = Func("C"), Func("D")
C[i, j] = sum(f32(A[i, k]) * f32(B[k, j]), over=k)
D[i, j] = bf16(C[i, j])
matmul = Pipeline("matmul", inputs=[A, B], outputs={D: [M, N]})
print(matmul)

# %% [markdown]
# What follows collects the schedules. `look` compiles one for `sm_90` and counts the instructions
# that matter: `wgmma`, the matrix unit of Hopper, or `mma.sync`, that of older chips; `cp.async`,
# loads that run ahead into shared memory; and `cp.async.bulk.tensor`, whole tiles that a unit of
# their own moves (the Tensor Memory Accelerator, TMA).

# %%
HOPPER = Target("triton", arch="sm_90")
names = "io jo ii ji ko ki group ig in_group tile turn program half jh"
io, jo, ii, ji, ko, ki, group, ig, in_group, tile, turn, program, half, jh = (
    Var(name) for name in names.split()
)
schedules = {}


def look(schedule):
    [binary] = matmul.compile(schedule, target=HOPPER).binaries.values()
    counts = {
        "wgmma": len(re.findall(r"wgmma\.mma_async", binary.ptx)),
        "mma.sync": len(re.findall(r"mma\.sync", binary.ptx)),
        "cp.async": len(re.findall(r"cp\.async\.c[ag]", binary.ptx)),
        "bulk": len(re.findall(r"cp\.async\.bulk\.tensor", binary.ptx)),
    }
    spilled = f"{binary.spilled} bytes spilled" if binary.spilled else "nothing spilled"
    print(counts, f"{binary.registers} registers a thread, {spilled}")
    return counts


# %% [markdown]
# ## 1. A row a program
#
# A GPU runs *programs*, thousands of them, each on many threads: `gpu_blocks` makes a loop's
# iterations programs, `vectorize` makes a loop the lanes of a tile that one program works on. Here
# a program takes 128 elements of one row, and for each `k` reads 128 elements of `B` to use them
# once. That is the fault of it: each number that comes from memory is worth one multiplication.

# %%
rows = Schedule(matmul)
rows[D].split(j, jo, ji, 128).gpu_blocks(i, jo).vectorize(ji)
rows[C].compute_at(D, jo).vectorize(j)
rows[C].update(0).reorder(k, i, j).vectorize(j)
schedules["1 a row a program"] = rows
print(rows.loop_nest())
assert look(rows)["mma.sync"] == 0

# %% [markdown]
# ## 2. A tile a program
#
# A tile of 64 x 64 elements of `C`, kept in registers. For each `k` a column of `A` meets a row of
# `B`: 128 numbers are loaded for 4096 multiplications.

# %%
tiles = Schedule(matmul)
tiles[D].tile(i, j, io, jo, ii, ji, 64, 64).gpu_blocks(io, jo).vectorize(ii).vectorize(ji)
tiles[C].compute_at(D, jo).vectorize(i).vectorize(j)
tiles[C].update(0).reorder(k, i, j).vectorize(i).vectorize(j)
schedules["2 a tile a program"] = tiles

# %% [markdown]
# ## 3. The matrix unit
#
# Split `k` by 32 and put the inner part in lanes too: a step is now a small product of matrices,
# 64 x 32 by 32 x 64, and *that* the matrix unit does in a few instructions. Which sums of products
# are such, tensorlang sees from the definition; no directive says it. Since floats are involved: a
# sum in another order is another sum in the last bits, as with any schedule of a reduction.

# %%
unit = Schedule(matmul)
unit[D].tile(i, j, io, jo, ii, ji, 64, 64).gpu_blocks(io, jo).vectorize(ii).vectorize(ji)
unit[C].compute_at(D, jo).vectorize(i).vectorize(j)
unit[C].update(0).split(k, ko, ki, 32).reorder(ko, i, j, ki)
unit[C].update(0).vectorize(i).vectorize(j).vectorize(ki).pipeline(ko, stages=1)
schedules["3 the matrix unit"] = unit

# %% [markdown]
# ## 4. Loads that run ahead
#
# The matrix unit waits for its operands. `pipeline(ko, stages=3)` lets the loads of the next two
# steps run while it works on this one: `cp.async`, from memory to shared memory, past the
# registers.

# %%
ahead = unit.copy()
ahead[C].update(0).pipeline(ko, stages=3)
schedules["4 loads run ahead"] = ahead
counts = look(ahead)
assert counts["wgmma"] > 0
assert counts["cp.async"] > 0

# %% [markdown]
# ## 5. Large tiles
#
# What a tile of m x n costs is m + n numbers a step, what it gives is m n multiplications. 128 x
# 256, which is as large as the registers of 8 warps hold, needs a quarter of the traffic of 64 x
# 64.


# %%
def large_tiles(schedule, *, stages):
    """C in tiles of 128 x 256 at the loop that `schedule` has for tiles."""
    schedule[C].vectorize(i).vectorize(j)
    step = schedule[C].update(0).split(k, ko, ki, 64).reorder(ko, i, j, ki)
    step.vectorize(i).vectorize(j).vectorize(ki).pipeline(ko, stages=stages)


large = Schedule(matmul)
large[D].tile(i, j, io, jo, ii, ji, 128, 256).gpu_blocks(io, jo).vectorize(ii).vectorize(ji)
large[D].gpu_warps(8)
large[C].compute_at(D, jo)
large_tiles(large, stages=3)
schedules["5 large tiles"] = large

# %% [markdown]
# ## 6. Neighbours in time
#
# About 132 programs run at once. If they are 132 tiles of one row of tiles, they share the rows of
# `A` and nothing of `B`. In groups of 8 rows of tiles, column by column, they are a block of tiles
# and share both, in the cache. This is the *L2 swizzle* of hand-written kernels, and it is a
# `split`, a `reorder` and two `fuse`s. `tail="ragged"`: where 8 does not divide the rows of tiles,
# the last group is shorter, and not partly empty.


# %%
def in_groups(schedule):
    """One loop over the tiles, 8 rows of tiles at a time."""
    stage = schedule[D].tile(i, j, io, jo, ii, ji, 128, 256)
    stage.split(io, group, ig, 8, tail="ragged").reorder(group, jo, ig, ii, ji)
    return stage.fuse(jo, ig, in_group).fuse(group, in_group, tile)


grouped = Schedule(matmul)
in_groups(grouped).gpu_blocks(tile).gpu_warps(8).vectorize(ii).vectorize(ji)
grouped[C].compute_at(D, tile)
large_tiles(grouped, stages=3)
schedules["6 neighbours in time"] = grouped
print(grouped.loop_nest())

# %% [markdown]
# ## 7. Tiles that move by themselves
#
# So far hundreds of threads compute the addresses of a tile, element by element. A *tensor
# descriptor* says once what an array looks like; then one thread asks for the tile at (i, k), and
# a unit of its own fetches it, with zeros beyond the edges. `load_with("descriptor")` is a hint: a
# call whose arrays have rows that are no multiple of 16 bytes runs by pointers, and `kernel.notes`
# says so.

# %%
boxes = grouped.copy()
boxes[A].load_with("descriptor")
boxes[B].load_with("descriptor")
boxes[D].store_with("descriptor")
schedules["7 descriptors"] = boxes

# %% [markdown]
# ## 8. One program a multiprocessor
#
# A program that ends leaves its multiprocessor idle until the next has loaded its first tiles. So
# start 132 programs and let each take every 132nd tile: a split of the loop over tiles. The loads
# of the next tile then begin while this one is written. It is written in two halves, so that what
# passes through shared memory is half as large and a fourth stage of loads fits.

# %%
persistent = Schedule(matmul)
in_groups(persistent).split(tile, turn, program, 132).reorder(program, turn, ii, ji)
persistent[D].gpu_blocks(program).gpu_warps(8).split(ji, half, jh, 128).reorder(half, ii, jh)
persistent[D].unroll(half).vectorize(ii).vectorize(jh).store_with("descriptor")
persistent[C].compute_at(D, turn)
large_tiles(persistent, stages=4)
persistent[A].load_with("descriptor")
persistent[B].load_with("descriptor")
schedules["8 persistent"] = persistent
counts = look(persistent)
assert counts["wgmma"] > 0
assert counts["bulk"] > 0
assert counts["cp.async"] == 0
print(matmul.compile(persistent, target=HOPPER).source)

# %% [markdown]
# ## They all compute the same
#
# With no GPU, Triton's interpreter runs the kernels, at sizes that no tile divides.

# %%
device = "cuda" if torch.cuda.is_available() else "cpu"
a, b = (torch.randn(*shape, device=device).bfloat16() for shape in ((70, 96), (96, 264)))
exact = a.double() @ b.double()
for name, schedule in schedules.items():
    found = matmul.compile(schedule, target="triton")(a, b)
    error = ((found.double() - exact).abs().max() / exact.abs().max()).item()
    print(f"{name}: largest error {error:.1e} of the largest element")
    assert error < 2**-8

# %% [markdown]
# ## How fast
#
# TFLOP/s at 4096 x 4096 x 4096. Measured on an H200 (torch 2.11, Triton 3.6) by this notebook; the
# vendor's library is cuBLAS, by way of `torch.mm`.

# %%
MEASURED = {
    "1 a row a program": 9.6,
    "2 a tile a program": 13.0,
    "3 the matrix unit": 216.2,
    "4 loads run ahead": 309.9,
    "5 large tiles": 705.4,
    "6 neighbours in time": 720.9,
    "7 descriptors": 753.4,
    "8 persistent": 773.7,
    "cuBLAS": 777.7,
}


def tflops(call, n):
    """The best of some calls; the GPU is kept busy until a call has reached it."""
    call()
    best = float("inf")
    for _ in range(10):
        torch.cuda.synchronize()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(500_000)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, start.elapsed_time(end))
    return 2 * n**3 / best / 1e9


if device == "cuda":
    n = 4096
    a, b = (torch.randn(n, n, device=device).bfloat16() for _ in range(2))
    MEASURED = {}
    for name, schedule in schedules.items():
        kernel = matmul.compile(schedule, target="triton")
        MEASURED[name] = round(tflops(lambda kernel=kernel: kernel(a, b), n), 1)
    MEASURED["cuBLAS"] = round(tflops(lambda: torch.mm(a, b), n), 1)
    print(MEASURED)

figure, axes = plt.subplots(figsize=(8, 4))
axes.barh(list(MEASURED), list(MEASURED.values()))
axes.invert_yaxis()
axes.set_xlabel("TFLOP/s")
axes.set_title("one matmul of 4096 x 4096 x 4096 in bf16")
figure.tight_layout()

# %% [markdown]
# `autoschedule(matmul, "triton")` gives the last of them by itself, and prints it:

# %%
print(autoschedule(matmul, HOPPER, {"M": 4096, "N": 4096, "K": 4096}))

# %% [markdown]
# ## To try
#
# - Compile `persistent` with `stages=5`. What does the compiler say, and why?
# - Which of the eight are slower on a matmul of 512 x 512 x 512, and which not? How many tiles are
#   there, and how many programs run at once?
# - Add a bias and a relu to `D`. Does any schedule have to change?
