"""Prefetches as C: at the head of an iteration, what a later one reads.

for v prefetch.A=2: ... A[v, j] ...     ->
for v: { if (v + 2 < end) for j: __builtin_prefetch(&A[v + 2, j]), a cache line a step; ... }

Regions that lie side by side, such as the vectors of an unrolled row, are one.
"""

from contextlib import ExitStack
from dataclasses import replace

from tensorlang.backends.c.context import Scope, Unit
from tensorlang.backends.c.expressions import Expressions
from tensorlang.backends.c.types import stored
from tensorlang.ir.accesses import accesses_of
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.interval import Interval
from tensorlang.ir.linear import integer
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Allocate, For, Stmt, walk
from tensorlang.ir.walk import substitute

PREFETCH = "prefetch."
_LINE = 64


def write_prefetches(loop: For, end: str, scope: Scope, unit: Unit) -> None:
    """The prefetches that the hints of a loop ask for; `end`: where it ends, in C."""
    for hint, offset in loop.hints:
        if not hint.startswith(PREFETCH):
            continue
        buffer = hint.removeprefix(PREFETCH)
        held = any(cell.buffer == buffer for cell in scope.cells)
        apart = held or buffer not in unit.storages or _is_allocated_in(loop.body, buffer)
        boxes = [] if apart else _boxes(loop, buffer, int(offset))
        if not boxes:
            why = "it is held in registers" if held else "no index known beforehand reads it there"
            unit.note(f"nothing of '{buffer}' is prefetched in '{loop.var}': {why}")
            continue
        with unit.code.block(f"if ({unit.names[loop.var]} + {offset} < {end})"):
            for box in boxes:
                _write_box(buffer, box, scope, unit)


def _is_allocated_in(body: Stmt, buffer: str) -> bool:
    """Whether each iteration has one of its own."""
    return any(isinstance(s, Allocate) and s.buffer.name == buffer for s in walk(body))


def _boxes(loop: For, buffer: str, offset: int) -> list[tuple[Interval, ...]]:
    """The regions that the accesses of an iteration `offset` later touch, each once."""
    later: dict[str, Expr] = {loop.var: Var(loop.var) + offset}
    found: dict[tuple[Expr, ...], tuple[Interval, ...]] = {}
    for access in accesses_of(loop.body, buffer):
        ends: list[Expr] = []
        for interval in access.tight:
            if interval is None or interval.lo is None or interval.hi is None:
                break
            ends += (simplify(substitute(e, later)) for e in (interval.lo, interval.hi))
        if len(ends) == 2 * len(access.tight) and not any(e.reads for e in ends):
            pairs = zip(ends[::2], ends[1::2], strict=True)
            found[tuple(ends)] = tuple(Interval(lo, hi) for lo, hi in pairs)
    return _joined(list(found.values()))


def _joined(boxes: list[tuple[Interval, ...]]) -> list[tuple[Interval, ...]]:
    """The boxes with each that goes on in a row where the one before it ends made one with it."""
    made: list[tuple[Interval, ...]] = []
    for box in boxes:
        previous = made[-1] if made else ()
        if previous and box and _goes_on(previous, box):
            made[-1] = (*box[:-1], Interval(previous[-1].lo, box[-1].hi))
        else:
            made.append(box)
    return made


def _goes_on(previous: tuple[Interval, ...], box: tuple[Interval, ...]) -> bool:
    """Whether the box has the first element after the other in each of its rows."""
    is_same = all(
        a.lo is b.lo and a.hi is b.hi for a, b in zip(previous[:-1], box[:-1], strict=True)
    )
    last, first = previous[-1].hi, box[-1].lo
    assert last is not None
    assert first is not None
    return is_same and simplify(first - last) is integer(1)


def _write_box(buffer: str, box: tuple[Interval, ...], scope: Scope, unit: Unit) -> None:
    """One prefetch a cache line of every row of the region, within the buffer."""
    storage = unit.storages[buffer]
    steps = tuple(Var(f"{buffer}.ahead{k}") for k in range(len(box)))
    names = {step.name: unit.names.fresh(f"ahead{k}") for k, step in enumerate(steps)}
    renamed = {**scope.renamed, **names}
    inside = replace(scope, renamed=renamed, lane=None, mask=None)
    expressions = Expressions(unit, inside)
    places: list[Expr] = []
    with ExitStack() as loops:
        for k, (step, interval) in enumerate(zip(steps, box, strict=True)):
            assert interval.lo is not None
            assert interval.hi is not None
            name, low = renamed[step.name], interval.lo
            if low is interval.hi:
                unit.code.line(f"const int64_t {name} = {expressions.scalar(low)};")
                places.append(step)
                continue
            line = 1
            if k == len(box) - 1 and storage.strides[0][k] is integer(1):
                line = max(1, _LINE * 8 // stored(storage.dtypes[0]).bits)
            # From 0, since a compiler unrolls what it can count, whatever the addresses are.
            last = expressions.scalar(simplify(interval.hi - low))
            head = f"for (int64_t {name} = 0; {name} <= {last}; {name} += {line})"
            loops.enter_context(unit.code.block(head))
            places.append(low + step)
        for k, pointer in enumerate(storage.pointers):
            at = expressions.scalar(storage.offset(tuple(places), k))
            unit.code.line(f"__builtin_prefetch(&{pointer}[{at}]);")
