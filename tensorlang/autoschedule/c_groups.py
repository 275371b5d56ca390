"""Where the C scheduler computes each Func: inlined, inside a Func at root, or at root itself.

Consumers are decided first.  A pure Func is inlined while that repeats little work.  Any other is
computed inside the one root Func that all its readers are, or are inside of, at the innermost loop
there on whose rows it is read, if what is kept for that fits the cache:

    at a row       out[y, x] reads t[y]: t is computed for each y
    in a window    out[y, x] reads f[y - 1 .. y + 1, x]: each row of f is computed once, when the
                   first row of out needs it, and kept while the others do
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf, prod

from tensorlang.algorithm import (
    Algorithm,
    Definition,
    FuncRecord,
    exprs_of_definition,
    reads_of,
)
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.reach import Reach, reach_of, through, union
from tensorlang.ir.expr import Binary, Call, Const, Expr, Load, Name, Var
from tensorlang.ir.linear import to_linear
from tensorlang.ir.walk import loads_of, postorder
from tensorlang.target import Target

# Operations that inlining may repeat for a point: what storing and loading one costs.
_REPEATED = 4
# The same for a function of one value, where the whole array is larger than the caches.
_REPEATED_IF_LARGE = 64
# The largest cache, where it is not known.
_CACHED = 8 << 20
# What a function, a division, and a load across the rows of an array cost in additions.
_FUNCTION, _DIVISION, _GATHER = 10, 4, 4
# Of a variable with many values that a reader loops over but the Func does not know.
_MANY = 16
# The most rows of a window: what is computed twice at the border of two strips.
_WINDOW = 33


@dataclass(frozen=True, slots=True)
class Place:
    """Where a Func is computed: inside `root`, of which each point reads `reach`.

    Args:
        level: the dimension of the root whose loop computes it.
        window: how many rows along that dimension one row of the root reads; 1 is its own row.
    """

    root: str
    reach: Reach
    level: int
    window: int


@dataclass(slots=True)
class Group:
    """A root Func, the order of its loops but the innermost, and what is computed inside."""

    root: str
    order: tuple[int, ...]
    members: dict[str, Place] = field(default_factory=dict[str, Place])

    def windows(self) -> Iterator[tuple[str, Place]]:
        """The members that are kept in windows."""
        return ((name, place) for name, place in self.members.items() if place.window > 1)


class Groups:
    """Decides for every Func of an algorithm."""

    def __init__(self, algorithm: Algorithm, extents: Extents, target: Target) -> None:
        self.algorithm = algorithm
        self.extents = extents
        self.budget = _budget(target)
        self._cached = max(target.caches, default=_CACHED)
        self.funcs = {f.name: f for f in algorithm.funcs}
        self.inlined: set[str] = set()
        self.roots: dict[str, Group] = {}
        self.inside: dict[str, Group] = {}
        self._copies: dict[str, float] = {}
        self._consumers: dict[str, list[str]] = {}
        for reader in algorithm.funcs:
            for name in reads_of(reader) - {reader.name}:
                self._consumers.setdefault(name, []).append(reader.name)
        outputs = {name for name, _ in algorithm.outputs}
        for func in reversed(algorithm.funcs):
            if func.name in outputs or not self._is_inside(func):
                self.roots[func.name] = Group(func.name, tuple(range(len(func.dims) - 1)))

    def _is_inside(self, func: FuncRecord) -> bool:
        """Inline the Func, or compute it inside another, where that is worth it."""
        repeated = self._repeated(func)
        if repeated > _REPEATED and self._joins(func):
            return True
        is_inlined = repeated <= _REPEATED or self._is_cheap_at_large(func)
        if is_inlined:
            self.inlined.add(func.name)
        return is_inlined

    def _repeated(self, func: FuncRecord) -> float:
        """Operations that are done again for a point of a Func that is inlined."""
        copies = sum(self._times(func, reader) for reader in self._consumers.get(func.name, ()))
        self._copies[func.name] = copies
        return cost(func) * (copies - 1) if func.is_pure else inf

    def _is_cheap_at_large(self, func: FuncRecord) -> bool:
        """Whether a point is computed again sooner than it comes back from beyond the caches."""
        size = prod(self.extents.shape(func)) * sum(d.bits // 8 or 1 for d in func.dtypes)
        if not func.is_pure or size <= self._cached:
            return False
        # What reads several points would load all of them again.
        is_pointwise = len(set(loads_of(*func.definitions[0].values))) <= 1
        return is_pointwise and self._repeated(func) <= _REPEATED_IF_LARGE

    def _times(self, func: FuncRecord, reader: str) -> float:
        """How often a point of `func` is read by a point of a Func with loops, through `reader`."""
        times = 0.0
        for definition in self.funcs[reader].definitions:
            loads = {x for x in loads_of(*exprs_of_definition(definition)) if x.buffer == func.name}
            times += sum(self._repeats(load, self.funcs[reader], definition) for load in loads)
        return times * (self._copies[reader] if reader in self.inlined else 1)

    def _repeats(self, load: Load, reader: FuncRecord, definition: Definition) -> float:
        """Over how many points of the reader's loops one point of the load stays the same.

        Of a load at 2*x only every other point is read at all.
        """
        names = frozenset[str]().union(*(e.free for e in load.indices))
        repeats = 1.0
        for e in load.indices:
            steps = [abs(c) for atom, c in to_linear(e).terms.items() if isinstance(atom, Var)]
            repeats /= max(1, *steps) if len(steps) == 1 else 1
        for name in definition.loops:
            if name not in names:
                repeats *= self._extent(name, reader, definition)
        return repeats

    def _extent(self, name: str, reader: FuncRecord, definition: Definition) -> int:
        dims = definition.domain.dims if definition.domain else ()
        known = next((extent for loop, _, extent in dims if loop == name), None)
        if known is not None:
            return min(self.extents.of(known), _MANY)
        return min(self.extents.shape(reader)[definition.pure.index(name)], _MANY)

    # --------------------------------------------------------------------------------- members

    def _joins(self, func: FuncRecord) -> bool:
        """Compute the Func inside the group of all its readers, where it has a place there."""
        found = self._readers(func.name)
        groups = {id(group): group for group, _ in found}
        if len(groups) != 1:
            return False
        (group,) = groups.values()
        root = self.funcs[group.root]
        if not root.is_pure or not func.dims:
            return False
        reach = found[0][1]
        for _, other in found[1:]:
            reach = union(reach, other)
        return self._placed(func, group, reach)

    def _readers(self, name: str) -> list[tuple[Group, Reach]]:
        """The group of each Func with loops that reads `name`, and what its root's point reads."""
        found: list[tuple[Group, Reach]] = []
        for reader in self._consumers.get(name, ()):
            here = reach_of(self.funcs[reader], name)
            assert here is not None
            if reader in self.inlined:
                found += [(g, through(here, r)) for g, r in self._readers(reader)]
            elif reader in self.roots:
                found.append((self.roots[reader], here))
            else:
                group = self.inside[reader]
                found.append((group, through(here, group.members[reader].reach)))
        return found

    def _placed(self, func: FuncRecord, group: Group, reach: Reach) -> bool:
        """Take the Func in, its loops outermost, if all members then have places that fit."""
        followed = {f.dim for f in reach if f is not None}
        order = tuple(sorted(group.order, key=lambda d: d not in followed))
        reaches = {name: place.reach for name, place in group.members.items()}
        reaches[func.name] = reach
        places: dict[str, Place] = {}
        size = 0
        for name, there in reaches.items():
            level, window = _level(order, there)
            if level is None or window > _WINDOW:
                return False
            places[name] = Place(group.root, there, level, window)
            outer = order[: order.index(level) + 1]
            size += self._kept(self.funcs[name], there, outer, window)
        # Windows slide along one dimension of the root.
        if len({place.level for place in places.values() if place.window > 1}) > 1:
            return False
        if group.members and size > self.budget:
            return False
        group.order, group.members = order, places
        self.inside[func.name] = group
        return True

    def _kept(self, func: FuncRecord, reach: Reach, outer: tuple[int, ...], window: int) -> int:
        """Bytes of what is kept of a Func while the loops inside `outer` run."""
        count = window
        for follows, extent in zip(reach, self.extents.shape(func), strict=True):
            if follows is None or follows.dim not in outer:
                count *= extent
        return count * sum(dtype.bits // 8 or 1 for dtype in func.dtypes)


def _level(order: tuple[int, ...], reach: Reach) -> tuple[int | None, int]:
    """The innermost loop down to which each is followed, and the rows of its window there."""
    spreads = {f.dim: f.spread for f in reach if f is not None}
    level: int | None = None
    for dim in order:
        if dim not in spreads:
            break
        level = dim
        if spreads[dim]:
            return level, spreads[dim] + 1
    return level, 1


def _budget(target: Target) -> int:
    """Bytes that a group may keep: of each core's share of the caches, half."""
    second = target.caches[1] if len(target.caches) > 1 else 1 << 18
    third = target.caches[2] // max(target.cores, 1) if len(target.caches) > 2 else 0
    return max(second, third) // 2


def cost(func: FuncRecord) -> int:
    """The operations of one point of a pure Func, in additions; those on indices count too."""
    (definition,) = func.definitions
    loads = loads_of(*definition.values)
    gathers = sum(_is_gather(load, func.dims[-1]) for load in loads) if func.dims else 0
    return sum(_cost(e) for e in postorder(*definition.values)) + _GATHER * gathers


def _is_gather(load: Load, lane: str) -> bool:
    """Whether neighbours along the last dimension are apart in memory: a transposed array."""
    return any(lane in index.free for index in load.indices[:-1])


def _cost(e: Expr) -> int:
    match e:
        case Call():
            return _FUNCTION
        case Binary(op="div" | "floordiv" | "mod"):
            return _DIVISION
        case Load() | Name() | Const():
            return 0
        case _:
            return 1
