"""What building a kernel carries: where it stands (`Place`), and what it has made (`Making`)."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tensorlang.backends.triton.masks import Knowledge
from tensorlang.backends.triton.match_scans import LoopScan
from tensorlang.backends.triton.storage import InRegisters, Placement
from tensorlang.backends.triton.tiles import (
    Bind,
    Declare,
    Lane,
    Lanes,
    Memory,
    Part,
    Scratch,
    Tile,
)
from tensorlang.ir.expr import Const, Expr, Name, Var
from tensorlang.ir.stmt import For, Store
from tensorlang.ir.tuple_operators import TupleOperator
from tensorlang.ir.types import DType
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """Where a serial loop stands: what is appended to `tiles` comes just before it."""

    loop: str
    low: Expr
    tiles: list[Tile]
    place: "Place"


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A point of the loop nest.

    Args:
        names: what each name of the loop IR is in tile IR.
        lanes: the vectorized loops around it, outermost first.
        guards: conditions that vary along lanes; a lane where one fails does nothing.
        facts: what is known of names here, for proving masks away.
        loops: what is known outside each serial loop around it, outermost first.
        outside: of the innermost of them.
    """

    names: Mapping[str, Expr]
    lanes: tuple[Lane, ...] = ()
    guards: tuple[Expr, ...] = ()
    facts: Knowledge = field(default_factory=Knowledge)
    loops: tuple[Knowledge, ...] = ()
    outside: Outside | None = None

    def named(self, name: str, value: Expr) -> "Place":
        return replace(self, names={**self.names, name: value})

    def guarded(self, *conditions: Expr) -> "Place":
        return replace(self, guards=(*self.guards, *conditions))

    def ranged(self, name: str, low: Expr, extent: Expr) -> "Place":
        """The place as the body of a loop over low <= name < low + extent."""
        return replace(self, facts=self.facts.ranged(name, low, extent))

    def in_loop(self, outside: Outside | None = None) -> "Place":
        """The place as the body of a serial loop that stands here."""
        return replace(self, loops=(*self.loops, self.facts), outside=outside)

    def knowing(self, facts: Knowledge) -> "Place":
        return replace(self, facts=facts)


@dataclass(slots=True)
class Register:
    """A Func in registers: its tile axes, and one variable a component and constant point.

    Args:
        outer: the lanes around its allocation, which are axes of it too.
        mins: the least index of each dimension.
        variables: by component and point; each is declared where it is first assigned.
        defined: the guards under which its pure definition stores, lanes as dimensions.
    """

    func: str
    dtypes: tuple[DType, ...]
    placement: InRegisters
    outer: tuple[Lane, ...]
    mins: tuple[Expr, ...]
    home: list[Tile]
    start: int
    variables: dict[tuple[int, tuple[int, ...]], str] = field(
        default_factory=dict[tuple[int, tuple[int, ...]], str]
    )
    lanes: tuple[Lane, ...] | None = None
    declared: set[str] = field(default_factory=set[str])
    defined: frozenset[Expr] | None = None


