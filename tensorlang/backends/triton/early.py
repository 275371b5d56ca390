"""What a straight line of tiles reads goes first: its reads wait for memory at one time.

    a = read A; b = sum(a); c = read C; d = b*c     ->     a = read A; c = read C; b = ...; d = ...

The merging part of a launch (arrival.py) has nothing to hide a wait behind.
"""

from collections.abc import Callable, Collection, Sequence

from tensorlang.backends.triton.share import walk_tiles
from tensorlang.backends.triton.tiles import (
    Arrive,
    Assign,
    Bind,
    Declare,
    Loop,
    Read,
    ReduceFirst,
    Tile,
    Write,
)
from tensorlang.ir.expr import Expr, Var


def reads_first(
    tiles: Sequence[Tile], mutable: Collection[str], expand: Callable[[Expr], Expr]
) -> tuple[Tile, ...]:
    """The tiles, with Reads (and what they are made of) before all else, each value read once.

    Args:
        mutable: the names that some tile changes.
        expand: an expression over what its names stand for.
    """
    early: list[Tile] = []
    late: list[Tile] = []
    held, written = set(mutable), set[str]()
    known: dict[tuple[object, ...], Expr] = {}
    for tile in tiles:
        if isinstance(tile, Bind) and tile.value.free.isdisjoint(held):
            early.append(tile)
        elif (
            isinstance(tile, Read)
            and _needs(tile).isdisjoint(held)
            and (tile.at.pointer not in written)
        ):
            mask = None if tile.mask is None else expand(tile.mask)
            key = (tile.at.pointer, tuple(map(expand, tile.at.offsets)), mask)
            value = known.setdefault(key, Var(tile.name, tile.at.dtype))
            is_first = value is Var(tile.name, tile.at.dtype)
            early.append(tile if is_first else Bind(tile.name, value))
        else:
            late.append(tile)
            for inner in walk_tiles((tile,)):
                held |= _bound(inner)
                if isinstance(inner, Write):
                    written.add(inner.at.pointer)
    return (*early, *late)


def _needs(tile: Read) -> frozenset[str]:
    parts = [*tile.at.offsets] if tile.mask is None else [*tile.at.offsets, tile.mask]
    return frozenset[str]().union(*(e.free for e in parts))


def _bound(tile: Tile) -> set[str]:
    """The names that a tile gives a value."""
    match tile:
        case ReduceFirst(names=names):
            return set(names)
        case Bind(name=name) | Read(name=name) | Declare(name=name) | Assign(name=name):
            return {name}
        case Arrive(name=name) | Loop(name=name):
            return {name}
        case _:
            return set()
