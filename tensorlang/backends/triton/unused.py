"""Names that nothing reads are not computed."""

from collections.abc import Sequence
from dataclasses import replace

from tensorlang.backends.triton.share import roots_of
from tensorlang.backends.triton.tiles import Bind, Branch, Kernel, Loop, Tile


def drop_unused(kernel: Kernel) -> Kernel:
    """The kernel without a Bind of a name that is read nowhere after it."""
    return replace(kernel, body=tuple(_kept(kernel.body, set(), kernel)))


def _kept(tiles: Sequence[Tile], read: set[str], kernel: Kernel) -> list[Tile]:
    """Those of the statements that count; `read` grows by the names that they read."""
    made: list[Tile] = []
    for tile in reversed(tiles):
        if isinstance(tile, Bind) and tile.name not in read:
            continue
        made.append(tile)
        if isinstance(tile, Loop | Branch):
            # An iteration reads what the one before it has assigned, never what it has bound.
            made[-1] = replace(tile, body=tuple(_kept(tile.body, read, kernel)))
        for root in roots_of(tile):
            read |= {kernel.aliases.get(name, name) for name in root.free}
    return made[::-1]
