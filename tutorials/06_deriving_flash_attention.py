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
# # 6. Deriving FlashAttention
#
# Attention is five definitions. Written down as loops it stores a matrix as large as the square of
# the sequence, twice; the famous kernel stores none of it. Between the two lies **one directive**,
# and a small piece of algebra that the engine does by itself. This page takes the steps one by one
# and looks at what each does to the traffic with memory.
#
# It needs no GPU.

# %%
import builtins

import matplotlib.pyplot as plt
import numpy as np

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Schedule,
    ScheduleError,
    Size,
    Var,
    exp,
    f32,
    max,
    sum,
)

M, N, D = Size("M"), Size("N"), 16
Q, K, V = Input("Q", f32, [M, D]), Input("K", f32, [N, D]), Input("V", f32, [N, D])
i, j, d = Var("i"), Var("j"), Var("d")
e, a, b, c = RDom("e", D), RDom("a", N), RDom("b", N), RDom("c", N)

# %% [markdown]
# ## What: five definitions
#
# Scores, the largest of each row, weights, their sum, and the weighted sum of values.

# %%
S, m, p, l, O = Func("S"), Func("m"), Func("p"), Func("l"), Func("O")
S[i, j] = sum(Q[i, e] * K[j, e], over=e)
m[i] = max(S[i, a], over=a)
p[i, j] = exp(S[i, j] - m[i])
l[i] = sum(p[i, b], over=b)
O[i, d] = sum(p[i, c] * V[c, d], over=c) / l[i]
attention = Pipeline("attention", inputs=[Q, K, V], outputs={O: [M, D]})

rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((n, D)).astype(np.float32) for n in (37, 61, 61))


def expected(scores, values):
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights @ values / weights.sum(1, keepdims=True)


wanted = expected(q.astype(np.float64) @ k.T, v)

# %% [markdown]
# ## Step 1: everything stored
#
# The plain way: compute all scores, then all weights, then the sums.

