"""Tile IR: what loop IR becomes before it is Triton text.

    Kernel = Kernel(name, grid, parameters, lanes, body)
    Tile   = Bind(name, value)                            name = value, for good
           | Read(name, at, mask)                         name = elements of memory, 0 where masked
           | Write(at, value, mask)                       elements of memory = value
           | Declare(name, dtype, value)                  a register tile, which Assign changes
           | Assign(name, value)
           | ReduceFirst(names, op, terms, lanes)         argmin and argmax along lanes
           | Combine(names, op, terms, lane, running)     each lane with all before it, or all lanes
           | Arrive(name, at)                             how many programs came here before
           | Loop(name, min, extent, body, stages)        serial
           | Branch(condition, body)                      the condition has no lanes
           | Barrier(why)
           | Comment(text)
    at     = Access(memory, component, offsets)           by pointers, or a box of a descriptor

    value  = an expression of ir/expr.py over names, with no Load in it, or
           | Reduce(op, term, lane)                       the term combined along one lane
           | Dot(a, b, acc, lane)                         acc + sum over lane of a*b
           | RandomRow(seed, first, lane)                 random_uniform(seed, first + lane)
           | Inverse(extent)                              1 / a power of two, exactly

A vectorized loop is a `Lane`: one axis of a tile, a name that stands for 0, 1, ..., extent - 1.  An
expression is written as if it were scalar, and *is* a tile whose axes are the lanes that it is free
in: nothing else says what shape a value has, and broadcasting follows from it.  `Lanes` holds the
ordered lanes of every name.  A lane's extent is a power of two; what is really wanted of it is said
by masks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from tensorlang.ir.expr import Expr, Name, Var
from tensorlang.ir.interning import node
from tensorlang.ir.tuple_operators import TupleOperator
from tensorlang.ir.types import DType, f32, index
from tensorlang.ir.walk import fold

# The cache policy of memory through which the programs of one launch hand values to each other.
SHARED = "shared"

Operator: TypeAlias = Literal["add", "mul", "min", "max", "and", "or", "xor"]


@dataclass(frozen=True, slots=True)
class Part:
    """The part `number` of `count` (a power of two) equal ones of a tile along one axis."""

    axis: int
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One axis of a tile.

    Args:
        position: how many lanes stand before it in the nest, so lanes at one place of two stages
            with one extent are equal.
        extent: a power of two, or the name of a compile-time parameter that the call computes.
    """

    position: int
    extent: int | str

    @property
    def var(self) -> Var:
        """The name that stands for it in expressions."""
        return Var(f"lane{self.position}.e{self.extent}")


@node
class Reduce(Expr):
    """The term combined along one lane, which the result no longer has."""

    op: Operator
    term: Expr
    lane: Expr

    def __post_init__(self) -> None:
        self._set(self.term.dtype, self.term, self.lane)
        object.__setattr__(self, "free", self.term.free - self.lane.free)


@node
class Dot(Expr):
    """acc + sum over lane of a*b; a, b and acc each lack one of three lanes (batches aside)."""

    a: Expr
    b: Expr
    acc: Expr
    lane: Expr

    def __post_init__(self) -> None:
        self._set(self.acc.dtype, self.a, self.b, self.acc, self.lane)
        free = self.a.free | self.b.free
        object.__setattr__(self, "free", (free - self.lane.free) | self.acc.free)


@node
class RandomRow(Expr):
    """random_uniform(seed, first + lane), neither of which varies: one Philox makes four of it.

    Args: multiple: of what `first` is a multiple: a number, or the extent of a lane.
    """

    seed: Expr
    first: Expr
    lane: Expr
    multiple: int | str

    def __post_init__(self) -> None:
        self._set(f32, self.seed, self.first, self.lane)


