"""rfactor(merge="last"): partial results are merged by the last program that has made one.

    launch over (t, u): W[u, tile t] = partial result         launch over (t, u):
    launch over t:      D[tile t] = sum over u of W      ->       W[u, tile t] = partial result
                                                                  if all u of t have arrived:
                                                                      D[tile t] = sum over u of W

The second launch costs what a launch costs, and waits for all of the first.  Programs count on a
memory of zeros, which the last of each tile leaves at zero.

Requires: what a program of the second launch reads of W is what the programs of the first with the
same t have written, and nothing else passes between them.  Where that is not seen to hold, there
are two launches, and a note.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tensorlang.backends.triton.build import Launch, build
from tensorlang.backends.triton.masks import conjuncts, in_bounds
from tensorlang.backends.triton.partition import HostIf, HostLet, HostLoop, HostStep, Workspace
from tensorlang.backends.triton.share import walk_tiles
from tensorlang.backends.triton.tiles import SHARED, Bind, Kernel, Lane, Memory, Read, Write
from tensorlang.ir.expr import Compare, Expr, Unary, Var
from tensorlang.ir.linear import Linear, expanded, integer, to_expr, to_linear
from tensorlang.ir.stmt import Allocate, Buffer, walk
from tensorlang.ir.walk import substitute


def merge_arrivals(steps: Sequence[HostStep]) -> tuple[tuple[HostStep, ...], tuple[str, ...]]:
    """The host's steps with two launches in one where a schedule asks for it, and notes."""
    notes: list[str] = []
    return tuple(_merged(steps, notes)), tuple(notes)


def _merged(steps: Sequence[HostStep], notes: list[str]) -> Iterator[HostStep]:
    asked = {s.buffer.name for s in steps if isinstance(s, Workspace) and _asks(s.buffer)}
    # A launch that makes partial results, until it is seen who merges them.  Names and workspaces
    # may as well be made before it.
    first: Launch | None = None
    for step in steps:
        if isinstance(step, HostLet | Workspace):
            yield step
            continue
        if first is not None:
            if isinstance(step, Launch):
                why = _obstacle(first, step)
                if not why:
                    yield from _joined(first, step)
                    first = None
                    continue
            else:
                why = "the host decides between them"
            notes.append(f"the partial results of '{first.name}' are merged by a kernel: {why}")
            yield first
            first = None
        if isinstance(step, HostIf | HostLoop):
            yield replace(step, body=tuple(_merged(step.body, notes)))
        elif _makes_partials(step, asked):
            first = step
        else:
            yield step
    if first is not None:
        yield first


def _asks(buffer: Buffer) -> bool:
    return ("merge", "last") in buffer.hints


def _makes_partials(launch: Launch, asked: set[str]) -> bool:
    """Whether it computes partial results that the last program is asked to merge."""
    inside = any(isinstance(s, Allocate) and _asks(s.buffer) for s in walk(launch.body))
    return inside or any(not m.constant and name in asked for name, m in launch.memories.items())


def _joined(first: Launch, last: Launch) -> Iterator[HostStep]:
    """Both in one launch; without partial results there are no programs, and `last` runs alone."""
    some: Expr = Compare("lt", integer(0), first.grid[-1].extent)
    if first.facts.proves(some):
        yield _in_one(first, last)
        return
    yield HostIf(some, (_in_one(first, last),))
    yield HostIf(Unary("not", some), (replace(last, name=f"{last.name}_of_none"),))


def _in_one(first: Launch, last: Launch) -> Launch:
    memories = {**last.memories, **first.memories}
    for name in first.memories.keys() & last.memories.keys():
        if not first.memories[name].constant:
            memories[name] = replace(first.memories[name], cache=SHARED)
    return replace(
        first,
        name=last.name,
        memories=memories,
        scalars={**first.scalars, **last.scalars},
        facts=last.facts,
        last=last,
    )


def _obstacle(first: Launch, last: Launch) -> str:
    """Why the last program of each tile cannot merge; empty if it can."""
    made, merging = build(first), build(last)
    if len(made.grid) != len(merging.grid) + 1:
        return "its grid is not that of the merging kernel and one loop over partial results"
    pairs = [*zip(made.grid, merging.grid, strict=False)]
    if any(a.extent is not b.extent for a, b in pairs):
        return "its grid differs from that of the merging kernel"
    written = {m.parameter: m for m in made.memories if _writes(made, m)}
    shared = [m for m in merging.memories if m.parameter in written]
    others = {m.parameter for m in made.memories}
    if len(written) != 1 or len(shared) != 1 or made.counters:
        return "other values pass between them"
    if any(_writes(merging, m) and m.parameter in others for m in merging.memories):
        return "the merging kernel writes what other programs may still read"
    names = {b.name: Var(a.name) for a, b in pairs}
    return _uncovered(made, merging, shared[0].parameter, names)


