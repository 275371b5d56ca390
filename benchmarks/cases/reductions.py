"""Sums, places of the largest, and running sums along both dimensions of a matrix."""

from collections.abc import Callable
from typing import Any

import torch

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.contenders import compiled, copy_of, eager, ours
from tensorlang.nn import reductions
from tensorlang.nn.schedules import columns

KINDS: dict[str, Callable[..., Any]] = {
    "sum": torch.sum,
    "argmax": torch.argmax,
    "cumsum": torch.cumsum,
}


def cases(place: Place) -> list[Case]:
    n = 12 if place.dry else 8192
    return [_case(place, kind, n, dim) for kind in KINDS for dim in (0, 1)]


def _case(place: Place, kind: str, n: int, dim: int) -> Case:
    def function(x: Any) -> Any:
        return KINDS[kind](x, dim)

    def made() -> Any:
        if kind == "cumsum":
            pipeline = reductions.scan(tl.f32, kind=kind, out_dtype="f32")
        else:
            pipeline = reductions.reduce(tl.f32, kind=kind, out_dtype="f32")
        sizes = {"A": 1, "N": n, "B": n} if dim == 0 else {"A": n, "N": n, "B": 1}
        chosen = None if kind == "cumsum" else columns(pipeline, "triton", sizes)
        return pipeline, chosen or tl.autoschedule(pipeline, "triton", sizes)

    shape = (n, n) if kind == "cumsum" else (n,)
    found = ours(
        made,
        view=lambda inputs: [inputs[0][None] if dim == 0 else inputs[0][:, :, None]],
        result=lambda made: made.reshape(shape),
    )
    moved = n * n * (8 if kind == "cumsum" else 4)
    peers = () if place.dry else (*compiled(function), copy_of(moved))
    return Case(
        name=f"{kind} of {'columns' if dim == 0 else 'rows'} {n}x{n} f32",
        inputs=lambda at: (at.randn(n, n, dtype=torch.float32),),
        reference=lambda x: function(x.double()),
        contenders=(found, eager(function), *peers),
        bytes=float(moved),
        quick=kind != "cumsum" or place.dry,
    )
