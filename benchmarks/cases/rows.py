"""What moves memory: softmax and norms along rows, rotary embedding, dropout and its neighbours."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks import schedules
from benchmarks.case import Case, Contender, Place
from benchmarks.cases.matmul import sms_of
from benchmarks.contenders import by_formula, by_hand, compiled, copy_of, eager, ours
from benchmarks.peers import rows as peers

LENGTHS = (1024, 4096, 16384)
WARPS = {1024: 1, 4096: 2, 16384: 8}
# Warps and the limit of registers (0 for none) where the usual warps are not the best.
ROWS_OF = {
    ("softmax", 16384): (4, 0),
    ("rms_norm_residual", 4096): (4, 0),
    ("layer_norm", 16384): (8, 128),
    ("rms_norm_residual", 16384): (16, 0),
}
TUNE = ((1, 0), (2, 0), (4, 0), (8, 0), (8, 128), (16, 0), (16, 64))
LONG = ((4096, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16), (16384, 32))
EPS, RATE = 1e-5, 0.1


def cases(place: Place) -> list[Case]:
    m, lengths = (3, (64,)) if place.dry else (4096, LENGTHS)
    made = [
        make(place, m, n) for make in (_softmax, _layer_norm, _rms_norm, _residual) for n in lengths
    ]
    return [*made, _long_softmax(place), _rope(place), _dropout(place)]


def _one_pass(place: Place, make: Callable[[Any], tl.Pipeline], n: int) -> list[Contender]:
    def made(choice: tuple[int, int]) -> Callable[[], Any]:
        def with_schedule() -> Any:
            pipeline = make(tl.bf16)
            return pipeline, schedules.row_a_program(pipeline, *choice)

        return with_schedule

    usual = ROWS_OF.get((make.__name__, n), (WARPS.get(n, 4), 0))
    tuned = [ours(made(c), "w{} r{}".format(*c)) for c in TUNE] if place.tune else []
    return [ours(made(usual)), by_formula(made(usual)), *tuned]


def _case(
    place: Place,
    name: str,
    shapes: tuple[tuple[int, ...], ...],
    function: Callable[..., Any],
    contenders: list[Contender],
    *,
    moved: int,
    quick: bool = False,
) -> Case:
    """A case of bf16 inputs; `moved` is how many elements are read or written."""
    peers_of_torch = () if place.dry else (*compiled(function), copy_of(2 * moved))
    return Case(
        name=f"{name} bf16",
        inputs=lambda at: tuple(at.randn(*s, dtype=torch.bfloat16) for s in shapes),
        reference=lambda *inputs: function(*(a.double() for a in inputs)),
        contenders=(*contenders, eager(function), *peers_of_torch),
        bytes=2.0 * moved,
        quick=quick or place.dry,
    )


def _softmax(place: Place, m: int, n: int) -> Case:
    found = [*_one_pass(place, schedules.softmax, n), by_hand(peers.softmax(WARPS.get(n, 4)))]
    return _case(
        place, f"softmax {m}x{n}", ((m, n),), _softmax_of, found, moved=2 * m * n, quick=True
    )


def _softmax_of(x: Any) -> Any:
    return functional.softmax(x, dim=-1)


def _layer_norm(place: Place, m: int, n: int) -> Case:
    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        return functional.layer_norm(x, (n,), w, b, EPS)

    found = [*_one_pass(place, schedules.layer_norm, n), by_hand(peers.layer_norm(WARPS.get(n, 4)))]
    shapes = ((m, n), (n,), (n,))
    return _case(
        place, f"layer_norm {m}x{n}", shapes, layer_norm, found, moved=2 * m * n, quick=n == 4096
    )


def _rms_norm(place: Place, m: int, n: int) -> Case:
    def rms_norm(x: Any, w: Any) -> Any:
        return functional.rms_norm(x, (n,), w, EPS)

    hand = by_hand(peers.rms_norm(WARPS.get(n, 4), residual=False))
    found = [*_one_pass(place, schedules.rms_norm, n), hand]
    shapes = ((m, n), (n,))
    return _case(
        place, f"rms_norm {m}x{n}", shapes, rms_norm, found, moved=2 * m * n, quick=n == 4096
    )


def _residual(place: Place, m: int, n: int) -> Case:
    def rms_norm_residual(x: Any, residual: Any, w: Any) -> Any:
        h = x + residual
        return functional.rms_norm(h, (n,), w, EPS), h

    hand = by_hand(peers.rms_norm(WARPS.get(n, 4), residual=True))
    found = [*_one_pass(place, schedules.rms_norm_residual, n), hand]
    shapes = ((m, n), (m, n), (n,))
    name = f"rms_norm+residual {m}x{n}"
    return _case(place, name, shapes, rms_norm_residual, found, moved=4 * m * n, quick=n == 4096)


def _long_softmax(place: Place) -> Case:
    m, n, chunk = (3, 128, 32) if place.dry else (4096, 65536, 16384)

    def contender(chunk: int, warps: int, each: int, variant: str = "") -> Contender:
        """`each`: programs on one multiprocessor."""

        def made() -> Any:
            pipeline = schedules.softmax(tl.bf16)
            return pipeline, schedules.row_in_passes(
                pipeline, chunk=chunk, warps=warps, programs=each * sms_of(place)
            )

        return ours(made, variant)

    found = [
        contender(chunk, 16, 4),
        by_hand(lambda x: peers.long_softmax(sms_of(place), chunk, 16)(x)),
    ]
    if place.tune:
        choices = [(c, w, n) for c, w in LONG for n in (1, 2, 3, 4) if w * n <= 64]
        found += [contender(*choice, variant="{} w{} x{}".format(*choice)) for choice in choices]
    return _case(
        place, f"softmax {m}x{n}", ((m, n),), _softmax_of, found, moved=2 * m * n, quick=True
    )


def _rope(place: Place) -> Case:
    """The halves of each head are a dimension of their own, so that every stride is even."""
    t, h, d = (3, 4, 16) if place.dry else (8192, 32, 64)

    def rope(x: Any, cos: Any, sin: Any) -> Any:
        a, b = x[:, :, 0], x[:, :, 1]
        c, s = cos[:, None], sin[:, None]
        return torch.stack((a * c - b * s, b * c + a * s), dim=2)

    def made(heads: int, warps: int) -> Callable[[], Any]:
        def make() -> Any:
            pipeline = schedules.rope(tl.bf16)
            return pipeline, schedules.rope_heads(pipeline, heads=heads, warps=warps)

        return make

    heads = min(h, 16)
    tuned = ((8, 4), (16, 8), (32, 4), (32, 8)) if place.tune else ()
    found = [
        ours(made(heads, 4)),
        by_formula(made(heads, 4)),
        *(ours(made(*c), "{} heads w{}".format(*c)) for c in tuned),
        by_hand(peers.rope(heads, 4)),
    ]
    shapes = ((t, h, 2, d), (t, d), (t, d))
    moved = 4 * t * h * d + 2 * t * d
    return _case(place, f"rope {t}x{h}x{2 * d}", shapes, rope, found, moved=moved, quick=True)


def _dropout(place: Place) -> Case:
    """Random numbers differ between contenders, so that none is compared; ours are tested."""
    m, n = (3, 64) if place.dry else (8192, 4096)

    def dropout_add_layer_norm(x: Any, residual: Any, w: Any, b: Any) -> Any:
        return functional.layer_norm(functional.dropout(x, RATE) + residual, (n,), w, b, EPS)

    def contender(warps: int, variant: str = "") -> Contender:
        def made() -> Any:
            pipeline = schedules.dropout_add_layer_norm(tl.bf16, RATE, EPS)
            return pipeline, schedules.row_a_program(pipeline, warps)

        return ours(made, variant, seed=7)

    tuned = (4, 8, 16) if place.tune else ()
    found = [
        contender(4),
        *(contender(w, f"w{w}") for w in tuned),
        by_hand(peers.dropout_add_layer_norm(RATE, 4)),
    ]
    shapes = ((m, n), (m, n), (n,), (n,))
    case = _case(
        place,
        f"dropout+add+layer_norm {m}x{n}",
        shapes,
        dropout_add_layer_norm,
        found,
        moved=3 * m * n,
        quick=True,
    )
    unchecked = tuple(replace(c, checked=False) for c in case.contenders)
    return replace(case, contenders=unchecked, reference=None)
