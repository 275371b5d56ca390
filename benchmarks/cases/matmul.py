"""Matmuls of bf16 and f16: squares, the shapes of a LLaMA prefill, and sizes that fit nothing."""

from collections.abc import Callable
from typing import Any

import torch

import tensorlang as tl
from benchmarks import schedules
from benchmarks.case import Case, Contender, Mode, Place
from benchmarks.contenders import by_formula, by_hand, compiled, eager, ours
from benchmarks.peers import matmul as peers
from benchmarks.schedules import Tile

SQUARES = (128, 256, 512, 1024, 2048, 4096, 8192)
TORCH = {"bf16": torch.bfloat16, "f16": torch.float16}
PREFILL = ((2048, 6144, 4096), (2048, 4096, 4096), (2048, 28672, 4096), (2048, 4096, 14336))
ODD = (4095, 4097, 1023)

LARGE = Tile(128, 256, 64, warps=8, stages=4, group=16)
SMALL = {
    128: Tile(16, 32, 128, warps=2, stages=2),
    256: Tile(32, 32, 128, warps=4, stages=3),
    512: Tile(64, 64, 128, warps=4, stages=3),
    1024: Tile(64, 128, 64, warps=4, stages=4),
}
DRY = Tile(16, 32, 16, warps=4, stages=2, group=2)
DRY_LARGE = Tile(32, 32, 16, warps=4, stages=2, group=2)
TUNE = (
    Tile(128, 128, 64, warps=4, stages=4),
    Tile(128, 128, 64, warps=8, stages=3),
    Tile(128, 256, 64, warps=8, stages=3),
    Tile(256, 128, 64, warps=8, stages=3),
    Tile(64, 256, 64, warps=4, stages=4),
)


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_case(place, (n, 96, 48), place.half, nt=n > 100) for n in (70, 110)] + [
            _odd(place)
        ]
    squares = [
        _case(place, (n, n, n), dtype, nt=nt, quick=n in (128, 1024, 4096) and dtype == "bf16")
        for dtype in ("bf16", "f16")
        for n in SQUARES
        for nt in (False, True)
    ]
    prefill = [_case(place, shape, "bf16", nt=True, prefill=True) for shape in PREFILL]
    return [*squares, *prefill, _odd(place)]


def tile_for(place: Place, n: int) -> Tile:
    """Small matmuls want many small tiles; from 2048 on one size serves all."""
    if place.dry:
        return DRY if n < 100 else DRY_LARGE
    return SMALL.get(n, LARGE)


def schedule_for(pipeline: tl.Pipeline, tile: Tile, place: Place) -> tl.Schedule:
    """Persistent with large tiles, of which there are many, else one tile a program."""
    if tile.columns >= 256 or tile is DRY_LARGE:
        return schedules.persistent(pipeline, tile, sms=sms_of(place))
    return schedules.one_tile_a_program(pipeline, tile, descriptors=tile.columns >= 64)


def sms_of(place: Place) -> int:
    return 3 if place.dry else torch.cuda.get_device_properties(0).multi_processor_count


def _case(
    place: Place,
    shape: tuple[int, int, int],
    dtype: str,
    *,
    nt: bool,
    prefill: bool = False,
    quick: bool = False,
) -> Case:
    m, n, k = shape
    small = max(shape) <= 1024
    modes: tuple[Mode, ...] = ("graph",) if small and not place.dry else ("device",)
    torch_dtype = TORCH[dtype]
    layout = "NT" if nt else "NN"
    title = f"prefill {m}x{n}x{k}" if prefill else f"{m}x{n}x{k}"
    product = _nt if nt else torch.mm
    tuned = title == "4096x4096x4096" and dtype == "bf16" and not nt
    return Case(
        name=f"matmul {title} {layout} {dtype}",
        inputs=lambda at: (
            at.randn(m, k, dtype=torch_dtype),
            at.randn(*((n, k) if nt else (k, n)), dtype=torch_dtype),
        ),
        reference=lambda a, b: product(a.double(), b.double()),
        contenders=(
            *_ours(place, getattr(tl, dtype), tile_for(place, m), nt),
            eager(product),
            *(compiled(product, tuned=True)[1:] if tuned and not place.dry else ()),
            by_hand(_hand(tile_for(place, m), nt)),
        ),
        modes=modes,
        flops=2.0 * m * n * k,
        quick=quick or place.dry,
    )


def _nt(a: Any, b: Any) -> Any:
    return torch.mm(a, b.t())


def _ours(place: Place, dtype: Any, tile: Tile, nt: bool) -> list[Contender]:
    def make(tile: Tile) -> Callable[[], Any]:
        def made() -> Any:
            pipeline = schedules.matmul(dtype, transposed=nt)
            return pipeline, schedule_for(pipeline, tile, place)

        return made

    tuned = TUNE if place.tune and tile is LARGE else ()
    return [ours(make(tile)), by_formula(make(tile)), *(ours(make(t), str(t)) for t in tuned)]


def _hand(tile: Tile, nt: bool) -> Callable[[Any], Any]:
    if tile.columns < 64 and tile is not DRY_LARGE:
        return peers.pointers(tile, nt=nt)
    return peers.descriptors(tile, nt=nt, persistent=tile in (LARGE, DRY_LARGE))


def _odd(place: Place) -> Case:
    m, n, k = (33, 41, 35) if place.dry else ODD
    tile = DRY if place.dry else Tile(128, 128, 64, warps=4, stages=4)

    def make(tile: Tile) -> Callable[[], Any]:
        def made() -> Any:
            pipeline = schedules.matmul(getattr(tl, place.half), transposed=False)
            return pipeline, schedules.padded(pipeline, tile, sms=sms_of(place))

        return made

    tuned = TUNE if place.tune else ()
    return Case(
        name=f"matmul odd {m}x{n}x{k} NN {place.half}",
        inputs=lambda at: (
            at.randn(m, k, dtype=TORCH[at.half]),
            at.randn(k, n, dtype=TORCH[at.half]),
        ),
        reference=lambda a, b: torch.mm(a.double(), b.double()),
        contenders=(
            ours(make(tile)),
            *(ours(make(t), str(t)) for t in tuned),
            eager(torch.mm),
            by_hand(peers.padded(tile)),
        ),
        flops=2.0 * m * n * k,
        quick=True,
    )
