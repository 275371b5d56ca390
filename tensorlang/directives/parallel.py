"""parallel, vectorize, gpu_blocks, atomic: iterations that run at once."""

from dataclasses import dataclass, replace
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.directives.nest import Loop, Nest
from tensorlang.directives.order import Order
from tensorlang.ir.associativity import reorders_freely
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
    """Iterations that conflict run at once only as a tree reduction, or as a parallel scan."""
    definition = state.funcs[nest.func].definitions[nest.number]
    order = Order(definition, nest)
    conflict = order.conflict_of(loop.name)
    if conflict is None or nest.atomic:
        return
    mixed = any(v in loop.origins for v in definition.pure if v is not None)
    if kind is LoopKind.VECTORIZED and order.is_associative() and not mixed:
        return
    if kind is LoopKind.VECTORIZED and order.is_scan(loop.name):
        return
    if kind is LoopKind.VECTORIZED and order.is_associative():
        fix = f"vectorize a loop that comes from the RDom alone: {loop.name!r} is fused from both"
    elif order.is_associative():
        fix = (
            f"vectorize {loop.name!r} (a tree reduction), rfactor it and {directive.keyword} "
            "the loop of the new Func, or make the update atomic() first"
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


@dataclass(frozen=True, slots=True, eq=False)
class Parallel(Directive):
    """parallel for x: s     the iterations run in any order, on several cores or GPU programs

    Outermost, `parallel` and `gpu_blocks` are one idea: OpenMP on C, program ids on Triton.
    """

    keyword: ClassVar[str] = "parallel"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.PARALLEL)


@dataclass(frozen=True, slots=True, eq=False)
class GpuBlocks(Directive):
    """gpu_block x, y: s     the loops become program ids, the last one named the fastest"""

    keyword: ClassVar[str] = "gpu_blocks"
    on_variants: ClassVar[bool] = True
    vars: tuple[str, ...]

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        for var in self.vars:
            _mark(self, state, stage, var, LoopKind.GPU_BLOCK)


@dataclass(frozen=True, slots=True, eq=False)
class Vectorize(Directive):
    """vectorized for x: s     the iterations are lanes: of a SIMD vector (C), of a tile (Triton)

    The extent is a constant or a whole dimension.  An RDom loop of an associative update becomes a
    tree reduction, and the innermost loop of a scan by an associative operator a parallel prefix:

        vectorized k: f[k] = f[k - 1] op e[k]   ->   f[k] = f[before] op (e[first] op .. op e[k])
    """

    keyword: ClassVar[str] = "vectorize"
    on_variants: ClassVar[bool] = True
    var: str

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        _mark(self, state, stage, self.var, LoopKind.VECTORIZED)


@dataclass(frozen=True, slots=True, eq=False)
class Atomic(Directive):
    """f[p] = f[p] op e   ->   atomic f[p] = f[p] op e

    Loops of the update's RDom may then be parallel, gpu_blocks or vectorized although several
    iterations update one element: each loads, combines and stores in one step, in any order.  Legal
    for an operator that is proven to be associative and commutative: `+ * & | ^`, minimum and
    maximum.  The order of a float sum is not fixed, so that its rounding may differ between calls.
    A GPU has atomic operations for sums and integers; elsewhere `rfactor` gives partial results.

    Raises: ScheduleError: not-associative.
    See: Halide's Stage::atomic.
    """

    keyword: ClassVar[str] = "atomic"
    on_variants: ClassVar[bool] = True

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        definition = state.funcs[nest.func].definitions[nest.number]
        if not reorders_freely(nest.func, definition.indices, definition.values):
            raise self.error(
                "not-associative",
                f"cannot make {nest.stage!r} atomic",
                why="it is no known operation whose terms can be combined in any order",
                fix="write it as f[p] = f[p] op e with one of + * & | ^, minimum or maximum, and "
                "an e that does not read f; or rfactor an argmin or argmax",
                nest=nest,
            )
        state.nests[stage] = replace(nest, atomic=True)
