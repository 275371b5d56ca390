"""Attention of a step of decoding: queries see a cache of keys, and one key that is not in it yet.

    near[b, h, i]   = sum(Q[b, h, i, e] * new_k[b, h // groups, 0, e], over=e)
    top, total, sum = of the keys of the cache, as in `attention`
    m               = maximum(top, near)
    out             = (sum * exp(top - m) + new_v * exp(near - m))
                      / (total * exp(top - m) + exp(near - m))

To append the key first would write and read the whole cache for it.
"""

from math import e as euler
from math import inf, log2

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.functions import exp2, fma, select
from tensorlang.ir.types import DType
from tensorlang.nn.attention import B, G, M, N, b, d, h, i, j
from tensorlang.nn.attention_schedules import decode
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import max, sum
from tensorlang.schedule import Schedule


def cached_attention(dtype: DType, *, features: int, groups: int, scale: float) -> Pipeline:
    """softmax(Q [K; new K]^T * scale) [V; new V], of [B, heads, M, features] and [B, G, N, ...]

    Args: groups: how many of the heads of Q share one of K and V.
    """
    w, kept = wide(dtype), [B, G, N, features]
    q = Input("q", dtype, [B, G * groups, M, features])
    k, v = Input("k", dtype, kept), Input("v", dtype, kept)
    new_k, new_v = (Input(name, dtype, [B, G, 1, features]) for name in ("new_k", "new_v"))
    names = ("dot", "near", "top", "level", "weight", "total", "out")
    dot, near, top, level, weight, total, out = map(Func, names)
    e, e_new, r0, r1, r2 = (
        RDom(name, n)
        for name, n in (("e", features), ("en", features), ("r0", N), ("r1", N), ("r2", N))
    )
    steep = w(scale * log2(euler))
    dot[b, h, i, j] = sum(w(q[b, h, i, e]) * w(k[b, h // groups, j, e]), over=e)
    near[b, h, i] = sum(w(q[b, h, i, e_new]) * w(new_k[b, h // groups, 0, e_new]), over=e_new)
    top[b, h, i] = max(dot[b, h, i, r0], over=r0, initial=-inf)
    level[b, h, i] = select(top[b, h, i] == -inf, 0, top[b, h, i]) * steep
    shift = level[b, h, i]
    weight[b, h, i, j] = exp2(fma(dot[b, h, i, j], steep, -shift))
    total[b, h, i] = sum(weight[b, h, i, r1], over=r1)
    narrow = dtype if dtype.bits < 32 else w
    summed = sum(w(narrow(weight[b, h, i, r2])) * w(v[b, h // groups, r2, d]), over=r2)
    a, c = top[b, h, i], near[b, h, i]
    highest = select(a < c, c, a)
    old, own = exp2((a - highest) * steep), exp2((c - highest) * steep)
    whole = total[b, h, i] * old + own
    value = summed * old + own * w(new_v[b, h // groups, 0, d])
    out[b, h, i, d] = dtype(value * (1.0 / whole))
    inputs, shape = [q, k, v, new_k, new_v], [B, G * groups, M, features]
    return Pipeline("attention", inputs=inputs, outputs={out: shape})


def decode_cached(pipeline: Pipeline, target: str, *, part: int) -> Schedule:
    """The schedule of decoding; what is new joins where the parts are merged."""
    schedule = decode(pipeline, target, part=part)
    assert schedule is not None
    if target == "triton":
        own = schedule["near"].compute_at("out", "i").vectorize("h")
        own.update(0).vectorize("h").vectorize("en")
    return schedule