@node
class Inverse(Expr):
    """1 / an extent that the call makes exact, and so a power of two: to divide is to multiply."""

    extent: str
    of: DType

    def __post_init__(self) -> None:
        self._set(self.of)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A buffer in global memory, as a kernel sees it: a pointer a component, a stride a dimension.

    Args:
        parameter: the name of the host's tensor(s); a component is `<parameter>.c<component>` when
            there are several.
        dtypes: of the components.
        origin: what is subtracted from an index, per dimension, none for an Input.
        extents: of each dimension, for masks; None where the dimension is the backend's own.
        fold: the ring size of each dimension, 0 for none.
        padding: what the extent of each dimension is rounded up to in memory, 1 for nothing; what
            stands there is nobody's.
        owner: leading indices that pick the part of one program and of the lanes around.
        outer: those lanes.
        constant: whether the kernel never writes it.
        load_with, store_with: "descriptor" where the schedule asks for one.
        cache: the policy that it asks for, if any.
        firsts: for each component, the dimensions along which only the first element is ever read;
            nothing where that is not known.
    """

    parameter: str
    dtypes: tuple[DType, ...]
    origin: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    fold: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    owner: tuple[Expr, ...] = ()
    outer: tuple["Lane", ...] = ()
    constant: bool = False
    load_with: str = "pointer"
    store_with: str = "pointer"
    cache: str = ""
    firsts: tuple[frozenset[int], ...] = ()

    @property
    def rank(self) -> int:
        """Dimensions of the host's tensor."""
        return len(self.owner) + len(self.extents)

    def pointer(self, component: int) -> str:
        """The name of a component's tensor."""
        return self.parameter if len(self.dtypes) == 1 else f"{self.parameter}.c{component}"


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """A tensor descriptor: it moves boxes of one shape between an array and a tile.

    Args:
        name: of the descriptor in the text.
        dims: the dimensions of the memory, that of unit stride last.
        shape: extents of a box along them.
    """

    name: str
    memory: Memory
    component: int
    dims: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """Elements of memory: `offsets` are the indices less the origin, one a dimension.

    Through a box they are its lowest corner, in the box's order of dimensions, and `lanes` are the
    lanes along these; None where a box has an extent of 1.
    """

    memory: Memory
    component: int
    offsets: tuple[Expr, ...]
    # pointer + sum(offset * stride), once `give_addresses` has made it; None through a box.
    address: Expr | None = None
    box: Box | None = None
    lanes: tuple[Lane | None, ...] = ()

    @property
    def parts(self) -> tuple[Expr, ...]:
        """What the text of the access is made of: its address, or the corner of its box."""
        if self.box is not None:
            return self.offsets
        return () if self.address is None else (self.address,)

    def with_parts(self, parts: Sequence[Expr]) -> "Access":
        """The access with other `parts`, one for one."""
        if self.box is not None:
            return replace(self, offsets=tuple(parts))
        return replace(self, address=parts[0]) if parts else self

    @property
    def dtype(self) -> DType:
        return self.memory.dtypes[self.component]

    @property
    def pointer(self) -> str:
        return self.memory.pointer(self.component)


@dataclass(frozen=True, slots=True, eq=False)
class Bind:
    """name = value, for good."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """name = elements of memory, 0 where masked."""

    name: str
    at: Access
    mask: Expr | None


@dataclass(frozen=True, slots=True, eq=False)
class Write:
    """Elements of memory = value; in bounds also before and after `movable` loops around it.

    With an operator: memory op= value, atomically.
    """

    at: Access
    value: Expr
    mask: Expr | None
    movable: int = 0
    operator: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Declare:
    """A register tile, which Assign changes."""

    name: str
    dtype: DType
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Assign:
    """`lanes`: the lanes of the value along the axes of the tile."""

    name: str
    value: Expr
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ReduceFirst:
    """(best, at): the smallest or largest term, and what `terms[1]` is where it first stands."""

    names: tuple[str, str]
    op: Literal["argmin", "argmax"]
    terms: tuple[Expr, Expr]
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Combine:
    """The terms combined along a lane by an associative operator, one name a component.

    Args:
        op: an operator of single values, or the name of one of the kernel's combiners.
        running: in each lane the terms up to it; else all, and the result has not the lane.
        reverse: from the last lane to the first.
    """

    names: tuple[str, ...]
    op: str
    terms: tuple[Expr, ...]
    lane: Lane
    running: bool
    reverse: bool


@dataclass(frozen=True, slots=True, eq=False)
class Arrive:
    """name = a counter, which grows by 1: what its program wrote before is seen by those after."""

    name: str
    at: Access


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """A serial loop from min to min + extent - 1; `stages` 0 is Triton's own choice."""

    name: str
    min: Expr
    extent: Expr
    body: tuple["Tile", ...]
    stages: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """body if the condition, which has no lanes, holds."""

    condition: Expr
    body: tuple["Tile", ...]


