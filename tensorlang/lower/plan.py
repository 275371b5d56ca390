"""What the first passes read beside the program: the algorithm and what its schedule made."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorlang.algorithm import Algorithm
from tensorlang.directives import ROOT, Level, Merge, Nest, Placement, Rolling, Storage
from tensorlang.ir.stmt import Assert, Hints
from tensorlang.ir.widening import Widening


@dataclass(frozen=True, slots=True)
class Group:
    """The members of a rolled pass in the order in which they update; the anchor holds the loop."""

    rolling: Rolling
    members: tuple[str, ...]

    @property
    def anchor(self) -> str:
        return self.rolling.into


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The final nests, and a placement for every Func."""

    algorithm: Algorithm
    nests: Mapping[tuple[str, int], Nest]
    placements: Mapping[str, Placement]
    storage: Mapping[str, Storage] = field(default_factory=dict[str, Storage])
    hints: Mapping[str, Hints] = field(default_factory=dict[str, Hints])
    widenings: Mapping[str, tuple[Widening, ...]] = field(
        default_factory=dict[str, tuple[Widening, ...]]
    )
    merges: tuple[Merge, ...] = ()
    groups: tuple[Group, ...] = ()
    # What bound and bound_extent ask of a call.
    asserts: tuple[Assert, ...] = ()

    def stages(self, func: str) -> tuple[Nest, ...]:
        count = len(self.algorithm.func(func).definitions)
        return tuple(self.nests[func, n] for n in range(count))

    @property
    def outputs(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.algorithm.outputs)


__all__ = ["ROOT", "Group", "Level", "Merge", "Nest", "Placement", "Plan", "Rolling", "Storage"]
