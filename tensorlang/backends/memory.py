"""What the interpreter keeps of a buffer: each element that was written, and who touched it.

A buffer is a dict from indices to values, so that an element never written is absent (reading it is
a fault), a huge but mostly untouched buffer costs nothing, and every store checks its bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tensorlang.backends import numerics
from tensorlang.errors import InternalError
from tensorlang.ir.stmt import Buffer
from tensorlang.ir.types import DType, Kind

Element: TypeAlias = tuple[int, ...]
Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store, in the order in which they happened; `value`: of the component touched."""

    kind: Literal["load", "store"]
    buffer: str
    indices: Element
    value: Any
    component: int = 0


Trace: TypeAlias = Callable[[Access], None]


class Race:
    """The elements that the iterations of one run of a parallel loop touched so far.

    Two iterations may touch one element if both only read it, both store the same value, or both
    update it atomically.
    """

    __slots__ = (
        *("_another_reader", "_another_updater", "_reader", "_updater", "_writer"),
        *("iteration", "loop"),
    )

    def __init__(self, loop: str) -> None:
        self.loop = loop
        self.iteration = 0
        self._writer: dict[tuple[Memory, Element], int] = {}
        self._reader: dict[tuple[Memory, Element], int] = {}
        self._another_reader: dict[tuple[Memory, Element], int] = {}
        self._updater: dict[tuple[Memory, Element], int] = {}
        self._another_updater: dict[tuple[Memory, Element], int] = {}

    def reads(self, memory: "Memory", at: Element) -> None:
        """This iteration reads an element."""
        key = (memory, at)
        self._not_updated(memory, at, "update and read")
        writer = self._writer.get(key)
        if writer == self.iteration:
            return  # its own value, whatever others store there is checked when they do
        if writer is not None:
            raise self._fault(memory, at, writer, "write and read")
        if self._reader.setdefault(key, self.iteration) != self.iteration:
            self._another_reader[key] = self.iteration

    def writes(self, memory: "Memory", at: Element, changes: bool) -> None:
        """This iteration writes an element; `changes`: to a value that it does not have."""
        key = (memory, at)
        self._not_updated(memory, at, "update and write")
        self._not_read(memory, at, "read and write")
        writer = self._writer.get(key)
        if changes and writer is not None and writer != self.iteration:
            raise self._fault(memory, at, writer, "write different values to")
        self._writer[key] = self.iteration

    def updates(self, memory: "Memory", at: Element) -> None:
        """This iteration loads, combines and stores an element in one step."""
        key = (memory, at)
        self._not_read(memory, at, "read and update")
        writer = self._writer.get(key)
        if writer is not None and writer != self.iteration:
            raise self._fault(memory, at, writer, "write and update")
        if self._updater.setdefault(key, self.iteration) != self.iteration:
            self._another_updater[key] = self.iteration

    def _not_read(self, memory: "Memory", at: Element, what: str) -> None:
        key = (memory, at)
        for reader in (self._reader.get(key), self._another_reader.get(key)):
            if reader is not None and reader != self.iteration:
                raise self._fault(memory, at, reader, what)

    def _not_updated(self, memory: "Memory", at: Element, what: str) -> None:
        key = (memory, at)
        for updater in (self._updater.get(key), self._another_updater.get(key)):
            if updater is not None and updater != self.iteration:
                raise self._fault(memory, at, updater, what)

    def _fault(self, memory: "Memory", at: Element, other: int, what: str) -> InternalError:
        return InternalError(
            f"race in the parallel loop {self.loop!r}: its iterations {other} and {self.iteration} "
            f"{what} {memory.shown(at)}"
        )


@dataclass(slots=True)
class Running:
    """What is going on: the parallel loops around the current statement, and who listens."""

    trace: Trace | None = None
    # The buffer that an atomic store is updating: what it loads of it is part of the one step.
    updated: "Memory | None" = None
    races: list[Race] = field(default_factory=list[Race])


