"""pipeline, warp_specialize, gpu_warps, gpu_registers, gpu_dependent_launch, load_with ...

Hints: none changes a value, and a backend that has no use for one says so in `kernel.notes`.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import Loop
from tensorlang.ir.stmt import LoopKind


@dataclass(frozen=True, slots=True, eq=False)
class PipelineLoop(Directive):
    """Overlap the loads of the next iterations of `var` with the work of this one.

    Args: stages: iterations in flight, at least 1.  See: Triton's num_stages; CUDA's cp.async.
    """

    keyword: ClassVar[str] = "pipeline"
    on_variants: ClassVar[bool] = True
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


def _hint_kernel(
    directive: Directive, state: State, stage: tuple[str, int], hint: tuple[str, int]
) -> None:
    """Put a hint on the innermost gpu_blocks loop: it belongs to the programs of the kernel."""
    nest = state.nests[stage]
    blocks = [loop.name for loop in nest.loops if loop.kind is LoopKind.GPU_BLOCK]
    if not blocks:
        raise directive.error(
            "no-gpu-blocks",
            f"cannot {directive.keyword} of {nest.stage!r}",
            why="no loop of it is gpu_blocks yet, and this belongs to the programs of a kernel",
            fix="gpu_blocks(...) first",
            nest=nest,
        )

    def add(loop: Loop) -> Loop:
        kept = tuple(h for h in loop.hints if h[0] != hint[0])
        return replace(loop, hints=(*kept, hint))

    state.nests[stage] = nest.update(blocks[-1], add)


@dataclass(frozen=True, slots=True, eq=False)
class GpuWarps(Directive):
    """Run each program of the stage's kernel on `warps` warps of 32 threads (a power of two)."""

    keyword: ClassVar[str] = "gpu_warps"
    on_variants: ClassVar[bool] = True
    warps: int

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        if self.warps not in (1, 2, 4, 8, 16, 32):
            raise self.error(
                "warps-not-legal",
                f"cannot run {stage[0]!r} on {self.warps} warps",
                why="a program has 1, 2, 4, 8, 16 or 32 warps",
                fix="gpu_warps(4)",
                nest=state.nests[stage],
            )
        _hint_kernel(self, state, stage, ("warps", self.warps))


@dataclass(frozen=True, slots=True, eq=False)
class GpuRegisters(Directive):
    """Let each thread of the stage's kernel use at most `registers` registers."""

    keyword: ClassVar[str] = "gpu_registers"
    on_variants: ClassVar[bool] = True
    registers: int

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        if not 16 <= self.registers <= 255:
            raise self.error(
                "registers-not-legal",
                f"cannot give {stage[0]!r} {self.registers} registers a thread",
                why="a thread has 16 to 255 of them",
                fix="gpu_registers(128)",
                nest=state.nests[stage],
            )
        _hint_kernel(self, state, stage, ("registers", self.registers))


@dataclass(frozen=True, slots=True, eq=False)
class DependentLaunch(Directive):
    """Start the stage's kernel while the one before it on the stream ends.

    Its programs wait for all that was written before they touch memory, so that only the launch
    itself overlaps: worth it in a chain of tiny kernels.  From sm_90 on; elsewhere launches follow
    one another.

    See: CUDA's programmatic dependent launch; PTX griddepcontrol.
    """

    keyword: ClassVar[str] = "gpu_dependent_launch"
    on_variants: ClassVar[bool] = True

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _hint_kernel(self, state, stage, ("dependent", 1))


