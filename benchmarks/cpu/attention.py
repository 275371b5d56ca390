"""Small attention: 32 queries of a head at a time, their scores kept between the two products."""

from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32

QUERIES, ROWS, COLUMNS, LANES = 32, 4, 16, 8
"""Queries of a task; rows and columns of the register tile of both products."""
h, i, j, d, c = (Var(v) for v in "hijdc")


def cases(place: Place) -> list[Case]:
    return [_case(*((2, 40, 16) if place.dry else (8, 256, 64)))]


def _case(heads: int, length: int, width: int) -> Case:
    return Case(
        name=f"attention {heads}x{length}x{width} f32",
        inputs=lambda at: tuple(at.array(heads, length, width) for _ in range(3)),
        reference=lambda *inputs: attention_of(*(a.astype(np.float64) for a in inputs)),
        contenders=(
            contenders.ours(lambda: attention(width**-0.5)),
            contenders.ours_by_formula(lambda: attention(width**-0.5)),
            contenders.numpy(attention_of),
            contenders.torch(torch_attention),
            contenders.torch(torch_attention, compiled=True),
            contenders.halide(
                lambda hl, by_hand: halide_attention(hl, by_hand, width**-0.5),
                lambda inputs: np.empty_like(inputs[0]),
            ),
        ),
        modes=("wall",),
        tolerance=1e-5,
        flops=4.0 * heads * length * length * width,
        quick=True,
    )


def attention_of(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.transpose(0, 2, 1) * q.dtype.type(q.shape[-1] ** -0.5)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (e @ v) / e.sum(axis=-1, keepdims=True)


def torch_attention(q: Any, k: Any, v: Any) -> Any:
    import torch

    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def attention(scale: float) -> tuple[Pipeline, Schedule]:
    H, S, D = Size("H"), Size("S"), Size("D")
    r, n = RDom("r", D), RDom("n", S)
    Q, K, V = (Input(name, f32, [H, S, D]) for name in "QKV")
    keys, scores, top, e = Func("keys"), Func("scores"), Func("top"), Func("e")
    total, acc, out = Func("total"), Func("acc"), Func("out")
    keys[h, d, j] = K[h, j, d]
    scores[h, i, j] = tl.sum(Q[h, i, r] * keys[h, r, j], over=r)
    top[h, i] = tl.max(scores[h, i, n], over=n)
    e[h, i, j] = tl.exp((scores[h, i, j] - top[h, i]) * scale)
    total[h, i] = tl.sum(e[h, i, n], over=n)
    acc[h, i, c] = tl.sum(e[h, i, n] * V[h, n, c], over=n)
    out[h, i, c] = acc[h, i, c] / total[h, i]
    pipeline = Pipeline("attention", inputs=[Q, K, V], outputs={out: [H, S, D]})

    s = Schedule(pipeline)
    s[out].split(i, "io", "ii", QUERIES).fuse(h, "io", "t").parallel("t")
    s[out].split(c, "co", "ci", LANES).vectorize("ci")
    s[keys].compute_at(out, "t").split(j, "jo", "ji", LANES).vectorize("ji")
    s[e].compute_at(out, "t").split(j, "jo", "ji", LANES).vectorize("ji")
    for product, column, k in ((scores, j, "r"), (acc, c, "n")):
        s[product].compute_at(out, "t").split(column, "o", "l", LANES).vectorize("l")
        update = s[product].update(0)
        update.tile(i, column, "io", "o", "ii", "l", ROWS, COLUMNS).reorder("o", "io", k, "ii", "l")
        update.unroll("ii").vectorize("l")
    for reduction in (top, total):
        s[reduction].compute_at(out, "t").update(0).split("n", "no", "l", LANES)
        partial = s[reduction].update(0).rfactor("l", "u")
        s[partial].compute_at(reduction, i).vectorize("u")
        s[partial].update(0).reorder("no", "u").vectorize("u")
    return pipeline, s


def halide_attention(hl: Any, by_hand: bool, scale: float) -> contenders.HalideFunc:
    Q, K, V = (hl.ImageParam(hl.Float(32), 3, name) for name in "QKV")
    hh, hi, hj, hd, hc = (hl.Var(v) for v in "hijdc")
    r = hl.RDom([(0, Q.dim(0).extent())], "r")
    n1, n2, n3 = (hl.RDom([(0, K.dim(1).extent())], f"n{m}") for m in range(3))
    keys, scores, top, e, total, acc, out = (
        hl.Func(name) for name in ("keys", "scores", "top", "e", "total", "acc", "out")
    )
    keys[hj, hd, hh] = K[hd, hj, hh]
    scores[hj, hi, hh] = hl.f32(0)
    scores[hj, hi, hh] += Q[r, hi, hh] * keys[hj, r, hh]
    top[hi, hh] = hl.f32(-3.4028234663852886e38)
    top[hi, hh] = hl.max(top[hi, hh], scores[n1, hi, hh])
    e[hj, hi, hh] = hl.exp((scores[hj, hi, hh] - top[hi, hh]) * hl.f32(scale))
    total[hi, hh] = hl.f32(0)
    total[hi, hh] += e[n2, hi, hh]
    acc[hc, hi, hh] = hl.f32(0)
    acc[hc, hi, hh] += e[n3, hi, hh] * V[hc, n3, hh]
    out[hc, hi, hh] = acc[hc, hi, hh] / total[hi, hh]
    if not by_hand:
        return out, [Q, K, V]
    io, ii, o, lane, t, u = (hl.Var(v) for v in ("io", "ii", "o", "l", "t", "u"))
    out.split(hi, io, ii, QUERIES).reorder(hc, ii, io, hh).fuse(io, hh, t).parallel(t)
    out.vectorize(hc, LANES)
    keys.compute_at(out, t).vectorize(hj, LANES)
    e.compute_at(out, t).vectorize(hj, LANES)
    for product, column, k in ((scores, hj, r.x), (acc, hc, n3.x)):
        product.compute_at(out, t).vectorize(column, LANES)
        update = product.update(0).tile(column, hi, o, io, lane, ii, COLUMNS, ROWS)
        update.reorder(lane, ii, k, io, o).unroll(ii).vectorize(lane, LANES).unroll(lane)
    for reduction, k in ((top, n1.x), (total, n2.x)):
        ro, rl = hl.RVar("ro"), hl.RVar("rl")
        partial = reduction.compute_at(out, t).update(0).split(k, ro, rl, LANES).rfactor(rl, u)
        partial.compute_at(reduction, hi).vectorize(u)
        partial.update(0).reorder(u, ro).vectorize(u)
    return out, [Q, K, V]
