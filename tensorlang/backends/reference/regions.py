"""Boxes of concrete integers, and which box of each Func some expressions need.

The reference knows every size, so it finds what an index needs by evaluating it at every point.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from tensorlang.backends.reference.lanes import Evaluator, Lanes, Names
from tensorlang.ir.expr import Expr, Load, Select
from tensorlang.ir.walk import loads_of, postorder

Box: TypeAlias = tuple[range, ...]
Ranges: TypeAlias = Mapping[str, range]

# Lanes that are evaluated at once: enough to hide Python, few enough to fit in memory.
LANES = 1 << 20


def hull(a: Box | None, b: Box) -> Box:
    """The smallest box that contains both; None contains nothing."""
    if a is None or any(len(r) == 0 for r in a):
        return b
    if any(len(r) == 0 for r in b):
        return a
    pairs = zip(a, b, strict=True)
    return tuple([range(min(r.start, s.start), max(r.stop, s.stop)) for r, s in pairs])


def contains(a: Box, b: Box) -> bool:
    """Whether every point of b is in a."""
    return hull(a, b) == a


def pieces(box: Box, limit: int = LANES) -> Iterator[Box]:
    """The box in order, in pieces of at most about `limit` points; nothing when it is empty."""
    count = math.prod(map(len, box))
    if count == 0:
        return
    wide = next((k for k, r in enumerate(box) if len(r) > 1), None)
    if count <= limit or wide is None:
        yield box
        return
    whole = box[wide]
    step = max(1, len(whole) * limit // count)
    for start in range(whole.start, whole.stop, step):
        part = range(start, min(start + step, whole.stop))
        yield from pieces((*box[:wide], part, *box[wide + 1 :]), limit)


def axis(values: range, k: int, rank: int) -> Any:
    """The integers of a range as an array along axis k of `rank`."""
    shape = [1] * rank
    shape[k] = len(values)
    return np.arange(values.start, values.stop, dtype=np.int64).reshape(shape)


@dataclass(slots=True)
class Demands:
    """What is needed of each Func; `settled`: the loads of other Funcs of which all is known."""

    boxes: dict[str, Box] = field(default_factory=dict[str, Box])
    settled: set[Load] = field(default_factory=set[Load])
    deferred: bool = False

    def add(self, buffer: str, box: Box) -> None:
        """Need a box of a Func as well."""
        self.boxes[buffer] = hull(self.boxes.get(buffer), box)

    def join(self, other: "Demands") -> None:
        """Need what another piece of the same points needs as well."""
        for buffer, box in other.boxes.items():
            self.add(buffer, box)
        self.settled |= other.settled
        self.deferred |= other.deferred


@dataclass(frozen=True, slots=True)
class Question:
    """Of which boxes of which Funcs are the lanes of `roots` (where `where` holds) made?

    An index or a condition that reads a Func can be answered when its loads are in `ready`, that
    is, computed; until then what depends on it is deferred.  `force` takes both sides of a select
    whose condition cannot be answered.  `own`: the Func whose update this is, never ready.
    """

    roots: tuple[Expr, ...]
    where: Expr | None
    own: str
    is_func: Callable[[str], bool]
    ready: frozenset[Load]
    force: bool = False

    def answer(self, evaluator: Evaluator, names: Names, ranges: Ranges) -> Demands:
        """The demands when the names in `ranges` run over them and the others are given."""
        total = Demands()
        varying = self._varying(ranges)
        for piece in pieces(tuple(ranges[v] for v in varying)):
            inner = dict(ranges) | dict(zip(varying, piece, strict=True))
            if all(map(len, inner.values())):
                rank = len(inner)
                axes = {v: axis(r, k, rank) for k, (v, r) in enumerate(inner.items())}
                total.join(self._answer_at_once(evaluator, {**names, **axes}))
        return total

    def _varying(self, ranges: Ranges) -> tuple[str, ...]:
        """The names over which the largest index or condition runs."""
        conditions: set[str] = set(self.where.free) if self.where is not None else set()
        for e in postorder(*self.roots):
            if isinstance(e, Select) and (e.a.reads or e.b.reads):
                conditions |= e.condition.free
        largest: tuple[str, ...] = ()
        for load in loads_of(*self.roots):
            for index in load.indices:
                free = tuple(v for v in ranges if v in index.free or v in conditions)
                if _count(free, ranges) > _count(largest, ranges):
                    largest = free
        return largest

    def _answer_at_once(self, evaluator: Evaluator, names: Names) -> Demands:
        return _Pass(self, evaluator, names).run()

    def is_known(self, e: Expr) -> bool:
        """Whether all that an expression reads is computed."""
        if not any(map(self.is_func, e.reads)):
            return True
        return all(x in self.ready for x in loads_of(e) if self.is_func(x.buffer))

    def is_open(self, e: Expr) -> bool:
        """Whether a condition can be answered later; one over an update's own values never is."""
        return not self.is_known(e) and self.own not in e.reads and not self.force


