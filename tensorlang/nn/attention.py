"""Attention as definitions: scores, their largest, weights, and two sums.

    dot[b, h, i, j]    = sum(Q[b, h, i, e] * K[b, h // groups, j, e], over=e)
    score              = dot * scale, capped, biased, masked
    top[b, h, i]       = max(score, over=j)
    weight[b, h, i, j] = exp(score - top)
    total[b, h, i]     = sum(weight, over=j)
    out[b, h, i, d]    = sum(weight * V[b, h // groups, j, d], over=j) / total
    lse[b, h, i]       = top + log(total)                                what a gradient keeps

A mask that is a range of keys for each query (causal, window, length) is a predicate of the domain:
what it excludes is never computed.  Any other mask is a score of -inf.  A row without keys is 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from math import e as euler
from math import inf, log2
from typing import Any

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import clamp, exp2, fma, select, tanh
from tensorlang.ir.functions import log2 as log2_of
from tensorlang.ir.types import DType, bool_, index
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import max, sum

B, G, M, N, P, T = (Size(name) for name in ("B", "G", "M", "N", "P", "T"))
b, h, i, j, d = (Var(name) for name in ("b", "h", "i", "j", "d"))


@dataclass(frozen=True, slots=True)
class Place:
    """Where a score stands: the numbers of batch, head, query and key; and the arrays."""

    batch: Expr
    head: Expr
    query: Expr
    key: Expr
    q: Input
    k: Input


# A score from its value and its place.
Score = Callable[[Expr, Place], Expr]


@dataclass(slots=True)
class _Arguments:
    """The Inputs of the Pipeline, in the order in which they are asked for."""

    inputs: list[Input] = field(default_factory=list[Input])

    def add(self, name: str, dtype: DType | None, shape: Sequence[Operand]) -> Input | None:
        if dtype is None:
            return None
        self.inputs.append(Input(name, dtype, shape))
        return self.inputs[-1]


def attention(
    q: DType,
    k: DType,
    v: DType,
    bias: DType | None = None,
    slopes: DType | None = None,
    documents: DType | None = None,
    first: DType | None = None,
    last: DType | None = None,
    sinks: DType | None = None,
    table: DType | None = None,
    key_scales: DType | None = None,
    value_scales: DType | None = None,
    *,
    features: int,
    values: int,
    groups: int = 1,
    scale: float = 1.0,
    causal: str = "",
    left: int = -1,
    right: int = -1,
    softcap: float = 0.0,
    page: int = 0,
    score: Score | None = None,
    inputs: Sequence[Input] = (),
    kept: bool = False,
) -> Pipeline:
    """softmax(Q K^T * scale, under masks) V, of [B, heads, M, features] and [B, G, N, ...]

    Args:
        bias: [B, heads, M, N], added to scores; where it is bool, those stay where it is true.
        slopes: [heads], ALiBi: slope * (key - query) is added.
        documents: [B, N]; a query sees the keys of its own document, M being N.
        first, last: [B, M]; query i sees keys first[i], ..., last[i] - 1: lengths, and sequences
            packed into one.
        sinks: [heads], a score that takes weight and gives no value.
        table: [B, T]; keys lie in pages, K and V are [P, G, page, ...], and page t of batch b is
            table[b, t].
        key_scales, value_scales: [G]; what the keys and values of a head are multiplied by, such as
            those of 8 bits, which products take in the dtype of Q.
        groups: how many of the heads of Q share one of K and V.
        causal: "top_left": key <= query; "bottom_right": the last query sees the last key; "".
        left, right: how many keys before and after a query it sees; -1: all.
        softcap: c * tanh(score / c), where not 0.
        score: any other change of a score; it may read `inputs`, and hold a reduction.
        kept: whether `lse` is an output too, of which the gradient forms the weights again.
    """
    arguments, w = _Arguments(), wide(q)
    keys: Operand = N if table is None else T * page
    stored = [B, G, N] if table is None else [P, G, page]
    Q = Input("q", q, [B, G * groups, M, features])
    K, V = Input("k", k, [*stored, features]), Input("v", v, [*stored, values])
    arguments.inputs += [Q, K, V]
    place = Place(b, h, i, j, Q, K)
    own = None if score is None else partial(_applied, score, place)
    extra = (bias, slopes, documents)
    change = _score(arguments, w, extra, keys, groups, softcap, own)
    starts, ends = arguments.add("first", first, [B, M]), arguments.add("last", last, [B, M])
    sink = arguments.add("sinks", sinks, [G * groups])
    pages = arguments.add("table", table, [B, T])
    key_scale, value_scale = (
        arguments.add(name, dtype, [G])
        for name, dtype in (("key_scales", key_scales), ("value_scales", value_scales))
    )

    def at(array: Input, key: Operand, column: Operand) -> Expr:
        """An element of K or V."""
        if pages is None:
            return array[b, h // groups, key, column]
        found = clamp(index(pages[b, key // page]), 0, P - 1)
        return array[found, h // groups, key % page, column]

    def over(name: str) -> RDom:
        return _keys(RDom(name, keys), causal, left, right, keys, starts, ends)

    names = ["dot", "score", "top", "level", "weight", "total", "out"]
    dot, scores, top, level, weight, total, out = map(Func, names)
    e, r0, r1, r2 = RDom("e", features), over("r0"), over("r1"), over("r2")
    near_k, near_v = (q if dtype.bits < q.bits else dtype for dtype in (k, v))
    dot[b, h, i, j] = sum(w(Q[b, h, i, e]) * w(near_k(at(K, j, e))), over=e)
    scaled = dot[b, h, i, j] * scale
    if key_scale is not None:
        scaled = scaled * w(key_scale[h // groups])
    is_changed = change is not None or key_scale is not None
    if is_changed:
        scores[b, h, i, j] = scaled if change is None else change(scaled)
    # A score that is only scaled keeps its scale for the exponent, where it costs nothing.
    value, unit = (scores, 1.0) if is_changed else (dot, scale)
    steep = unit * log2(euler)
    top[b, h, i] = max(value[b, h, i, r0], over=r0, initial=-inf)
    highest = top[b, h, i] if sink is None else _larger(top[b, h, i], w(sink[h]) / unit)
    level[b, h, i] = select(highest == -inf, 0, highest) * steep
    shift = level[b, h, i]
    weight[b, h, i, j] = exp2(fma(value[b, h, i, j], w(steep), -shift))
    total[b, h, i] = sum(weight[b, h, i, r1], over=r1)
    narrow = near_v if near_v.bits < 32 else w
    summed = sum(w(narrow(weight[b, h, i, r2])) * w(near_v(at(V, r2, d))), over=r2)
    whole = total[b, h, i]
    if sink is not None:
        whole_ = Func("whole")
        whole_[b, h, i] = whole + exp2(w(sink[h]) * log2(euler) - shift)
        whole = whole_[b, h, i]
    mean = summed * (1.0 / whole)
    if value_scale is not None:
        mean = mean * w(value_scale[h // groups])
    out[b, h, i, d] = q(select(total[b, h, i] == 0, 0, mean))
    outputs: dict[Func, list[Operand]] = {out: [B, G * groups, M, values]}
    if kept:
        lse = Func("lse")
        lse[b, h, i] = select(whole == 0, inf, shift + log2_of(whole))
        outputs[lse] = [B, G * groups, M]
    return Pipeline("attention", inputs=[*arguments.inputs, *inputs], outputs=outputs)


def masked_attention(
    q: DType,
    k: DType,
    v: DType,
    bias: DType | None,
    slopes: DType | None,
    documents: DType | None,
    first: DType | None,
    last: DType | None,
    sinks: DType | None,
    table: DType | None,
    key_scales: DType | None,
    value_scales: DType | None,
    *,
    features: int,
    values: int,
    groups: int,
    scale: float,
    causal: str,
    left: int,
    right: int,
    softcap: float,
    page: int,
) -> Pipeline:
    """`attention` without definitions of the caller's: what an operator of torch is made of."""
    extra = (bias, slopes, documents, first, last, sinks, table, key_scales, value_scales)
    return attention(
        q,
        k,
        v,
        *extra,
        features=features,
        values=values,
        groups=groups,
        scale=scale,
        causal=causal,
        left=left,
        right=right,
        softcap=softcap,
        page=page,
    )


