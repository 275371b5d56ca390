"""What is known where a statement or an expression is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorlang.backends.c.code import Code
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.names import Names
from tensorlang.backends.c.prelude import Prelude
from tensorlang.backends.c.storage import Storage
from tensorlang.backends.c.values import Value
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.linear import Linear, to_linear
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True)
class Lane:
    """A loop whose `width` iterations run as the lanes of vectors; `first` is its min."""

    var: str
    width: int
    first: Expr

    @property
    def name(self) -> Expr:
        """The loop's variable."""
        return Var(self.var, index)


@dataclass(frozen=True, slots=True)
class Cell:
    """An element, or a vector of `lanes` elements, that is held in a C variable for a while."""

    buffer: str
    component: int
    places: tuple[Linear, ...]
    lanes: int
    variable: str = ""

    def is_at(self, places: "tuple[Linear, ...]") -> bool:
        """Whether it is the element at these places (in the first lane)."""
        pairs = zip(self.places, places, strict=True)
        return all(not d.terms and not d.constant for d in (a - b for a, b in pairs))

    def is_apart_from(self, other: "Cell") -> bool:
        """Whether the two are certainly different elements of one buffer."""
        differences = [a - b for a, b in zip(self.places, other.places, strict=True)]
        *before, last = [0 if d.terms else d.constant for d in differences] or [0]
        wide = max(self.lanes, other.lanes)
        return any(before) or abs(last) >= wide


@dataclass(frozen=True, slots=True)
class Scope:
    """Where we are: the lane loop that we are in, and what names stand for there."""

    lane: Lane | None = None
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    cells: tuple[Cell, ...] = ()
    in_parallel: bool = False
    # Lanes that take part; None is all of them.
    mask: Expr | None = None
    # Index variables that are never negative.
    natural: frozenset[str] = frozenset()

    def varies(self, e: Expr) -> bool:
        """Whether the expression differs from lane to lane."""
        return self.lane is not None and self.lane.var in e.free

    def at_first_lane(self, places: tuple[Expr, ...]) -> tuple[Linear, ...]:
        """The places in lane 0."""
        if self.lane is None:
            return tuple(map(to_linear, places))
        first = {self.lane.var: self.lane.first}
        return tuple(to_linear(substitute(e, first)) for e in places)


@dataclass(slots=True)
class Unit:
    """A translation unit under construction."""

    names: Names
    machine: Machine
    code: Code = field(default_factory=Code)
    prelude: Prelude = field(default_factory=Prelude)
    storages: dict[str, Storage] = field(default_factory=dict[str, Storage])
    # Pointers that the function frees where it ends.
    freed_last: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    notes: list[str] = field(default_factory=list[str])
    # The variable that says how many threads a parallel loop may have; "" where there is none.
    threads: str = ""
    # Buffers that are to be stored past the caches, and those of which some vector was.
    to_stream: frozenset[str] = frozenset()
    streamed: set[str] = field(default_factory=set[str])

    def type_of(self, value: Value) -> str:
        """The C type that a variable for the value has."""
        if value.is_bool and value.type.lanes == 1:
            return "bool"
        return self.prelude.type(value.type)

    def note(self, text: str) -> None:
        """Tell the user once what was ignored or is slow, and the remedy."""
        if text not in self.notes:
            self.notes.append(text)
