"""Bring a stage up to the one in whose loops it is to run."""

from collections.abc import Sequence
from dataclasses import replace

from tensorlang.ir.mentions import touches
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    For,
    Let,
    Stage,
    Stmt,
    Store,
    block,
    exprs_of,
    map_children,
    walk,
)
from tensorlang.lower.plan import Merge


def brought_beside(body: Stmt, merge: Merge) -> Stmt:
    """a; allocate X { s; t; b; u }   ->   allocate X { s; a; b; t; u }     or b; ...; a

    s is what b needs, such as the values it starts from, and t what stands between and is not
    needed.  Storage of what is computed between then lives longer.  Both stand in one sequence, at
    root or inside loops that were merged before; there `a` is the rest of its stage.  Where one
    needs the other the body stays as it is.
    """
    return _in_line(body, merge, None)


def last_stage(stage: Stage) -> tuple[str, int]:
    """Func and number of the last stage that was merged into this one, or its own."""
    inner = [s for s in walk(stage.body) if isinstance(s, Stage)]
    last = inner[-1] if inner and inner[-1].func == stage.func else stage
    return last.func, last.number


def _in_line(body: Stmt, merge: Merge, inside: Stage | None) -> Stmt:
    line = _line(body, merge)
    at = next((k for k, s in enumerate(line) if _runs(s, merge, inside)), None)
    to = next((k for k, s in enumerate(line) if _is_stage(s, merge)), None)
    if at is None or to is None:
        inside = body if isinstance(body, Stage) else inside
        return map_children(body, lambda child: _in_line(child, merge, inside))
    order = _order(line, at, to)
    if order is None:
        return body
    if isinstance(first := line[at], For) and inside is not None:
        order[order.index(first)] = replace(inside, body=first)
    return _nested(order)


def _runs(stmt: Stmt, merge: Merge, inside: Stage | None) -> bool:
    """Whether it is the stage in whose loops another is to run, or such a loop of it."""
    if isinstance(stmt, Stage):
        return last_stage(stmt) == merge.into
    names = None if inside is None else (inside.func, inside.number)
    func, number = merge.into
    return isinstance(stmt, For) and names == (func, number) and stmt.var.startswith(f"{func}.")


def _is_stage(stmt: Stmt, merge: Merge) -> bool:
    return isinstance(stmt, Stage) and (stmt.func, stmt.number) == merge.stage


def _order(line: Sequence[Stmt], at: int, to: int) -> list[Stmt] | None:
    """The line with `at` and `to` side by side, if nothing that changes its place needs another."""
    low, high = min(at, to), max(at, to)
    first, last, between = line[low], line[high], line[low + 1 : high]
    held = [s for s in between if isinstance(s, (Allocate, Let))]
    before: list[Stmt] = []
    after: list[Stmt] = []
    for s in reversed(between):
        if not isinstance(s, (Allocate, Let)):
            is_needed = any(_depend(s, later) for later in (last, *before))
            (before if is_needed else after).insert(0, s)
    read = frozenset[str]().union(*(e.reads for s in held for e in exprs_of(s)))
    if any(_depend(first, s) for s in before) or any(_stored(s) & read for s in line[low:high]):
        return None
    return [*line[:low], *held, *before, line[at], line[to], *after, *line[high + 1 :]]


def _depend(a: Stmt, b: Stmt) -> bool:
    """Whether one touches what the other stores."""
    return any(touches(x, name) for x, y in ((a, b), (b, a)) for name in _stored(y))


def _stored(stmt: Stmt) -> set[str]:
    return {s.buffer for s in walk(stmt) if isinstance(s, Store)}


def _line(body: Stmt, merge: Merge) -> list[Stmt]:
    """The statements in order; an Allocate or a Let stands for its head alone.

    A stage around the one that is merged comes apart.
    """
    if isinstance(body, Block):
        return [s for part in body.statements for s in _line(part, merge)]
    if isinstance(body, (Allocate, Let)):
        return [body, *_line(body.body, merge)]
    if isinstance(body, Stage) and not _is_stage(body, merge):
        inner = _line(body.body, merge)
        if any(_is_stage(s, merge) for s in inner):
            heads = (Allocate, Let, Stage)
            return [s if isinstance(s, heads) else replace(body, body=s) for s in inner]
    return [body]


def _nested(line: Sequence[Stmt]) -> Stmt:
    """The inverse of `_line`."""
    made: list[Stmt] = []
    for item in reversed(line):
        if isinstance(item, (Allocate, Let)):
            made = [replace(item, body=block(*made))]
        else:
            made.insert(0, item)
    return block(*made)