# %%
stored = Schedule(attention)
stored[S].compute_root()
stored[p].compute_root()
stored["O_sum"].compute_root()
print(stored.loop_nest())
np.testing.assert_allclose(attention.compile(stored, "c")(q, k, v), wanted, rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## Step 2: a tile of queries
#
# Nothing forces all rows to be done at once. Sixteen rows of `O` need sixteen rows of everything
# else: less is stored, but a row of scores is still as long as the sequence, and it is read three
# times: for the max, for the sum, for the product.

# %%
tiled = Schedule(attention)
tiled[O].split(i, "io", "ii", 16)
for func in (S, m, p, l, "O_sum"):
    tiled[func].compute_at(O, "io")
np.testing.assert_allclose(attention.compile(tiled, "c")(q, k, v), wanted, rtol=1e-4, atol=1e-5)
print(tiled.loop_nest())

# %% [markdown]
# ## What stands in the way
#
# We would like one loop over slices of the keys that does all three. But a weight is
# `exp(S - m)`, and `m` is known only when the last key has been seen: the second sum needs the
# *end* of the first. `compute_with`, which puts loops together, says no, and is right.
#
# ## Step 3: roll, and repair
#
# Take the slice anyway, with the largest score *so far*, `m`. What has been summed up to now was
# formed with an older one, `m'`. Both are sums of `exp(S[j] - m) * c[j]`, so one is the other times
#
# $$\rho = \frac{\exp(S_j - m)}{\exp(S_j - m')} = \exp(m' - m),$$
#
# **in which the key `j` no longer stands**: one multiplication repairs the whole sum. That is the
# whole trick of FlashAttention. `rolling_update` finds the group (the max, and the sums that read
# it), and derives each repair from the definitions.

# %%
flash = Schedule(attention)
flash[O].split(i, "io", "ii", 16)
flash["O_sum"].compute_at(O, "io").update(0).split(c, "co", "ci", 8).reorder("co", i, d, "ci")
flash[m].rolling_update("O_sum", "co")
for func in (S, p):
    flash[func].compute_at("O_sum", "co")
print(flash.loop_nest())

# %% [markdown]
# Here are the repairs that were derived, out of the loop program. The first row of each is the sum
# before the slice; where nothing was seen yet (`m` is still `-inf`), there is nothing to repair.

# %%
program = attention.lower(flash)
for line in str(program).splitlines():
    if " = " in line and "m_before" in line and "exp(" in line:
        print(line.strip(), "\n")

# %%
np.testing.assert_allclose(attention.compile(flash, "c")(q, k, v), wanted, rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## Memory before and after
#
# What is kept between the stages, counted from the allocations of each program.

# %%
from tensorlang.calling.evaluate import evaluate
from tensorlang.ir.stmt import Allocate, For, Let, children_of


def kept(schedule, rows, keys):
    """The elements that a program allocates at once, with every name at its first value."""
    most = 0

    def visit(stmt, names, held):
        nonlocal most
        match stmt:
            case Let() if not stmt.value.reads:
                names = {**names, stmt.var: evaluate(stmt.value, names)}
            case For():
                names = {**names, stmt.var: evaluate(stmt.min, names)}
            case Allocate():
                held += np.prod([evaluate(x.extent, names) for x in stmt.buffer.dims], dtype=int)
        most = builtins.max(most, held)
        for child in children_of(stmt):
            visit(child, names, held)

    visit(attention.lower(schedule).body, {"M": rows, "N": keys}, 0)
    return most


lengths = [64, 256, 1024, 4096]
figure, axis = plt.subplots(figsize=(6, 3))
for name, schedule in {"stored": stored, "tiled": tiled, "rolled": flash}.items():
    axis.loglog(lengths, [kept(schedule, n, n) for n in lengths], marker="o", label=name)
axis.set_xlabel("sequence length")
axis.set_ylabel("elements kept")
axis.legend()
assert kept(flash, 4096, 4096) == kept(flash, 64, 64)

# %% [markdown]
# The rolled kernel keeps the same few hundred elements, however long the sequence is.
#
# ## Step 4: masks are part of the definition
#
# A causal mask is a *domain*: query `i` sees keys up to `i`. Slices in which no row of the tile has
# a key are never visited. On tiles the loop is split in two, so that the mask is computed only for
# slices on the diagonal: look for the second loop over `co`.

# %%
ca, cb, cc = (RDom(name, N) for name in ("ca", "cb", "cc"))
ca, cb, cc = (r.where(r <= i) for r in (ca, cb, cc))
m2, p2, l2, O2 = Func("m"), Func("p"), Func("l"), Func("O")
m2[i] = max(S[i, ca], over=ca)
p2[i, j] = exp(S[i, j] - m2[i])
l2[i] = sum(p2[i, cb], over=cb)
O2[i, d] = sum(p2[i, cc] * V[cc, d], over=cc) / l2[i]
causal = Pipeline("causal", inputs=[Q, K, V], outputs={O2: [M, D]})

tiles = Schedule(causal)
tiles[O2].split(i, "io", "ii", 16).reorder("io", "ii", d).gpu_blocks("io")
tiles[O2].vectorize("ii").vectorize(d)
tiles["O_sum"].compute_at(O2, "io").vectorize(i).vectorize(d).update(0).split(
    "cc", "co", "ci", 8
).reorder("co", i, d, "ci").vectorize(i).vectorize(d).vectorize("ci")
tiles["m"].rolling_update("O_sum", "co")
tiles["m"].vectorize(i).update(0).vectorize(i).vectorize("ca")
tiles["l"].vectorize(i).update(0).vectorize(i).vectorize("cb")
for func in ("S", "p"):
    tiles[func].compute_at("O_sum", "co").vectorize(i).vectorize(j)
tiles["S"].update(0).vectorize(i).vectorize(j).vectorize("e")
for line in str(causal.lower(tiles)).splitlines():
    if "for reduction O_sum.co" in line or "O_sum.co.outer =" in line:
        print(line.strip())

scores = q.astype(np.float64) @ k[:37].T
scores[np.arange(37)[:, None] < np.arange(37)] = -np.inf
got = causal.compile(tiles, "c")(q, k[:37], v[:37])
np.testing.assert_allclose(got, expected(scores, v[:37]), rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## Where there is no repair
#
# Not every sum comes apart. In the square of a difference the term at key `j` holds the score and
# the largest one in a way that no factor undoes. The engine does not guess: it shows the term.

# %%
w, odd = Func("w"), Func("odd")
w[i, j] = (S[i, j] - m[i]) * (S[i, j] - m[i])
odd[i] = sum(w[i, c], over=c)
spread = Pipeline("spread", inputs=[Q, K], outputs={odd: [M]})
wrong = Schedule(spread)
wrong[odd].update(0).reorder(c, i)
try:
    wrong[m].rolling_update(odd, c)
    spread.lower(wrong)
except ScheduleError as error:
    print(error)

# %% [markdown]
# ## Next
#
# `tensorlang.nn.attention` is this page grown up: windows, ALiBi, soft caps, sinks, documents,
# paged keys, shared heads, and any score of your own, each a line in a definition, all under one
# schedule.
