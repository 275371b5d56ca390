"""Tiles that Triton refuses, or compiles for minutes: the one thing that no schedule may ask for.

A constant tile is checked when the program is compiled, one whose extent is a size at the call.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from tensorlang.backends.triton.share import roots_of, walk_tiles
from tensorlang.backends.triton.tiles import Dot, Kernel, Lane, Reduce
from tensorlang.errors import TargetError
from tensorlang.ir.walk import postorder
from tensorlang.target import Target


@dataclass(frozen=True, slots=True)
class Limits:
    """The tiles of one kernel, and those that are reduced over three or more axes without a dot."""

    kernel: Kernel
    target: Target
    tiles: frozenset[tuple[Lane, ...]]
    reduced: frozenset[tuple[Lane, ...]]

    def check(self, extents: Mapping[str, int]) -> None:
        """Raise TargetError for a tile that is too large; extents that are not given count as 1."""
        self._check(self.tiles, extents, self.target.max_tile_elements, _TILE)
        self._check(self.reduced, extents, self.target.max_reduction_elements, _REDUCTION)

    def _check(
        self,
        tiles: Iterable[tuple[Lane, ...]],
        extents: Mapping[str, int],
        limit: int,
        why: str,
    ) -> None:
        for lanes in sorted(tiles, key=len):
            sizes = [_size(lane, extents) for lane in lanes]
            if prod(sizes) > limit:
                raise self._error(lanes, sizes, limit, why)

    def _error(
        self, lanes: tuple[Lane, ...], sizes: list[int], limit: int, why: str
    ) -> TargetError:
        names = [self.kernel.loops.get(lane, "a loop") for lane in lanes]
        longest = sizes.index(max(sizes))
        fits = max(limit // (prod(sizes) // sizes[longest]), 1)
        shape = "x".join(map(str, sizes))
        return TargetError(
            "tile-too-large",
            f"the tile {shape} of {' and '.join(map(repr, names))} has {prod(sizes)} elements",
            why=f"{why} takes at most {limit}",
            fix=f"split {names[longest]!r} by {fits} or less, and vectorize only the inner loop",
        )


_TILE = "a tile in Triton"
_REDUCTION = "a reduction over a tile of three or more axes without the matrix unit"


def limits_of(kernel: Kernel, target: Target) -> Limits:
    """The tiles of a kernel against the limits of a target."""
    tiles: set[tuple[Lane, ...]] = set()
    reduced: set[tuple[Lane, ...]] = set()
    for tile in walk_tiles(kernel.body):
        for e in postorder(*roots_of(tile)):
            if isinstance(e, Reduce):
                lanes = kernel.lanes.of(e.term)
                if len(lanes) >= 3:
                    reduced.add(lanes)
            if not isinstance(e, Dot):
                tiles.add(kernel.lanes.of(e))
    return Limits(kernel, target, frozenset(tiles), frozenset(reduced))


def _size(lane: Lane, extents: Mapping[str, int]) -> int:
    return lane.extent if isinstance(lane.extent, int) else extents.get(lane.extent, 1)