class Memory:
    """The elements of one buffer while it lives."""

    __slots__ = ("_array", "_depth", "_fold", "_ring", "_running", "buffer", "elements", "ranges")

    def __init__(
        self, buffer: Buffer, ranges: Sequence[range], running: Running, array: Any = None
    ) -> None:
        """`ranges`: the indices of each dimension; `array`: what an Input holds."""
        self.buffer = buffer
        self.ranges = tuple(ranges)
        self.elements: dict[Element, Values] = {}
        self._running = running
        # A buffer is private to each iteration of the loops around its allocation.
        self._depth = len(running.races)
        self._array = array
        self._fold = buffer.fold if any(buffer.fold) else ()
        # Which element holds each place of a folded buffer.
        self._ring: dict[Element, Element] = {}

    def load(self, at: Element, component: int) -> Any:
        """One component of an element."""
        values = self.elements.get(at)
        if values is None:
            values = self._fetched(at)
        running = self._running
        if self._array is None and running.updated is not self:
            for race in running.races[self._depth :]:
                race.reads(self, at)
        if running.trace is not None:
            access = Access("load", self.buffer.name, at, values[component], component)
            running.trace(access)
        return values[component]

    def store(self, at: Element, values: Values) -> None:
        """Write all components of an element."""
        for position, inside in zip(at, self.ranges, strict=True):
            if position not in inside:
                raise self._outside("store to", at)
        running = self._running
        if running.updated is self:
            for race in running.races[self._depth :]:
                race.updates(self, at)
        elif len(running.races) > self._depth:
            changes = not _same(self.elements.get(at), values)
            for race in running.races[self._depth :]:
                race.writes(self, at, changes)
        if self._fold:
            self._evict(at)
        self.elements[at] = values
        if running.trace is not None:
            for component, value in enumerate(values):
                running.trace(Access("store", self.buffer.name, at, value, component))

    def shown(self, at: Element) -> str:
        """The element as text: `C[3, 4]`."""
        return f"{self.buffer.name}[{', '.join(map(str, at))}]"

    def write_to(self, arrays: Sequence[Any]) -> None:
        """Copy every element to the arrays of an output, one a component."""
        count = 1
        for inside in self.ranges:
            count *= len(inside)
        if len(self.elements) < count:
            raise InternalError(
                f"{count - len(self.elements)} of the {count} elements of the output "
                f"{self.buffer.name!r} were never written"
            )
        origin = [inside.start for inside in self.ranges]
        packs = [numerics.pack(dtype) for dtype in self.buffer.dtypes]
        for at, values in self.elements.items():
            place = tuple([position - low for position, low in zip(at, origin, strict=True)])
            for array, pack, value in zip(arrays, packs, values, strict=True):
                array[place] = pack(value)

    def _fetched(self, at: Element) -> Values:
        """An element that is not held: of an Input it is read now, else it was never written."""
        for position, inside in zip(at, self.ranges, strict=True):
            if position not in inside:
                raise self._outside("load of", at)
        if self._array is None:
            raise InternalError(f"load of {self.shown(at)}, which holds no value yet")
        dtype = self.buffer.dtypes[0]
        values = (carried(self._array[at], dtype),)
        self.elements[at] = values
        return values

    def _outside(self, what: str, at: Element) -> InternalError:
        box = ", ".join(f"{r.start}:{r.stop}" for r in self.ranges)
        return InternalError(f"{what} {self.shown(at)}, outside of {self.buffer.name}[{box}]")

    def _evict(self, at: Element) -> None:
        """What shared the place of `at` in the ring holds no value any more."""
        place = tuple([i % n if n else i for i, n in zip(at, self._fold, strict=True)])
        previous = self._ring.get(place)
        if previous is not None and previous != at:
            del self.elements[previous]
        self._ring[place] = at


def carried(stored: Any, dtype: DType) -> Any:
    """One element of an array as the interpreter computes with it: an index is a Python int."""
    return int(stored) if dtype.kind is Kind.INDEX else numerics.unpack(dtype)(stored)


def _same(old: Values | None, new: Values) -> bool:
    """Whether all components are equal, NaN to NaN."""
    if old is None:
        return False
    return all(a == b or (a != a and b != b) for a, b in zip(old, new, strict=True))
