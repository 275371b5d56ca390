"""activation(x W^T + bias): the epilogue in the same kernel as the matmul."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks import schedules
from benchmarks.case import Case, Contender, Mode, Place
from benchmarks.cases.matmul import DRY_LARGE, LARGE, TORCH, TUNE, schedule_for, tile_for
from benchmarks.contenders import by_formula, by_hand, compiled, eager, ours
from benchmarks.peers import matmul as peers
from benchmarks.schedules import Tile

SHAPES: tuple[tuple[tuple[int, int, int], str, tuple[Mode, ...]], ...] = (
    ((128, 128, 128), "relu", ("graph", "host")),
    ((1024, 1024, 1024), "relu", ("graph",)),
    ((4096, 4096, 4096), "relu", ("device",)),
    ((4096, 4096, 4096), "gelu_tanh", ("device",)),
    ((4096, 4096, 4096), "gelu_erf", ("device",)),
    ((2048, 14336, 4096), "gelu_tanh", ("device",)),
)
ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": functional.relu,
    "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu_erf": functional.gelu,
}


def cases(place: Place) -> list[Case]:
    if place.dry:
        choices = ((70, "relu"), (110, "gelu_erf"))
        return [_case(place, (n, 96, 48), act, ("device",)) for n, act in choices]
    return [_case(place, *row) for row in SHAPES]


def _case(place: Place, shape: tuple[int, int, int], act: str, modes: tuple[Mode, ...]) -> Case:
    m, n, k = shape
    activation = ACTIVATIONS[act]
    tile = tile_for(place, m)

    def linear(x: Any, w: Any, bias: Any) -> Any:
        return activation(functional.linear(x, w, bias))

    return Case(
        name=f"linear {m}x{n}x{k} {act} {place.half}",
        inputs=lambda at: (
            at.randn(m, k, dtype=TORCH[at.half]),
            at.randn(n, k, dtype=TORCH[at.half]),
            at.randn(n, dtype=TORCH[at.half]),
        ),
        reference=lambda *inputs: linear(*(a.double() for a in inputs)),
        contenders=(
            *_ours(place, act, tile),
            eager(linear),
            *(() if place.dry else compiled(linear, tuned=m >= 2048 and act != "gelu_erf")),
            *(() if place.dry else _vendor(act)),
            by_hand(_hand(tile, act)),
        ),
        modes=modes,
        flops=2.0 * m * n * k,
        quick=place.dry or act == "relu" or m < 4096,
    )


def _ours(place: Place, act: str, tile: Tile) -> list[Contender]:
    def make(tile: Tile) -> Callable[[], Any]:
        def made() -> Any:
            pipeline = schedules.linear(getattr(tl, place.half), act)
            return pipeline, schedule_for(pipeline, tile, place)

        return made

    tuned = TUNE if place.tune and tile is LARGE else ()
    return [ours(make(tile)), by_formula(make(tile)), *(ours(make(t), str(t)) for t in tuned)]


def _vendor(act: str) -> tuple[Contender, ...]:
    """cuBLASLt's fused epilogues: it has relu and gelu by tanh."""
    if act == "gelu_erf":
        return ()

    def fused(x: Any, w: Any, bias: Any) -> Any:
        return torch._addmm_activation(bias, x, w.t(), use_gelu=act == "gelu_tanh")

    return (eager(fused, "addmm_activation"),)


def _hand(tile: Tile, act: str) -> Callable[[Any], Any]:
    if tile.columns < 64 and tile is not DRY_LARGE:
        return peers.pointers(tile, nt=True, act=act)
    return peers.descriptors(tile, nt=True, act=act, persistent=tile in (LARGE, DRY_LARGE))
