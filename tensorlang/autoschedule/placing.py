"""Which Funcs get loops of their own, before any loop is scheduled.

Pure Funcs are inlined while that repeats little work; a Func with updates that one consumer reads
at its own point is computed inside that consumer's tile; everything else is at root.  What is made
of a matrix product at its own point, until it is read elsewhere, is a root with the product inside.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorlang.algorithm import Algorithm, FuncRecord, exprs_of_definition
from tensorlang.autoschedule.analysis import (
    contraction_of,
    is_recurrence,
    operations,
    own_positions,
)
from tensorlang.ir.walk import loads_of

# How many scalar operations inlining may repeat for each point of the consumer.
_REPEATED = 64


@dataclass(frozen=True, slots=True)
class Home:
    """The root Func that a Func is computed inside, and the Var of it for each dimension."""

    root: str
    vars: tuple[str, ...]


@dataclass(slots=True)
class Groups:
    """What becomes of each Func: a root, computed inside a root, or inlined."""

    roots: list[str] = field(default_factory=list[str])
    inside: dict[str, Home] = field(default_factory=dict[str, Home])
    inlined: set[str] = field(default_factory=set[str])
    # Of the roots those that one other root reads at its own point, though each is a recurrence.
    recurrences: dict[str, Home] = field(default_factory=dict[str, Home])

    def members(self, root: str) -> dict[str, Home]:
        """The Funcs computed inside `root`."""
        return {name: home for name, home in self.inside.items() if home.root == root}


def group_funcs(algorithm: Algorithm, together: Mapping[str, str] | None = None) -> Groups:
    """A decision for every Func, consumers first.

    Args: together: of outputs that are computed in the loops of another one, which.
    """
    leaders = together or {}
    groups = Groups()
    funcs = {f.name: f for f in algorithm.funcs}
    outputs = {name for name, _ in algorithm.outputs}
    products = {f.name: found for f in algorithm.funcs if (found := contraction_of(f)) is not None}
    stored = {_made_of(algorithm, funcs, name) for name in products}
    # Every tile of a product would compute its operands again.
    tiled = (found for found in products.values() if found.rows and found.columns)
    stored |= {a for found in tiled for a in found.operands if _is_work(funcs.get(a))}
    copies: dict[str, int] = {}
    for func in reversed(algorithm.funcs):
        name = func.name
        copies[name] = _copies(algorithm, funcs, groups, copies, name)
        if name in outputs or name in stored:
            groups.roots.append(name)
        elif func.is_pure and copies[name] * operations(func) <= _REPEATED:
            groups.inlined.add(name)
        elif is_recurrence(func):
            groups.roots.append(name)
            home = _home(algorithm, groups, leaders, name)
            if home is not None:
                groups.recurrences[name] = home
        elif not func.is_pure and (home := _home(algorithm, groups, leaders, name)) is not None:
            groups.inside[name] = home
        else:
            groups.roots.append(name)
    return groups


def _is_work(func: FuncRecord | None) -> bool:
    """Whether a Func is pure and more than another dtype or order of what it reads."""
    return func is not None and func.is_pure and operations(func) > 1


def _copies(
    algorithm: Algorithm,
    funcs: Mapping[str, FuncRecord],
    groups: Groups,
    copies: Mapping[str, int],
    name: str,
) -> int:
    """How many times a point of `name` would be computed for one point of a Func with loops."""
    total = 0
    for consumer in algorithm.consumers(name):
        times = copies[consumer] if consumer in groups.inlined else 1
        total += times * _loads(funcs[consumer], name)
    return total


def _made_of(algorithm: Algorithm, funcs: Mapping[str, FuncRecord], product: str) -> str | None:
    """The last pure Func that only the points of a product reach, each at its own point."""
    outputs = {name for name, _ in algorithm.outputs}
    name: str | None = None
    here = funcs[product]
    while True:
        consumers = algorithm.consumers(here.name)
        reader = funcs[consumers[0]] if len(consumers) == 1 else None
        if reader is None or not reader.is_pure or len(reader.dims) != len(here.dims):
            return name
        used = own_positions(reader, here.name, frozenset(range(len(here.dims))))
        if used is None or len(set(used.values())) < len(here.dims):
            return name
        name, here = reader.name, reader
        if name in outputs:
            return name


def _loads(consumer: FuncRecord, name: str) -> int:
    found = {
        load
        for definition in consumer.definitions
        for e in exprs_of_definition(definition)
        for load in loads_of(e)
        if load.buffer == name
    }
    return len(found)


def _home(
    algorithm: Algorithm, groups: Groups, leaders: Mapping[str, str], name: str
) -> Home | None:
    """The one root Func that reads `name` at its own point, through all that is between."""
    funcs = {f.name: f for f in algorithm.funcs}
    found: dict[str, dict[int, str]] = {}
    stack = [(name, {k: k for k in range(len(funcs[name].dims))})]
    while stack:
        producer, origin = stack.pop()
        for consumer in algorithm.consumers(producer):
            used = own_positions(funcs[consumer], producer, frozenset(origin))
            if used is None:
                return None
            # Dimension of the consumer -> dimension of `name`.
            here = {at: origin[k] for k, at in used.items()}
            if consumer in groups.inlined:
                stack.append((consumer, here))
                continue
            root = leaders.get(consumer, consumer)
            home = groups.inside.get(consumer, Home(root, funcs[root].dims))
            names = found.setdefault(home.root, {})
            names.update({k: home.vars[at] for at, k in here.items()})
    if len(found) != 1:
        return None
    ((root, names),) = found.items()
    if not funcs[root].is_pure or len(names) < len(funcs[name].dims):
        return None
    return Home(root, tuple(names[k] for k in range(len(funcs[name].dims))))
