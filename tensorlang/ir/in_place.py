"""Whether a program may write an output over an Input: it reads each element, and no later one.

D[i] = A[i]*2         safe: what is read of A is the element that is about to be replaced
D[i] = A[i + 1]       not: another iteration may have replaced it
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tensorlang.ir.expr import Binary, Expr
from tensorlang.ir.stmt import For, Let, Program, Stage, Stmt, Store, children_of, exprs_of
from tensorlang.ir.walk import loads_of, postorder, substitute


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands around a statement."""

    values: Mapping[str, Expr]
    loops: tuple[str, ...] = ()
    stage: tuple[str, int] = ("", 0)


def hazard_of(program: Program, source: str, output: str) -> str | None:
    """Why `output` cannot be written over the Input `source` as the program runs; None: it can."""
    found = list(_stores(program.body, output, _Place({})))
    stages = {place.stage for _, place in found}
    if not stages:
        return f"an element of '{source}' could be overwritten before it is read"
    if len(stages) > 1:
        return f"{output!r} is computed in {len(stages)} steps, and the first replaces '{source}'"
    for stmt, place in _reads(program.body, source, _Place({})):
        if place.stage not in stages:
            return f"{place.stage[0] or 'a condition'!r} reads '{source}' as well"
        if not (isinstance(stmt, Store) and stmt.buffer == output):
            return f"'{source}' decides which points are computed"
        for load in loads_of(*stmt.indices, *stmt.values):
            same = all(a is b for a, b in zip(load.indices, stmt.indices, strict=False))
            if load.buffer == source and not (same and len(load.indices) == len(stmt.indices)):
                return f"{output!r} reads '{source}' at other points than the one it computes"
    if any(_repeats(store, place) for store, place in found):
        return f"its schedule computes some points of {output!r} twice"
    return None


def may_store_twice(stmt: Stmt, buffer: str) -> bool:
    """Whether two iterations below a statement may store one element of a buffer."""
    return any(_repeats(store, place) for store, place in _stores(stmt, buffer, _Place({})))


def _stores(stmt: Stmt, buffer: str, place: _Place) -> Iterator[tuple[Store, _Place]]:
    for found, where in _walk(stmt, place):
        if isinstance(found, Store) and found.buffer == buffer:
            yield found, where


def _reads(stmt: Stmt, buffer: str, place: _Place) -> Iterator[tuple[Stmt, _Place]]:
    for found, where in _walk(stmt, place):
        if any(buffer in e.reads for e in exprs_of(found)):
            yield found, where


def _walk(stmt: Stmt, place: _Place) -> Iterator[tuple[Stmt, _Place]]:
    """The statements, each with what stands around it."""
    stack = [(stmt, place)]
    while stack:
        top, here = stack.pop()
        yield top, here
        match top:
            case Let():
                value = substitute(top.value, here.values)
                inside = replace(here, values={**here.values, top.var: value})
            case For():
                inside = replace(here, loops=(*here.loops, top.var))
            case Stage():
                inside = replace(here, stage=(top.func, top.number))
            case _:
                inside = here
        stack += [(child, inside) for child in children_of(top)]


def _repeats(store: Store, place: _Place) -> bool:
    """Whether two iterations may store one element: a clamped index, or a loop that names none."""
    indices = [substitute(e, place.values) for e in store.indices]
    clamped = any(isinstance(e, Binary) and e.op in ("min", "max") for e in postorder(*indices))
    named = frozenset[str]().union(*(e.free for e in indices)) if indices else frozenset[str]()
    return clamped or not named.issuperset(place.loops)
