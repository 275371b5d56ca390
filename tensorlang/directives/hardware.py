"""pipeline, gpu_warps: hints, which never change a value and which a backend may ignore."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.ir.stmt import LoopKind


@dataclass(frozen=True, slots=True)
class PipelineLoop(Directive):
    """Overlap the loads of the next iterations of `var` with the work of this one.

    Args: stages: iterations in flight, at least 1.  See: Triton's num_stages; CUDA's cp.async.
    """

    keyword: ClassVar[str] = "pipeline"
    var: str
    stages: int = 2

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        loop = self.loop(nest, self.var)
        if loop.kind is not LoopKind.SERIAL or self.stages < 1:
            raise self.error(
                "pipeline-not-serial",
                f"cannot pipeline {self.var!r} of {nest.stage!r} in {self.stages} stage(s)",
                why="pipelining overlaps iterations of a serial loop, at least one at a time",
                fix="pipeline the serial loop around the tile, with stages=2 to 5",
                nest=nest,
            )
        hint = ("stages", self.stages)
        state.nests[stage] = nest.update(
            self.var, lambda old: replace(old, hints=(*old.hints, hint))
        )


@dataclass(frozen=True, slots=True)
class GpuWarps(Directive):
    """Run each program of the stage's kernel on `warps` warps of 32 threads (a power of two)."""

    keyword: ClassVar[str] = "gpu_warps"
    warps: int

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        if self.warps not in (1, 2, 4, 8, 16, 32):
            raise self.error(
                "warps-not-legal",
                f"cannot run {nest.stage!r} on {self.warps} warps",
                why="a program has 1, 2, 4, 8, 16 or 32 warps",
                fix="gpu_warps(4)",
                nest=nest,
            )
        blocks = [loop.name for loop in nest.loops if loop.kind is LoopKind.GPU_BLOCK]
        if not blocks:
            raise self.error(
                "no-gpu-blocks",
                f"cannot choose the warps of {nest.stage!r}",
                why="no loop of it is gpu_blocks yet, and warps belong to the programs of a kernel",
                fix="gpu_blocks(...) first",
                nest=nest,
            )
        hint = ("warps", self.warps)
        state.nests[stage] = nest.update(
            blocks[-1], lambda old: replace(old, hints=(*old.hints, hint))
        )
