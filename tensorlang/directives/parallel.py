"""parallel, vectorize, gpu_blocks: iterations that run at once."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import Loop, Nest
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.stmt import LoopKind


def _mark(
    directive: Directive, state: State, stage: tuple[str, int], var: str, kind: LoopKind
) -> None:
    nest = state.nests[stage]
    loop = directive.loop(nest, var)
    if loop.reduction:
        _check_reduction(directive, state, nest, loop, kind)
    state.nests[stage] = nest.update(var, lambda old: replace(old, kind=kind, span=directive.span))


def _check_reduction(
    directive: Directive, state: State, nest: Nest, loop: Loop, kind: LoopKind
) -> None:
    """Iterations of an RDom loop change one element: only a tree reduction may run them at once."""
    definition = state.funcs[nest.func].definitions[nest.number]
    found = associative_operator(nest.func, definition.indices, definition.values)
    mixed = any(v in loop.origins for v in definition.pure if v is not None)
    if kind is LoopKind.VECTORIZED and found is not None and not mixed:
        return
    if kind is LoopKind.VECTORIZED:
        why = (
            f"{loop.name!r} is fused from a pure and an RDom loop"
            if mixed
            else f"the update of {nest.func!r} is not a known associative operation, so that its "
            "points must run in order"
        )
        fix = "vectorize a pure loop, or leave it serial"
    else:
        why = (
            f"{loop.name!r} comes from an RDom: two of its iterations would update one element "
            f"of {nest.func!r} at once"
        )
        fix = f"{directive.keyword} a pure loop, or vectorize {loop.name!r} (a tree reduction)"
    raise directive.error(
        "carried-dependence",
        f"cannot {directive.keyword} {loop.name!r} of {nest.stage!r}",
        why=why,
        fix=fix,
        nest=nest,
    )


@dataclass(frozen=True, slots=True)
class Parallel(Directive):
    """parallel for x: s     the iterations run in any order, on several cores or GPU programs

    Outermost, `parallel` and `gpu_blocks` are one idea: OpenMP on C, program ids on Triton.
    """

    keyword: ClassVar[str] = "parallel"
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.PARALLEL)


@dataclass(frozen=True, slots=True)
class GpuBlocks(Directive):
    """gpu_block x, y: s     the loops become program ids, the last one named the fastest"""

    keyword: ClassVar[str] = "gpu_blocks"
    vars: tuple[str, ...]

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        for var in self.vars:
            _mark(self, state, stage, var, LoopKind.GPU_BLOCK)


@dataclass(frozen=True, slots=True)
class Vectorize(Directive):
    """vectorized for x: s     the iterations are lanes: of a SIMD vector (C), of a tile (Triton)

    The extent is a constant or a whole dimension.  An RDom loop of an associative update becomes a
    tree reduction.
    """

    keyword: ClassVar[str] = "vectorize"
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.VECTORIZED)
