"""Accumulators in memory become registers for the time of a loop.

    for k:                                    c = read(C)
        c = read(C)                           for k:
        write(C, c + e)              ->           c = c + e
                                              write(C, c)

Legal when everything that the loop does to that memory is to read and write one address, under one
mask, that the loop does not change, and not inside a branch, and when the address is in bounds also
if the loop runs no iteration: it then writes what it read.  Requires: every Access has its address.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tensorlang.backends.triton.tiles import (
    Assign,
    Bind,
    Branch,
    Combine,
    Declare,
    Kernel,
    Loop,
    Read,
    ReduceFirst,
    Tile,
    Write,
)
from tensorlang.ir.expr import Expr, Var


def promote_accumulators(kernel: Kernel) -> Kernel:
    """The kernel with the accumulators of its loops in registers."""
    promoting = _Promoting(kernel)
    body = promoting.block(kernel.body)
    mutable = kernel.mutable | promoting.tiles
    return replace(kernel, body=tuple(body), mutable=mutable, aliases=promoting.aliases)


class _Promoting:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.tiles: set[str] = set()
        self.aliases = dict(kernel.aliases)

    def block(self, tiles: Sequence[Tile]) -> list[Tile]:
        made: list[Tile] = []
        for tile in tiles:
            if isinstance(tile, Branch):
                made.append(Branch(tile.condition, tuple(self.block(tile.body))))
            elif isinstance(tile, Loop):
                made += self.loop(replace(tile, body=tuple(self.block(tile.body))))
            else:
                made.append(tile)
        return made

    def loop(self, loop: Loop) -> list[Tile]:
        """The loop with what goes before and after it."""
        before: list[Tile] = []
        after: list[Tile] = []
        for pointer in dict.fromkeys(t.at.pointer for t in loop.body if isinstance(t, Write)):
            found = self._accumulator(loop, pointer)
            if found is not None:
                loop = self._promoted(loop, *found, before, after)
        return [*before, loop, *after]

    def _accumulator(self, loop: Loop, pointer: str) -> tuple[Read, Write] | None:
        """The read and the write to move out of the loop."""
        accesses = [t for t in _accesses(loop.body) if t.at.pointer == pointer]
        if any(t not in set(loop.body) for t in accesses):
            return None
        reads = [t for t in accesses if isinstance(t, Read)]
        writes = [t for t in accesses if isinstance(t, Write)]
        if len(reads) != 1 or len(writes) != 1:
            return None
        [read], [write] = reads, writes
        if not write.movable:
            return None
        address = write.at.address
        if address is None:
            return None
        fixed = address.free | (frozenset[str]() if write.mask is None else write.mask.free)
        if read.at.address is not address or not fixed.isdisjoint(_changed(loop)):
            return None
        # The lanes of the address are those of the tile, in one order.
        lanes = self.kernel.lanes
        if set(lanes.of_name(read.name)) != set(lanes.of(address)):
            return None
        return (read, write) if loop.body.index(read) < loop.body.index(write) else None

    def _promoted(
        self, loop: Loop, read: Read, write: Write, before: list[Tile], after: list[Tile]
    ) -> Loop:
        name, lanes = read.name, self.kernel.lanes.of_name(read.name)
        this = Var(name, read.at.dtype)
        self.tiles.add(name)
        before.append(replace(read, mask=write.mask))
        after.append(replace(write, value=this, movable=write.movable - 1))
        assign = Assign(name, _cast(write.value, this), lanes)
        body = tuple(assign if t is write else t for t in loop.body if t is not read)
        return replace(loop, body=body)


def _cast(value: Expr, this: Var) -> Expr:
    return value if value.dtype is this.dtype else this.dtype.storage(value)


def _accesses(tiles: Sequence[Tile]) -> Iterator[Read | Write]:
    for tile in tiles:
        if isinstance(tile, Read | Write):
            yield tile
        elif isinstance(tile, Loop | Branch):
            yield from _accesses(tile.body)


def _changed(loop: Loop) -> set[str]:
    """The names that get values inside a loop."""
    found = {loop.name}
    stack: list[Tile] = list(loop.body)
    while stack:
        tile = stack.pop()
        match tile:
            case Bind() | Read() | Declare() | Assign():
                found.add(tile.name)
            case ReduceFirst() | Combine():
                found.update(tile.names)
            case Loop():
                found.add(tile.name)
                stack += tile.body
            case Branch():
                stack += tile.body
            case _:
                pass
    return found