@wraps(masked_attention)
def kept_attention(*arrays: DType | None, **options: Any) -> Pipeline:
    """`masked_attention` with `lse`."""
    q, k, v, *extra = arrays
    assert q is not None
    assert k is not None
    assert v is not None
    return attention(q, k, v, *extra, **options, kept=True)


def _applied(score: Score, place: Place, value: Expr) -> Expr:
    return score(value, place)


def _larger(a: Expr, b: Expr) -> Expr:
    return select(a < b, b, a)


def _keys(
    r: RDom,
    causal: str,
    left: int,
    right: int,
    keys: Operand,
    first: Input | None,
    last: Input | None,
) -> RDom:
    """The keys that query i sees, as far as they are a range."""
    shift = keys - M if causal == "bottom_right" else 0
    if causal:
        r = r.where(r <= i + shift)
    if left >= 0:
        r = r.where(r >= i + shift - left)
    if right >= 0:
        r = r.where(r <= i + shift + right)
    if first is not None:
        r = r.where(r >= index(first[b, i]))
    if last is not None:
        r = r.where(r < index(last[b, i]))
    return r


def _score(
    arguments: _Arguments,
    w: DType,
    extra: tuple[DType | None, DType | None, DType | None],
    keys: Operand,
    groups: int,
    softcap: float,
    own: Callable[[Expr], Expr] | None,
) -> Callable[[Expr], Expr] | None:
    """What happens to a scaled score; None: nothing."""
    bias = arguments.add("bias", extra[0], [B, G * groups, M, keys])
    slopes = arguments.add("slopes", extra[1], [G * groups])
    documents = arguments.add("documents", extra[2], [B, keys])
    if not softcap and own is None and all(x is None for x in (bias, slopes, documents)):
        return None

    def change(s: Expr) -> Expr:
        if softcap:
            s = softcap * tanh(s / softcap)
        if own is not None:
            s = own(s)
        if slopes is not None:
            s = s + w(slopes[h]) * w(j - i)
        if bias is not None:
            at = bias[b, h, i, j]
            s = select(at, s, -inf) if bias.dtype is bool_ else s + w(at)
        if documents is not None:
            s = select(documents[b, i] == documents[b, j], s, -inf)
        return s

    return change