class Making:
    """The kernel being made: statements so far, the names in use, and where buffers live."""

    def __init__(
        self,
        memories: Mapping[str, Memory],
        placements: Mapping[str, Placement],
        exact: frozenset[str] = frozenset(),
        scans: Mapping[Store, LoopScan] | None = None,
    ) -> None:
        self.lanes, self._exact = Lanes(), exact
        self.out: list[Tile] = []
        self.memories = dict(memories)
        self.placements = placements
        # The stores that are scans along a lane, and the lane of each loop that is one.
        self.scans = scans or {}
        self.lane_of: dict[For, Lane] = {}
        # The lanes that count from the last iteration of their loop.
        self.reversed: set[str] = set()
        self.combiners: dict[str, tuple[TupleOperator, DType]] = {}
        self.registers: dict[str, Register] = {}
        self.scratch: list[Scratch] = []
        self.extents: dict[str, Expr] = {}
        self.notes: dict[str, None] = {}
        self.warps = self.thread_registers = 0
        self.dependent = False
        self.used_memories: dict[Memory, None] = {}
        # Names of register tiles as other stages see them: the alias -> the tile.
        self.aliases: dict[str, str] = {}
        self.parts: dict[str, tuple[Part, ...]] = {}
        # Register tiles and their aliases: what they hold changes.
        self.mutable: set[str] = set()
        # For each Read: its mask's parts, which a dot need not test again.
        self.masks: dict[str, frozenset[Expr]] = {}
        # What each bound name stands for in terms of loop variables and lanes.
        self._full: dict[str, Expr] = {}
        self.loops: dict[Lane, str] = {}
        self._lane_names: dict[str, str] = {}
        self._fresh: dict[tuple[str, object], str] = {}
        self._taken: set[str] = set()
        self._open: list[dict[object, str]] = [{}]

    def exactly(self, size: Expr) -> str:
        """The extent of lanes that the call makes equal to a size, a power of two; "" for none."""
        found = (n for n in self._exact if self.extents.get(n) is size)
        return next(found, "")

    def combiner(self, wanted: str, operator: TupleOperator, dtype: DType) -> str:
        """The name of a function that combines two tuples."""
        for name, known in self.combiners.items():
            if known == (operator, dtype):
                return name
        name = self.fresh(wanted)
        self.combiners[name] = operator, dtype
        return name

    def note(self, text: str) -> None:
        self.notes[text] = None

    def fresh(self, wanted: str, key: object = None) -> str:
        """A name that nothing else has; the same one for the same wish and key (if any)."""
        if key is not None and (wanted, key) in self._fresh:
            return self._fresh[wanted, key]
        name, count = wanted, 0
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        if key is not None:
            self._fresh[wanted, key] = name
        return name

    def bind(self, wanted: str, value: Expr, place: Place) -> tuple[Expr, Place]:
        """`value` under a name (itself when it is a name or a number), and the place that knows."""
        if isinstance(value, (Const, Name)):
            if value.free & self._lane_names.keys():
                self._lane_names[value.name] = self._lane_names[value.name] or wanted  # type: ignore[union-attr]
            return value, place
        changing = not value.free.isdisjoint(self.mutable)
        name = self.fresh(wanted, None if changing else value)
        this = Var(name, value.dtype)
        self._full[name] = self.expand(value)
        if self.find(this) is None:
            self.lanes.declare(name, self.lanes.of(value))
            self.out.append(Bind(name, value))
            self.remember(this, name)
        return this, place.knowing(place.facts.valued(name, value))

    def bind_value(self, name: str, value: Expr) -> None:
        """Bind a name of its own to a value that may change with register tiles."""
        self.lanes.declare(name, self.lanes.of(value))
        self.out.append(Bind(name, value))

    def expand(self, e: Expr) -> Expr:
        """`e` with every bound name replaced by what it stands for."""
        return substitute(e, self._full)

    @contextmanager
    def block(self) -> Generator[list[Tile]]:
        """Statements made inside go to a list of their own; what they name is theirs alone."""
        outer, self.out = self.out, []
        self._open.append({})
        try:
            yield self.out
        finally:
            self.out = outer
            self._open.pop()

    def remember(self, key: object, name: str) -> None:
        """`key` is held by `name` until the current block ends."""
        self._open[-1][key] = name

    def find(self, key: object) -> str | None:
        """The name that holds `key` here."""
        return next((scope[key] for scope in reversed(self._open) if key in scope), None)

    def new_lane(self, position: int, extent: int | str) -> Lane:
        lane = Lane(position, extent)
        self.lanes.declare(lane.var.name, (lane,))
        self._lane_names.setdefault(lane.var.name, "")
        return lane

    @property
    def lane_names(self) -> dict[str, str]:
        """For each lane, the loop whose variable it first was, if it was one as it stands."""
        return self._lane_names

    def declare_before(self, register: Register, name: str, dtype: DType) -> None:
        """Declare a tile where its Func is allocated: its first store stands deeper."""
        zero = Const(0.0 if dtype.is_float else False if dtype.is_bool else 0, dtype)
        register.home.insert(register.start, Declare(name, dtype, zero))
        register.declared.add(name)