class _Pass:
    """One walk from the roots to the loads, with the lanes in which each node is needed."""

    def __init__(self, question: Question, evaluator: Evaluator, names: Names) -> None:
        self.question = question
        self.evaluator = evaluator
        self.names = names
        self.known: dict[Expr, Lanes] = {}
        # True, False, or a mask.
        self.need: dict[Expr, Any] = {}
        # What stands below a condition that cannot be answered yet.
        self.unsure: set[Expr] = set()
        self.found = Demands()

    def run(self) -> Demands:
        roots, where = self.question.roots, self.question.where
        start: Any = True
        if where is not None:
            self._needs(where, True)
            if self.question.is_known(where):
                start = self._holds(where, otherwise=True)
            elif self.question.is_open(where):
                self.unsure.update(roots)
        for root in roots:
            self._needs(root, start)
        everything = roots if where is None else (*roots, where)
        for e in reversed(list(postorder(*everything))):
            if any(map(self.question.is_func, e.reads)):
                self._visit(e)
        return self.found

    def _visit(self, e: Expr) -> None:
        lanes = self.need[e]
        if e in self.unsure:
            self.unsure.update(e.children)
        if isinstance(e, Select):
            self._visit_select(e, lanes)
            return
        for child in e.children:
            self._needs(child, lanes)
        if isinstance(e, Load) and self.question.is_func(e.buffer):
            self._demand(e, lanes)

    def _visit_select(self, e: Select, lanes: Any) -> None:
        """A select needs its condition, and each side where the condition chooses it."""
        self._needs(e.condition, lanes)
        a = b = lanes
        if self.question.is_known(e.condition):
            a = _both(lanes, self._holds(e.condition, otherwise=True))
            b = _both(lanes, ~self._holds(e.condition, otherwise=False))
        elif self.question.is_open(e.condition):
            self.unsure.update((e.a, e.b))
        self._needs(e.a, a)
        self._needs(e.b, b)

    def _demand(self, e: Load, lanes: Any) -> None:
        question, found = self.question, self.found
        if e in self.unsure or not all(map(question.is_known, e.indices)):
            # What an update's own values choose lies where the update writes, or is a fault.
            found.deferred |= not any(question.own in index.reads for index in e.indices)
            return
        box = _box_of(self.evaluator.evaluate(e.indices, self.names, self.known), lanes)
        if box is not None:
            found.add(e.buffer, box)
        if e.buffer != question.own:
            found.settled.add(e)

    def _needs(self, e: Expr, lanes: Any) -> None:
        self.need[e] = _either(self.need.get(e, False), lanes)

    def _holds(self, condition: Expr, *, otherwise: bool) -> Any:
        """The lanes of a condition; `otherwise` where it is faulty."""
        value, fault = self.evaluator.evaluate([condition], self.names, self.known)[0]
        return np.asarray(value if fault is None else np.where(fault != 0, otherwise, value))


def _count(names: Sequence[str], ranges: Ranges) -> int:
    return math.prod(len(ranges[v]) for v in names) if names else 0


def _box_of(indices: Sequence[Lanes], need: Any) -> Box | None:
    """The box around the lanes of some indices that are needed and not faulty."""
    chosen: Any = need
    for index in indices:
        if index.fault is not None:
            chosen = _both(chosen, index.fault == 0)
    if chosen is False:
        return None
    values = [index.value for index in indices]
    if chosen is not True:
        *values, chosen = np.broadcast_arrays(*values, chosen)
        if not chosen.any():
            return None
        values = [value[chosen] for value in values]
    return tuple([range(int(np.min(v)), int(np.max(v)) + 1) for v in values])


def _both(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a & b


def _either(a: Any, b: Any) -> Any:
    if a is True or b is True:
        return True
    if a is False:
        return b
    return a if b is False else a | b
