"""Attention: forward over whole sequences, and decode of one query against a long cache."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

import tensorlang as tl
from benchmarks.case import Call, Case, Contender, Place
from benchmarks.cases.matmul import TORCH
from benchmarks.contenders import compiled, eager, ours
from tensorlang.nn.attention import attention
from tensorlang.nn.attention_backward import attention_gradients
from tensorlang.nn.attention_backward_schedule import Tile, backward
from tensorlang.nn.attention_schedules import decode, flash, part_of

LENGTHS = (1024, 4096)
FEATURES = (128, 64)
BATCHES = (1, 8, 32)
HEADS, GROUPS, CACHE = 32, 4, 8192
# Features of what a score of few features multiplies.
RANK = 32
# Queries, slices of keys, warps and stages of a tile.
TILES = ((128, 64, 8, 3), (128, 128, 8, 2), (64, 64, 4, 2), (64, 64, 4, 3), (64, 128, 4, 2))
# By features: rows, steps, warps and stages of a tile of keys, and of queries.
TILES_BACKWARD = {
    128: (
        ((64, 64, 4, 2), (128, 32, 8, 3)),
        ((64, 64, 4, 2), (64, 32, 4, 2)),
        ((128, 64, 8, 3), (128, 64, 8, 3)),
    ),
    64: (
        ((64, 128, 4, 2), (128, 64, 4, 3)),
        ((64, 64, 4, 3), (64, 64, 4, 3)),
        ((64, 64, 4, 2), (128, 64, 8, 2)),
    ),
}
# Slices, warps and stages of a program that decodes; and how much longer its part may be.
SLICES = ((64, 4, 4), (64, 4, 6), (128, 4, 2), (128, 4, 3), (32, 4, 6), (64, 8, 4))
LONGER = (0.5, 2)


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_forward(place, 48, 16, is_causal) for is_causal in (True, False)]
    return [
        _forward(place, length, features, is_causal)
        for features in FEATURES
        for length in LENGTHS
        for is_causal in (True, False)
    ]


def decode_cases(place: Place) -> list[Case]:
    return [_decode(place, 2, 40)] if place.dry else [_decode(place, b, CACHE) for b in BATCHES]


def _forward(place: Place, length: int, features: int, is_causal: bool) -> Case:
    batch, heads = (1, 2) if place.dry else (4, HEADS)

    def contender(variant: str = "", **options: Any) -> Contender:
        def made() -> Any:
            pipeline = _pipeline(place, features, causal="top_left" if is_causal else "")
            return pipeline, flash(pipeline, "triton", **options)

        return ours(made, variant)

    tuned = TILES if place.tune else ()
    variants = [contender("{}x{} w{} s{}".format(*t), **_tile(t)) for t in tuned]
    pointers = [contender("pointers", descriptors=False)] if place.tune else []
    shape = (batch, heads, length, features)
    pairs = length * length / (2 if is_causal else 1)
    return Case(
        name=f"attention {'causal' if is_causal else 'full'} S{length} D{features} {place.half}",
        inputs=lambda at: _inputs(at, shape, shape),
        reference=partial(_exact, is_causal=is_causal),
        contenders=(contender(), *variants, *pointers, *_peers(place, is_causal)),
        flops=4.0 * batch * heads * pairs * features,
        bytes=2.0 * 4 * batch * heads * length * features,
        quick=features == 128 or place.dry,
    )


def _decode(place: Place, batch: int, keys: int) -> Case:
    groups, heads, features = (2, 4, 16) if place.dry else (GROUPS, HEADS, 128)
    shared = heads // groups

    part = 16 if place.dry else part_of({"B": batch, "G": shared, "M": 1, "N": keys})

    def contender(variant: str = "", **options: Any) -> Contender:
        def made() -> Any:
            pipeline = _pipeline(place, features, groups=groups)
            return pipeline, decode(pipeline, "triton", **{"part": part, **options})

        return ours(made, variant)

    names = ("slices", "warps", "stages")
    variants = [
        contender("by {} w{} s{}".format(*t), **dict(zip(names, t, strict=True))) for t in SLICES
    ]
    variants += [contender(f"parts of {int(n * part)}", part=int(n * part)) for n in LONGER]
    variants += [contender(f"merged by {n}", merged=n) for n in (4, 8, 32)]
    variants.append(contender("merged by a kernel", merge="kernel"))
    if not place.tune:
        variants = []
    usual = {"slices": 16} if place.dry else {}
    return Case(
        name=f"decode B{batch} H{heads}/{shared} KV{keys} D{features} {place.half}",
        inputs=lambda at: _inputs(at, (batch, heads, 1, features), (batch, shared, keys, features)),
        reference=partial(_exact, is_causal=False),
        contenders=(contender(**usual), *variants, *_peers(place, False)),
        modes=("graph",),
        bytes=2.0 * 2 * batch * shared * keys * features,
        quick=True,
    )


def score_cases(place: Place) -> list[Case]:
    """What templates do not know: a reduction in the score, and documents packed into one."""
    return [_relative(place), _documents(place)]


def _relative(place: Place) -> Case:
    """score + sum over r of u[h, i, r]*w[h, j, r]: of where a query and a key stand."""
    batch, heads, length, features = (1, 2, 24, 16) if place.dry else (4, HEADS, 4096, 128)

    def made() -> Any:
        dtype = getattr(tl, place.half)
        u, w = (tl.Input(n, dtype, [tl.Size("G"), tl.Size(m), RANK]) for n, m in ("uM", "wN"))
        r = tl.RDom("r", RANK)

        def change(score: Any, at: Any) -> Any:
            places = u[at.head, at.query, r], w[at.head, at.key, r]
            return score + tl.sum(tl.f32(places[0]) * tl.f32(places[1]), over=r)

        pipeline = _pipeline(place, features, score=change, inputs=[u, w])
        return pipeline, flash(pipeline, "triton", **({"slices": 16} if place.dry else {}))

    def plain(q: Any, k: Any, v: Any, u: Any, w: Any) -> Any:
        return ((q @ k.mT) * features**-0.5 + u @ w.mT).softmax(-1) @ v

    shape, places = (batch, heads, length, features), (heads, length, RANK)
    half = TORCH[place.half]
    peers = () if place.dry else compiled(plain)
    return Case(
        name=f"attention score of rank {RANK} S{length} D{features} {place.half}",
        inputs=lambda at: (
            *_inputs(at, shape, shape),
            at.randn(*places, dtype=half),
            at.randn(*places, dtype=half, scale=0.5),
        ),
        reference=lambda q, k, v, u, w: torch.cat(
            [plain(*(t[n : n + 1].double() for t in (q, k, v)), u.double(), w.double())
             for n in range(batch)]
        ),
        contenders=(ours(made), eager(plain, "eager"), *peers),
        flops=4.0 * batch * heads * length * length * (features + RANK / 2),
        quick=True,
    )  # fmt: skip


def _documents(place: Place) -> Case:
    """Sequences packed into one: a query sees the keys of its own document."""
    shape = _shape_of_documents(place)
    length, features = shape[2:]

    def made() -> Any:
        pipeline = _pipeline(place, features, first=tl.i32, last=tl.i32)
        return pipeline, flash(pipeline, "triton", **({"slices": 16} if place.dry else {}))

    def exact(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        parts = zip(q, k, v, *rest, strict=True)
        return torch.cat([
            _of_documents(*(t[None].double() for t in p[:3]), *(t[None] for t in p[3:]))
            for p in parts
        ])  # fmt: skip

    return Case(
        name=f"attention documents S{length} D{features} {place.half}",
        inputs=lambda at: (*_inputs(at, shape, shape), *_ranges(at)),
        reference=exact,
        contenders=(
            ours(made, view=lambda inputs: inputs[:5]),
            *_peers_of_documents(place),
        ),
        quick=True,
    )


def _shape_of_documents(place: Place) -> tuple[int, int, int, int]:
    return (1, 2, 24, 16) if place.dry else (4, HEADS, 4096, 128)


def _ranges(place: Place) -> tuple[Any, Any, Any]:
    """Of each query its first key, the end of its keys, and the number of its document."""
    batch, _, length, _ = _shape_of_documents(place)
    random = torch.Generator().manual_seed(place.seed)
    longest = 10 if place.dry else 1024
    ends = torch.randint(1, longest, (batch, length), generator=random).cumsum(1)
    ids = torch.searchsorted(ends, torch.arange(length).expand(batch, length), right=True)
    last = ends.gather(1, ids).clamp(max=length)
    first = torch.where(ids > 0, ends.gather(1, (ids - 1).clamp(min=0)), 0)
    return tuple(t.int().to(place.device) for t in (first, last, ids))


def _of_documents(q: Any, k: Any, v: Any, first: Any, last: Any, ids: Any) -> Any:
    same = (ids[:, :, None] == ids[:, None, :])[:, None]
    return sdpa(q, k, v, attn_mask=same)


def _peers_of_documents(place: Place) -> tuple[Contender, ...]:
    peers = () if place.dry else compiled(_of_documents)
    flex = () if place.dry else (Contender("flex", _flex_documents),)
    return (eager(_of_documents), *peers, *flex)


def _flex_documents(inputs: Sequence[Any]) -> Call:
    q, k, v, _, _, ids = inputs

    def same(b: Any, h: Any, query: Any, key: Any) -> Any:
        return ids[b, query] == ids[b, key]

    mask = create_block_mask(same, q.shape[0], None, q.shape[2], k.shape[2], device=q.device)
    call: Any = torch.compile(flex_attention, dynamic=False)
    return lambda: call(q, k, v, block_mask=mask)


def backward_cases(place: Place) -> list[Case]:
    shapes = [(24, 16)] if place.dry else [(n, d) for d in FEATURES for n in LENGTHS]
    made = [_backward(place, *shape, is_causal) for shape in shapes for is_causal in (True, False)]
    return [*made, _documents_backward(place)]


def _backward(place: Place, length: int, features: int, is_causal: bool) -> Case:
    """Gradients of queries, keys and values, from what the forward pass has kept."""
    batch, heads = (1, 2) if place.dry else (4, HEADS)
    causal = "top_left" if is_causal else ""

    def contender(variant: str = "", **options: Any) -> Contender:
        return _our_gradient(place, features, {"causal": causal}, variant, **options)

    tuned = TILES_BACKWARD[features] if place.tune else ()
    variants = [
        contender(f"{keys} {queries}", keys=Tile(*keys), queries=Tile(*queries))
        for keys, queries in tuned
    ]
    shape = (batch, heads, length, features)
    pairs = length * length / (2 if is_causal else 1)
    return Case(
        name=f"attention backward {'causal' if is_causal else 'full'} S{length} D{features} "
        f"{place.half}",
        inputs=lambda at: (*_inputs(at, shape, shape), at.randn(*shape, dtype=TORCH[at.half])),
        reference=partial(_exact_gradients, is_causal=is_causal),
        contenders=(
            contender(),
            *variants,
            *(_gradient_of(peer) for peer in _peers(place, is_causal)),
        ),
        flops=10.0 * batch * heads * pairs * features,
        quick=(length, features) == (LENGTHS[-1], FEATURES[0]) or place.dry,
    )


def _our_gradient(
    place: Place, features: int, mask: dict[str, Any], variant: str = "", **options: Any
) -> Contender:
    usual = {"keys": Tile(16, 16, 4, 2), "queries": Tile(16, 16, 4, 2)} if place.dry else {}

    def prepare(inputs: Sequence[Any]) -> Call:
        *given, slopes = inputs
        forward = _pipeline(place, features, kept=True, **mask)
        tensors = given[: len(forward.algorithm.inputs)]
        kept = forward.compile(flash(forward, "triton"), "triton")(*tensors)
        gradient = attention_gradients(forward, ["q", "k", "v"])
        schedule = backward(gradient, "triton", **{**usual, **options})
        kernel = gradient.compile(schedule, "triton")
        return lambda: kernel(*tensors, *kept, slopes)

    return Contender(f"tensorlang {variant}".strip(), prepare)


def _documents_backward(place: Place) -> Case:
    """The gradient of sequences packed into one."""
    shape = _shape_of_documents(place)
    length, features = shape[2:]

    def exact(*inputs: Any) -> Sequence[Any]:
        parts = [_slopes_of(_of_documents, [t[None] for t in p]) for p in zip(*inputs, strict=True)]
        return tuple(torch.cat(of_one) for of_one in zip(*parts, strict=True))

    return Case(
        name=f"attention backward documents S{length} D{features} {place.half}",
        inputs=lambda at: (
            *_inputs(at, shape, shape),
            *_ranges(at),
            at.randn(*shape, dtype=TORCH[at.half]),
        ),
        reference=exact,
        contenders=(
            _our_gradient(place, features, {"first": tl.i32, "last": tl.i32}),
            *(_gradient_of(peer) for peer in _peers_of_documents(place)),
        ),
        quick=True,
    )


def _slopes_of(function: Callable[..., Any], inputs: Sequence[Any]) -> Sequence[Any]:
    """In f64, the gradients of what is no number of a place, given that of the result."""
    *given, slopes = [t.double() if t.is_floating_point() else t for t in inputs]
    leaves = [t.requires_grad_() for t in given if t.is_floating_point()]
    return torch.autograd.grad(function(*given), leaves, slopes)


def _exact_gradients(q: Any, k: Any, v: Any, slopes: Any, *, is_causal: bool) -> Sequence[Any]:
    """In f64, one batch after the other."""
    exact = partial(_exact, is_causal=is_causal)
    parts = zip(q, k, v, slopes, strict=True)
    made = [_slopes_of(exact, [t[None] for t in part]) for part in parts]
    return tuple(torch.cat(of_one) for of_one in zip(*made, strict=True))


def _gradient_of(peer: Contender) -> Contender:
    """The backward pass alone of a peer."""

    def prepare(inputs: Sequence[Any]) -> Call:
        *tensors, slopes = inputs
        leaves = [t.detach().requires_grad_() for t in tensors if t.is_floating_point()]
        out = peer.prepare([*leaves, *tensors[len(leaves) :]])()
        return lambda: torch.autograd.grad(out, leaves, slopes, retain_graph=True)

    return Contender(peer.impl, prepare)


def _pipeline(place: Place, features: int, **options: Any) -> tl.Pipeline:
    dtype = getattr(tl, place.half)
    return attention(
        dtype, dtype, dtype, features=features, values=features, scale=features**-0.5, **options
    )


def _tile(choice: tuple[int, int, int, int]) -> dict[str, int]:
    return dict(zip(("queries", "slices", "warps", "stages"), choice, strict=True))


def _inputs(place: Place, q: tuple[int, ...], kv: tuple[int, ...]) -> Sequence[Any]:
    """Of keys and values other numbers than of queries, though their shapes may be the same."""
    random = torch.Generator(device=place.device).manual_seed(place.seed)
    dtype = TORCH[place.half]
    draw = partial(torch.randn, generator=random, device=place.device, dtype=torch.float32)
    return tuple(draw(shape).to(dtype) for shape in (q, kv, kv))


def _exact(q: Any, k: Any, v: Any, *, is_causal: bool) -> Any:
    """In f64, one batch after the other."""
    groups = q.shape[1] // k.shape[1]
    made: list[Any] = []
    for a, b, c in zip(q, k, v, strict=True):
        b, c = (t.repeat_interleave(groups, 0).double() for t in (b, c))
        score = a.double() @ b.mT * a.shape[-1] ** -0.5
        if is_causal:
            score += torch.full_like(score[0], -torch.inf).triu(1)
        made.append(score.softmax(-1) @ c)
    return torch.stack(made)


def _peers(place: Place, is_causal: bool) -> tuple[Contender, ...]:
    if place.dry:
        return (eager(_sdpa(is_causal)),)
    return (
        eager(_sdpa(is_causal, SDPBackend.FLASH_ATTENTION), "flash"),
        eager(_sdpa(is_causal, SDPBackend.CUDNN_ATTENTION), "cudnn"),
        Contender("flex", lambda inputs: _flex(inputs, is_causal)),
    )


def _sdpa(is_causal: bool, backend: SDPBackend | None = None) -> Callable[..., Any]:
    def call(q: Any, k: Any, v: Any) -> Any:
        shared = q.shape[1] != k.shape[1]
        return sdpa(q, k, v, is_causal=is_causal, enable_gqa=shared)

    def chosen(q: Any, k: Any, v: Any) -> Any:
        with sdpa_kernel(backend):
            return call(q, k, v)

    return call if backend is None else chosen


def _not_later(b: Any, h: Any, query: Any, key: Any) -> Any:
    return query >= key


def _flex(inputs: Sequence[Any], is_causal: bool) -> Call:
    q, k, v = inputs
    mask = None
    if is_causal:
        mask = create_block_mask(_not_later, None, None, q.shape[2], k.shape[2], device=q.device)
    call: Any = torch.compile(flex_attention, dynamic=False)
    return lambda: call(q, k, v, block_mask=mask, enable_gqa=q.shape[1] != k.shape[1])
