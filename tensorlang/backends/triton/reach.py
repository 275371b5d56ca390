"""Whether 32 bits hold every index of a kernel: decided at each call, from sizes and strides.

The range of every index expression is computed with numbers, names standing for the ranges that
their loops give them.  A kernel whose expressions all stay well inside 32 bits uses them.
"""

from collections.abc import Iterable, Mapping

from tensorlang.backends.triton.share import walk_tiles
from tensorlang.backends.triton.tiles import (
    Arrive,
    Bind,
    Branch,
    Kernel,
    Lane,
    Loop,
    Read,
    Tile,
    Write,
)
from tensorlang.ir.expr import Const, Expr, Name
from tensorlang.ir.ranges import UNKNOWN, Range, add, intersect, range_of
from tensorlang.ir.types import DType, Kind, index
from tensorlang.ir.walk import fold, postorder

# Lanes beyond a mask compute addresses too, and a tile's lanes come on top of its origin.
_LIMIT = 2**31 - 2**24
# No name of a kernel: how many programs there are.
_PROGRAMS = "all programs"


class Reach:
    """The index expressions of one kernel, ready to be measured."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.tiles = list(walk_tiles(kernel.body))
        self.lanes = _lanes(kernel, self.tiles)
        # Bits of sizes, strides and extents -> whether numbers of so many bits may need 64.
        self._by_bits: dict[tuple[int, ...], bool] = {}

    def is_wide(
        self,
        names: Mapping[str, int],
        strides: Mapping[str, int],
        extents: Mapping[str, int],
        programs: int | None = None,
    ) -> bool:
        """Whether any index expression may leave 32 bits.

        Args:
            names: sizes and host variables.
            strides: by the name of the stride.
            extents: symbolic extents of lanes.
            programs: how many run; None where `names` has all that the grid depends on.
        """
        values = {**names, **strides, **extents}
        if programs is not None:
            values[_PROGRAMS] = programs
        bits = tuple(map(int.bit_length, values.values()))
        if bits not in self._by_bits:
            self._by_bits[bits] = self._reaches({n: _alike(v) for n, v in values.items()})
        # All numbers of so many bits stay inside, or these have to be looked at one by one.
        return self._by_bits[bits] and self._reaches({n: (v, v) for n, v in values.items()})

    def _reaches(self, known: dict[str, Range]) -> bool:
        """Whether any index expression may leave 32 bits, for numbers in these ranges."""
        memo: dict[Expr, Range] = {}
        most = known.get(_PROGRAMS, UNKNOWN)[1]
        inside: Range = UNKNOWN if most is None else (0, most)
        programs = 1
        for g in self.kernel.grid:
            # No loop of the grid is longer than all of it; a name of its extent may not be known.
            known[g.name] = intersect(_counter(_measure(g.extent, known, memo)), inside)
            programs *= (known[g.name][1] or 0) + 1
        known["program"] = intersect((0, programs), inside)
        for lane in self.lanes:
            size = lane.extent if isinstance(lane.extent, int) else known[lane.extent][1] or 0
            known[lane.var.name] = (0, size - 1)
        if (known["program"][1] or 0) > _LIMIT:
            return True
        return any(self._leaves(tile, known, memo) for tile in self.tiles)

    def _leaves(self, tile: Tile, known: dict[str, Range], memo: dict[Expr, Range]) -> bool:
        roots = list(_indices(tile))
        ranges = [_measure(e, known, memo) for e in roots]
        match tile:
            case Bind() if tile.value.dtype is index:
                known[tile.name] = ranges[0]
            case Loop():
                low, count = ranges
                known[tile.name] = (low[0], add(low, count)[1])
            case _:
                pass
        return any(
            _is_beyond(memo[e]) for root in roots for e in postorder(root) if e.dtype is index
        )


def _alike(value: int) -> Range:
    """All numbers of as many bits, and with the sign of `value`."""
    high = (1 << abs(value).bit_length()) - 1
    low = (high + 1) // 2
    return (low, high) if value >= 0 else (-high, -low)


def _counter(extent: Range) -> Range:
    return 0, None if extent[1] is None else max(extent[1] - 1, 0)


def _is_beyond(found: Range) -> bool:
    low, high = found
    return low is None or high is None or low < -_LIMIT or high > _LIMIT


def _measure(root: Expr, known: Mapping[str, Range], memo: dict[Expr, Range]) -> Range:
    def step(e: Expr, operands: list[Range]) -> Range:
        if isinstance(e, Name):
            # A pointer counts as 0: only what is added to it is an index.
            return (0, 0) if e.name.endswith(".ptr") else known.get(e.name, _of_dtype(e.dtype))
        return range_of(e, operands)

    return fold(root, step, memo)


def _of_dtype(dtype: DType) -> Range:
    if dtype.kind is Kind.INDEX or not dtype.is_integer:
        return UNKNOWN
    return dtype.lowest, dtype.highest


def _indices(tile: Tile) -> Iterable[Expr]:
    """The expressions of a statement that may hold indices."""
    match tile:
        case Bind():
            return (tile.value,)
        case Read() | Write():
            parts = (*tile.at.parts, tile.mask, tile.value if isinstance(tile, Write) else None)
            return [e for e in parts if e is not None]
        case Arrive():
            return tile.at.parts
        case Loop():
            return (tile.min, tile.extent)
        case Branch():
            return (tile.condition,)
        case _:
            value = getattr(tile, "value", None)
            return getattr(tile, "terms", None) or ([] if value is None else [value])


def _lanes(kernel: Kernel, tiles: Iterable[Tile]) -> set[Lane]:
    found: set[Lane] = set()
    for tile in tiles:
        found.update(kernel.lanes.of(*_indices(tile)))
        for e in postorder(*_indices(tile)):
            if isinstance(e, Name) and not isinstance(e, Const):
                found.update(kernel.lanes.of_name(e.name))
    return found
