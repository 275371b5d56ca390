"""The directives, one family a file, and the table that a schedule's text is read with."""

from tensorlang.directives.base import (
    ROOT,
    Directive,
    Level,
    Merge,
    Placement,
    Rolling,
    State,
    Storage,
)
from tensorlang.directives.bounds import AlignBounds, Bound, BoundExtent
from tensorlang.directives.copies import CloneIn, In
from tensorlang.directives.factoring import RFactor
from tensorlang.directives.hardware import (
    Cache,
    DependentLaunch,
    GpuRegisters,
    GpuWarps,
    LoadWith,
    PipelineLoop,
    Prefetch,
    StoreWith,
    WarpSpecialize,
)
from tensorlang.directives.loops import Fuse, Rename, Reorder, Serial, Split, Tile, Unroll
from tensorlang.directives.nest import Binding, Conditions, Loop, Nest, Variant
from tensorlang.directives.parallel import Atomic, GpuBlocks, Parallel, Vectorize
from tensorlang.directives.placement import (
    ComputeAt,
    ComputeInline,
    ComputeRoot,
    ComputeWith,
    StoreAt,
    StoreRoot,
)
from tensorlang.directives.rolling import RollingUpdate
from tensorlang.directives.storage import AlignStorage, FoldStorage, StoreIn
from tensorlang.directives.variants import Specialize, SpecializeFail

DIRECTIVES: dict[str, type[Directive]] = {
    d.keyword: d
    for d in (
        *(Split, Tile, Fuse, Reorder, Rename, Serial, Unroll),
        *(Parallel, Vectorize, GpuBlocks, Atomic),
        *(ComputeInline, ComputeRoot, ComputeAt, ComputeWith, StoreAt, StoreRoot),
        *(StoreIn, FoldStorage, AlignStorage),
        *(Bound, BoundExtent, AlignBounds),
        *(RFactor, In, CloneIn, RollingUpdate),
        *(Specialize, SpecializeFail),
        *(
            PipelineLoop,
            GpuWarps,
            GpuRegisters,
            DependentLaunch,
            WarpSpecialize,
            LoadWith,
            StoreWith,
            Cache,
        ),
        Prefetch,
    )
}

__all__ = [
    "DIRECTIVES",
    "ROOT",
    "Binding",
    "Directive",
    "Level",
    "Loop",
    "Merge",
    "Nest",
    "Conditions",
    "Placement",
    "Rolling",
    "State",
    "Storage",
    "Variant",
]
