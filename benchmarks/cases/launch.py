"""What a call costs besides its work: a launch from Python, and making the kernel at all."""

from typing import Any

import torch

import tensorlang as tl
from benchmarks import schedules
from benchmarks.case import Call, Case, Contender, Place
from benchmarks.cases.matmul import DRY, LARGE
from benchmarks.contenders import compiled, eager, ours
from benchmarks.peers import launch as peers


def cases(place: Place) -> list[Case]:
    return [_add(place), _lowering(place)]


def _add(place: Place) -> Case:
    """c = a + b of 1024 numbers; ours allocates c, the bare launch has it."""
    n = 64 if place.dry else 1024

    def make() -> Any:
        pipeline = schedules.add(tl.f32)
        return pipeline, schedules.blocks_of(pipeline, n)

    return Case(
        name=f"launch add {n} f32",
        inputs=lambda at: tuple(at.randn(n, dtype=torch.float32) for _ in range(2)),
        reference=lambda a, b: a.double() + b.double(),
        contenders=(
            ours(make),
            eager(torch.add),
            *(() if place.dry else compiled(torch.add)),
            Contender("triton launch", peers.bare_launch),
        ),
        modes=("host", "graph"),
        quick=True,
    )


def _lowering(place: Place) -> Case:
    """From a pipeline and its schedule to Triton text; Triton's own compiler is not in it."""
    tile = DRY if place.dry else LARGE

    def prepare(inputs: Any) -> Call:
        pipeline = schedules.linear(tl.bf16, "relu")
        schedule = schedules.persistent(pipeline, tile, sms=132)
        target = tl.Target("triton", arch="sm_90")
        return lambda: pipeline.compile(schedule, target).source

    return Case(
        name="lowering linear persistent",
        inputs=lambda at: (),
        reference=None,
        contenders=(Contender("tensorlang", prepare, checked=False),),
        modes=("wall",),
        quick=True,
    )
