"""Barriers: what one thread of a program writes to memory, another may read, and the reverse.

    Write(f) ... Read(f)     a barrier between them, also around the back edge of a loop
    Read(f) ... Write(f)     likewise

One barrier clears everything before it.  A loop whose body writes memory that it reads is emitted
with one stage: Triton would otherwise prefetch the read over the write.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tensorlang.backends.triton.share import walk_tiles
from tensorlang.backends.triton.tiles import (
    Arrive,
    Barrier,
    Branch,
    Kernel,
    Loop,
    Read,
    Tile,
    Write,
)


@dataclass(slots=True)
class _Pending:
    """What was written and read since the last barrier, by the names of pointers."""

    written: set[str] = field(default_factory=set[str])
    read: set[str] = field(default_factory=set[str])

    def clear(self) -> None:
        self.written.clear()
        self.read.clear()

    def conflict(self, tile: Tile) -> str | None:
        match tile:
            case Read() if tile.at.pointer in self.written:
                return tile.at.pointer
            case Write() if tile.at.pointer in self.written | self.read:
                return tile.at.pointer
            case _:
                return None

    def see(self, tile: Tile) -> None:
        match tile:
            case Read() if not tile.at.memory.constant:
                self.read.add(tile.at.pointer)
            case Write():
                self.written.add(tile.at.pointer)
            case _:
                pass


def place_barriers(kernel: Kernel) -> Kernel:
    """The kernel with a barrier wherever two accesses to one memory conflict."""
    both = {t.at.pointer for t in walk_tiles(kernel.body) if isinstance(t, Write)}
    both &= {t.at.pointer for t in walk_tiles(kernel.body) if isinstance(t, Read)}
    if not both:
        return kernel
    pending = _Pending()
    return replace(kernel, body=tuple(_block(kernel.body, pending, both)))


def _block(tiles: Sequence[Tile], pending: _Pending, both: set[str]) -> list[Tile]:
    made: list[Tile] = []
    for tile in tiles:
        if isinstance(tile, Loop):
            made.append(_loop(tile, pending, both))
            continue
        if isinstance(tile, Branch):
            made.append(_branch(tile, pending, both))
            continue
        conflict = pending.conflict(tile)
        if conflict is not None and conflict in both:
            made.append(Barrier(conflict))
            pending.clear()
        if isinstance(tile, Arrive):
            made.append(Barrier("what this program wrote is in memory"))
            pending.clear()
        pending.see(tile)
        made.append(tile)
    return made


def _loop(tile: Loop, pending: _Pending, both: set[str]) -> Loop:
    # What the end of one iteration leaves pending meets the start of the next.
    for inner in walk_tiles(tile.body):
        pending.see(inner)
    body = tuple(_block(tile.body, pending, both))
    touched = {t.at.pointer for t in walk_tiles(body) if isinstance(t, Write)}
    return replace(tile, body=body, stages=1 if touched & both else tile.stages)


def _branch(tile: Branch, pending: _Pending, both: set[str]) -> Branch:
    # Taken or not, what was pending before is pending after; a barrier inside is of no use then.
    before = replace(pending, written=set(pending.written), read=set(pending.read))
    body = tuple(_block(tile.body, pending, both))
    pending.written |= before.written
    pending.read |= before.read
    return Branch(tile.condition, body)
