"""Which orders of its loops an update allows: the dependences of its domain, loop by loop."""

from dataclasses import dataclass

from tensorlang.algorithm import Definition
from tensorlang.directives.nest import Nest
from tensorlang.ir.associativity import associative_operator, reorders_freely
from tensorlang.ir.dependence import Dependence, carried_by, dependences_of, keeps_order, witness
from tensorlang.ir.scans import Scan, scan_along
from tensorlang.ir.stmt import LoopKind


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two iterations that touch one element, in words."""

    iterations: str
    element: str

    def __str__(self) -> str:
        return f"{self.iterations} both touch {self.element}"


class Order:
    """What an update's dependences say of a nest of its loops."""

    def __init__(self, definition: Definition, nest: Nest) -> None:
        self.definition, self.nest = definition, nest
        self.leaves = nest.sequence
        variables = definition.domain.names if definition.domain else ()
        self._variables = variables
        self._over_variables = dependences_of(
            nest.func, definition.indices, definition.values, variables
        )
        self._dependences = [self._over_leaves(d) for d in self._over_variables]

    def _over_leaves(self, dependence: Dependence) -> Dependence:
        """The distances along the loops that stand now: those of a variable that was split, or
        fused with another, are not known where the variable's own is not 0.
        """
        distance = dict(zip(self._variables, dependence.distances, strict=True))
        found: list[int | None] = []
        for name in self.leaves:
            loop = self.nest.find(name)
            origins = loop.origins & distance.keys() if loop else frozenset[str]()
            moving = [v for v in origins if distance[v] != 0]
            whole = len(origins) == 1 and self._is_whole(*origins)
            found.append(0 if not moving else distance[moving[0]] if whole else None)
        return Dependence(tuple(found))

    def _is_whole(self, variable: str) -> bool:
        loops = [loop for loop in self.nest.loops if variable in loop.origins]
        return len(loops) == 1 and len(loops[0].origins) == 1

    def carries(self, name: str) -> bool:
        """Whether two iterations of this loop can ever conflict."""
        if name not in self.leaves:
            return False
        at = self.leaves.index(name)
        return any(d.distances[at] != 0 for d in self._dependences)

    def conflict_of(self, name: str) -> Conflict | None:
        """Two iterations that would conflict if those of `name` ran at once."""
        if name not in self.leaves:
            return None
        at = self.leaves.index(name)
        names = self.nest.names()
        outside = [
            self.leaves.index(n)
            for n in names[: names.index(name)]
            if n in self.leaves and self._is_serial(n)
        ]
        for over_leaves, dependence in zip(self._dependences, self._over_variables, strict=True):
            if carried_by(over_leaves, at, outside):
                return self._conflict(dependence)
        return None

    def _is_serial(self, name: str) -> bool:
        loop = self.nest.find(name)
        return loop is not None and loop.kind in (LoopKind.SERIAL, LoopKind.UNROLLED)

    def broken_by(self, names: tuple[str, ...]) -> Conflict | None:
        """Two iterations that the order `names` would exchange; None: it is legal."""
        if reorders_freely(self.nest.func, self.definition.indices, self.definition.values):
            return None
        order = [self.leaves.index(n) for n in names if n in self.leaves]
        for over_leaves, dependence in zip(self._dependences, self._over_variables, strict=True):
            if not keeps_order(over_leaves, order):
                return self._conflict(dependence)
        return None

    def is_associative(self) -> bool:
        """Whether the terms may be grouped in any way: a tree reduction gives the value."""
        definition = self.definition
        found = associative_operator(self.nest.func, definition.indices, definition.values)
        return found is not None

    def is_scan(self, name: str) -> bool:
        """Whether the iterations of a loop give the values of a scan, computed at once: they are
        neighbours along its variable, and of the update's points none is left out.
        """
        loop = self.nest.find(name)
        if loop is None or len(loop.origins) != 1:
            return False
        (variable,) = loop.origins
        along = [other.name for other in self.nest.loops if variable in other.origins]
        scan = scan_over(self.nest.func, self.definition, variable)
        return scan is not None and along[-1] == name

    def _conflict(self, dependence: Dependence) -> Conflict:
        domain = self.definition.domain
        starts = [start for _, start, _ in domain.dims] if domain else []
        iterations = witness(dependence, self._variables, starts)
        return Conflict(iterations, f"one element of {self.nest.func!r}")


def scan_over(func: str, definition: Definition, variable: str) -> Scan | None:
    """The scan along a variable of its domain that an update is, over all points of the domain."""
    domain = definition.domain
    if domain is None or domain.where is not None or variable not in domain.names:
        return None
    first = next(first for name, first, _ in domain.dims if name == variable)
    return scan_along(func, definition.indices, definition.values, variable, first)