@dataclass(frozen=True, slots=True, eq=False)
class Barrier:
    """All threads of the program have come here; `why` names what they share."""

    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Comment:
    """A line for the reader."""

    text: str


Tile: TypeAlias = (
    Bind
    | Read
    | Write
    | Declare
    | Assign
    | ReduceFirst
    | Combine
    | Arrive
    | Loop
    | Branch
    | Barrier
    | Comment
)


class Lanes:
    """The ordered lanes of every name of a kernel; a name that is not listed is a scalar."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[Lane, ...]] = {}
        self._memo: dict[Expr, frozenset[Lane]] = {}

    def declare(self, name: str, lanes: Iterable[Lane]) -> None:
        """Say that `name` is a tile with these axes, in this order."""
        self._of[name] = tuple(lanes)

    def of_name(self, name: str) -> tuple[Lane, ...]:
        return self._of.get(name, ())

    def of(self, *exprs: Expr) -> tuple[Lane, ...]:
        """The lanes that any of the expressions varies along, in the order of their positions."""
        found = frozenset[Lane]().union(*(fold(e, self._step, self._memo) for e in exprs))
        return tuple(sorted(found, key=lambda lane: lane.position))

    def _step(self, e: Expr, operands: list[frozenset[Lane]]) -> frozenset[Lane]:
        match e:
            case Name(name=name):
                return frozenset(self.of_name(name))
            case Reduce():
                return operands[0] - operands[1]
            case Dot():
                return operands[2]
            case _:
                return frozenset[Lane]().union(*operands)

    @property
    def symbolic(self) -> set[str]:
        """The names of extents that the call computes."""
        found = {lane.extent for lanes in self._of.values() for lane in lanes}
        return {extent for extent in found if isinstance(extent, str)}


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """One loop whose iterations are programs: its variable runs from 0 to extent - 1."""

    name: str
    extent: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One launch.

    Args:
        grid: outermost first; the last is the fastest in the program id.
        memories: the buffers that it touches.
        scalars: the sizes, params and host variables that it may use.
        extents: the exact extent behind each symbolic extent of a lane.
        aliases: names of register tiles under which other stages see their axes.
        parts: of those aliases that stand for a part of a tile.
        mutable: the register tiles and their aliases.
        lane_names: what to call a lane that needs a name.
        loops: for each lane, a loop whose axis it is.
        warps: of one program, 0 for Triton's own choice.
        thread_registers: the most that a thread may use, 0 for no limit.
        scratch: what the host allocates for it.
        combiners: operators of tuples that the kernel combines by, each a function of its own, and
            the dtype of their elements.
        dependent: whether it is launched before the kernel before it has ended.
        counters: memories of one dimension that hold 0 before and after each launch.
        units: the dimension of unit stride of each array that descriptors may reach, by pointer.
        boxes: the descriptors.
    """

    name: str
    grid: tuple[Grid, ...]
    memories: tuple[Memory, ...]
    scalars: tuple[tuple[str, DType], ...]
    lanes: Lanes
    body: tuple[Tile, ...]
    extents: Mapping[str, Expr]
    aliases: Mapping[str, str]
    mutable: frozenset[str]
    lane_names: Mapping[str, str]
    loops: Mapping[Lane, str]
    warps: int
    thread_registers: int
    scratch: tuple["Scratch", ...]
    notes: tuple[str, ...]
    parts: Mapping[str, tuple["Part", ...]] = field(default_factory=dict[str, tuple["Part", ...]])
    units: Mapping[str, int] = field(default_factory=dict[str, int])
    boxes: tuple[Box, ...] = ()
    counters: tuple[Memory, ...] = ()
    combiners: Mapping[str, tuple[TupleOperator, DType]] = field(
        default_factory=dict[str, tuple[TupleOperator, DType]]
    )
    dependent: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Scratch:
    """Memory of one program's own that the host allocates: `shape` of it for each program."""

    memory: Memory
    shape: tuple[Expr | str | int, ...]


def pointer_var(name: str) -> Var:
    """The name of a pointer, which address arithmetic treats as an index."""
    return Var(f"{name}.ptr", index)


def stride_var(name: str, dim: int) -> Var:
    """The name of the stride of one dimension, in elements."""
    return Var(f"{name}.s{dim}", index)
