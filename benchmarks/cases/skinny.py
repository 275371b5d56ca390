"""Decode: one row of tokens, or a few, by large weights; reading the weights is all that counts."""

from collections.abc import Callable
from typing import Any

from torch.nn import functional

import tensorlang as tl
from benchmarks import schedules
from benchmarks.case import Case, Contender, Place
from benchmarks.cases.matmul import TORCH
from benchmarks.contenders import by_formula, by_hand, compiled, eager, ours
from benchmarks.peers import skinny as peers
from benchmarks.schedules import Tile

GEMV = ((4096, 4096), (28672, 4096), (4096, 14336))
TOKENS = (16, 32, 64)


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_gemv(place, 40, 64), _few(place, 3, 80, 64)]
    return [
        *(_gemv(place, n, k) for n, k in GEMV),
        *(_few(place, m, 4096, 4096) for m in TOKENS),
    ]


def _gemv(place: Place, n: int, k: int) -> Case:
    rows, step, warps = (4, 16, 4) if place.dry else (2, 1024, 4)

    def make(rows: int, step: int, warps: int) -> Callable[[], Any]:
        def made() -> Any:
            pipeline = schedules.gemv(getattr(tl, place.half), k)
            return pipeline, schedules.gemv_unrolled(pipeline, rows=rows, step=step, warps=warps)

        return made

    shapes: Any = {"view": lambda a: (a[0][0], a[1]), "result": lambda y: y[None]}

    def contender(*choice: int, variant: str = "") -> Contender:
        return ours(make(*choice), variant, **shapes)

    tuned = ((4, 512, 4), (8, 256, 4), (4, 1024, 8), (1, 2048, 4)) if place.tune else ()
    return _case(
        place,
        (1, n, k),
        contender(rows, step, warps),
        by_formula(make(rows, step, warps), **shapes),
        *(contender(*t, variant="{}x{} w{}".format(*t)) for t in tuned),
        by_hand(peers.gemv(rows, step, warps)),
    )


def _few(place: Place, m: int, n: int, k: int) -> Case:
    tokens = max(16, m)
    tile, parts = Tile(tokens, 64, 128, warps=4, stages=4), 2
    if place.dry:
        tile = Tile(16, 16, 16, warps=4, stages=2)

    def make(parts: int) -> Callable[[], Any]:
        def made() -> Any:
            pipeline = schedules.matmul(getattr(tl, place.half), transposed=True)
            return pipeline, schedules.weights_first(pipeline, tile, parts=parts, depth=k)

        return made

    tuned = (1, 4, 8) if place.tune else ()
    return _case(
        place,
        (m, n, k),
        ours(make(parts)),
        by_formula(make(parts)),
        *(ours(make(p), f"{p} parts") for p in tuned),
        by_hand(peers.swapped(tile, parts)),
    )


def _case(place: Place, shape: tuple[int, int, int], *contenders: Contender) -> Case:
    m, n, k = shape
    return Case(
        name=f"skinny {m}x{n}x{k} NT {place.half}",
        inputs=lambda at: (
            at.randn(m, k, dtype=TORCH[at.half]),
            at.randn(n, k, dtype=TORCH[at.half]),
        ),
        reference=lambda x, w: functional.linear(x.double(), w.double()),
        contenders=(
            *contenders,
            eager(functional.linear),
            *(() if place.dry else compiled(functional.linear)),
        ),
        flops=2.0 * m * n * k,
        bytes=2.0 * (m * k + n * k + m * n),
        quick=True,
    )
