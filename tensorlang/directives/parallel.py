"""parallel, vectorize, gpu_blocks: iterations that run at once."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import Loop, Nest
from tensorlang.directives.order import Order
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
    """Iterations that conflict run at once only as a tree reduction."""
    definition = state.funcs[nest.func].definitions[nest.number]
    order = Order(definition, nest)
    conflict = order.conflict_of(loop.name)
    if conflict is None:
        return
    mixed = any(v in loop.origins for v in definition.pure if v is not None)
    if kind is LoopKind.VECTORIZED and order.is_associative() and not mixed:
        return
    if kind is LoopKind.VECTORIZED and order.is_associative():
        fix = f"vectorize a loop that comes from the RDom alone: {loop.name!r} is fused from both"
    elif order.is_associative():
        fix = (
            f"vectorize {loop.name!r} (a tree reduction), or rfactor it and {directive.keyword} "
            "the loop of the new Func"
        )
    else:
        fix = f"{directive.keyword} a pure loop, or leave {loop.name!r} serial"
    raise directive.error(
        "carried-dependence",
        f"cannot {directive.keyword} {loop.name!r} of {nest.stage!r}",
        why=f"{conflict}, and would run at once",
        fix=fix,
        nest=nest,
    )


@dataclass(frozen=True, slots=True)
class Parallel(Directive):
    """parallel for x: s     the iterations run in any order, on several cores or GPU programs

    Outermost, `parallel` and `gpu_blocks` are one idea: OpenMP on C, program ids on Triton.
    """

    keyword: ClassVar[str] = "parallel"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.PARALLEL)


@dataclass(frozen=True, slots=True)
class GpuBlocks(Directive):
    """gpu_block x, y: s     the loops become program ids, the last one named the fastest"""

    keyword: ClassVar[str] = "gpu_blocks"
    on_variants: ClassVar[bool] = True
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
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.VECTORIZED)