@dataclass(frozen=True, slots=True, eq=False)
class WarpSpecialize(Directive):
    """Let some warps load what others compute with, in the serial loop `var`."""

    keyword: ClassVar[str] = "warp_specialize"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        loop = self.loop(nest, self.var)
        if loop.kind is not LoopKind.SERIAL:
            raise self.error(
                "pipeline-not-serial",
                f"cannot specialize the warps of {self.var!r} of {nest.stage!r}",
                why="the roles of the warps overlap iterations of a serial loop",
                fix="specialize the serial loop around the tile",
                nest=nest,
            )
        state.nests[stage] = nest.update(
            self.var, lambda old: replace(old, hints=(*old.hints, ("warp_specialize", 1)))
        )


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch(Directive):
    """for v: s   ->   for v: { ask for what s reads of `func` at v + offset; s }

    Each iteration of the serial loop `at` tells the caches which elements of the Input or Func it
    will read `offset` iterations later, as far as there are such iterations and such elements.  For
    CPUs, where the pattern is too odd for the hardware to guess; a GPU's loops are pipelined.

    Args: func: an Input, or a Func in memory.   offset: at least 1.
    Raises: ScheduleError: unknown-loop, unknown-func, prefetch-not-serial.
    See: Halide's Func::prefetch.
    """

    keyword: ClassVar[str] = "prefetch"
    on_variants: ClassVar[bool] = True
    func: str
    at: str
    offset: int = 1

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        loop = self.loop(nest, self.at)
        known = (*(a.name for a in state.algorithm.inputs), *state.funcs)
        if self.func not in known:
            raise self.error(
                "unknown-func",
                f"cannot prefetch {self.func!r} in {nest.stage!r}",
                why=f"{self.func!r} is no Input and no Func of the Pipeline",
                fix=f"one of {', '.join(known)}",
                nest=nest,
            )
        if loop.kind is not LoopKind.SERIAL or self.offset < 1:
            raise self.error(
                "prefetch-not-serial",
                f"cannot prefetch in {self.at!r} of {nest.stage!r}, {self.offset} iteration(s) "
                "ahead",
                why="it is done for a later iteration of a serial loop",
                fix=f"prefetch({self.func}, a serial loop, offset=2)",
                nest=nest,
            )
        hint = (f"prefetch.{self.func}", self.offset)
        state.nests[stage] = nest.update(
            self.at, lambda old: replace(old, hints=(*old.hints, hint))
        )


def _hint_buffer(state: State, name: str, hint: tuple[str, int | str]) -> None:
    kept = tuple(h for h in state.hints.get(name, ()) if h[0] != hint[0])
    state.hints[name] = (*kept, hint)


Access = Literal["pointer", "descriptor"]


def _check_access(directive: "LoadWith | StoreWith", name: str) -> None:
    if directive.access not in get_args(Access):
        raise directive.error(
            "unknown-access",
            f"cannot {directive.keyword} {directive.access!r} of {name!r}",
            why="elements are reached by pointers or through a tensor descriptor",
            fix=f"one of {', '.join(get_args(Access))}",
        )


@dataclass(frozen=True, slots=True, eq=False)
class LoadWith(Directive):
    """Load tiles of the Input or Func by "pointer", or through a tensor "descriptor" (TMA).

    A descriptor takes rank 2 to 5, one unit stride, other strides that are multiples of 16 bytes,
    a box of at least 16 bytes along the unit stride, and no mask but the array's own bounds; a call
    whose array does not fit runs a kernel with pointers, and `kernel.notes` says so.
    """

    keyword: ClassVar[str] = "load_with"
    on_inputs: ClassVar[bool] = True
    access: Access

    def text(self) -> str:
        return f'load_with("{self.access}")'

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _check_access(self, stage[0])
        _hint_buffer(state, stage[0], ("load_with", self.access))


@dataclass(frozen=True, slots=True, eq=False)
class StoreWith(Directive):
    """Store tiles of the Func by "pointer", or through a tensor "descriptor", as `load_with`."""

    keyword: ClassVar[str] = "store_with"
    access: Access

    def text(self) -> str:
        return f'store_with("{self.access}")'

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _check_access(self, stage[0])
        _hint_buffer(state, stage[0], ("store_with", self.access))


Policy = Literal["evict_first", "evict_last", "streaming"]


@dataclass(frozen=True, slots=True, eq=False)
class Cache(Directive):
    """How caches treat loads of an Input, or loads and stores of a Func.

    evict_first and streaming: it is used once; evict_last: it is used again and again.  In C the
    vectors of a Func that is "streaming" are stored past the caches where they are aligned to their
    size: of use where the Func is larger than the last cache and its array has been used before.
    """

    keyword: ClassVar[str] = "cache"
    on_inputs: ClassVar[bool] = True
    policy: Policy

    def text(self) -> str:
        return f'cache("{self.policy}")'

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        if self.policy not in get_args(Policy):
            raise self.error(
                "unknown-policy",
                f"cannot cache {stage[0]!r} as {self.policy!r}",
                why="there is no such policy",
                fix=f"one of {', '.join(get_args(Policy))}",
            )
        _hint_buffer(state, stage[0], ("cache", self.policy))