def _writes(kernel: Kernel, memory: Memory) -> bool:
    tiles = walk_tiles(kernel.body)
    return any(isinstance(t, Write) and t.at.memory.parameter == memory.parameter for t in tiles)


def _uncovered(made: Kernel, merging: Kernel, name: str, names: Mapping[str, Expr]) -> str:
    """Whether programs read of the memory `name` something else than those of their tile wrote."""
    part = made.grid[-1].name
    writes = [t for t in walk_tiles(made.body) if isinstance(t, Write)]
    outermost = set(made.body)
    reads = [t for t in walk_tiles(merging.body) if isinstance(t, Read)]
    wrote, read = _Forms(made, {}), _Forms(merging, names)
    kept: dict[int, tuple[_Side, ...]] = {}
    for write in writes:
        if write not in outermost or write.operator or not wrote.is_plain(write):
            return "a partial result is not one whole tile"
        kept[write.at.component] = tuple(wrote.side(e) for e in write.at.offsets)
    for tile in reads:
        if tile.at.memory.parameter != name:
            continue
        sides = kept.get(tile.at.component)
        if sides is None:
            return "it does not write all that is merged"
        for mine, offset in zip(sides, tile.at.offsets, strict=True):
            is_part = mine.is_name(part)
            if not is_part and (part in mine.free or not mine.equals(read.side(offset))):
                return "a tile is not merged from the partial results of the same tile"
    return ""


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """An index: a number, and the lane that runs along it."""

    start: Linear
    lane: Lane | None

    @property
    def free(self) -> frozenset[str]:
        return to_expr(self.start).free

    def is_name(self, name: str) -> bool:
        """Whether it is a name alone."""
        return self.lane is None and to_expr(self.start) is Var(name)

    def equals(self, other: "_Side") -> bool:
        """Whether it runs over the same indices."""
        apart = self.start - other.start
        extents = [None if s.lane is None else s.lane.extent for s in (self, other)]
        return not apart.terms and apart.constant == 0 and extents[0] == extents[1]


class _Forms:
    """The offsets of a kernel in terms of its programs, which `names` renames, and lanes."""

    def __init__(self, kernel: Kernel, names: Mapping[str, Expr]) -> None:
        self.lanes = kernel.lanes
        self.values: dict[str, Expr] = dict(names)
        for tile in walk_tiles(kernel.body):
            if isinstance(tile, Bind):
                self.values[tile.name] = substitute(tile.value, self.values)

    def form(self, e: Expr) -> Linear:
        return expanded(to_linear(substitute(e, self.values)))

    def side(self, offset: Expr) -> _Side:
        """An index; one that is not a number and a lane equals no other."""
        form = self.form(offset)
        lanes = self.lanes.of(offset)
        if len(lanes) == 1 and form.terms.get(lanes[0].var) == 1:
            return _Side(form.without(lanes[0].var), lanes[0])
        return _Side(form, None)

    def is_plain(self, write: Write) -> bool:
        """Whether every lane is an index of its own, and the bounds of the memory the only mask."""
        at = write.at
        sides = [self.side(e) for e in at.offsets]
        lanes = [side.lane for side in sides if side.lane is not None]
        if len(set(lanes)) < len(lanes) or set(lanes) != set(self.lanes.of(*at.offsets)):
            return False
        if self.lanes.of(*(to_expr(side.start) for side in sides)):
            return False
        own = [
            test
            for e, n in zip(at.offsets, at.memory.extents, strict=True)
            for test in in_bounds(e, n)
        ]
        bounds = [self.form(t.b - t.a) for t in own if isinstance(t, Compare)]
        parts = [] if write.mask is None else conjuncts(write.mask)
        return all(self.is_one_of(part, bounds) for part in parts)

    def is_one_of(self, test: Expr, bounds: Sequence[Linear]) -> bool:
        if not isinstance(test, Compare) or test.op != "lt":
            return False
        form = self.form(test.b - test.a)
        apart = [form - bound for bound in bounds]
        return any(not f.terms and f.constant == 0 for f in apart)
