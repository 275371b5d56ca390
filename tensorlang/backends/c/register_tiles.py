"""Small buffers that live in vector registers from their definition to their last use.

    allocate C[4, 24]: { C = 0; for k: C += a(k)*b(k); D = C }     each part under its own guards
->  if all guards hold: the same without them, C in twelve variables and nowhere in memory
    else: the same as it was
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import accumulate
from operator import mul

from tensorlang.backends.c.cells import cells_of_buffer
from tensorlang.backends.c.choices import choice_of
from tensorlang.backends.c.context import Cell, Scope
from tensorlang.backends.c.corners import slack_of
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.rewriting import (
    all_of,
    either,
    is_plain,
    otherwise,
    replace_names,
    total,
)
from tensorlang.backends.c.storage import Storage
from tensorlang.backends.c.types import stored
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.linear import Linear, integer, to_expr, to_linear
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    For,
    If,
    Let,
    LoopKind,
    Stmt,
    Store,
    block,
    exprs_of,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of

# Of the version that is made: more is too much text.
_MOST_STORES = 64


def in_registers(stmt: Allocate, machine: Machine) -> Stmt:
    """The buffer in a version that needs no memory, where all guards hold; itself if none does."""
    if not _fits(stmt.buffer, machine):
        return stmt
    choice = choice_of(stmt.body)
    fast = stmt.body if choice is None else choice.fast
    made = Allocate(stmt.buffer, _opened(fast, stmt.buffer.name))
    if _stores(made) > _MOST_STORES or not tile_cells(made, Scope(), machine):
        return stmt
    parts = [] if choice is None else _strongest(choice.condition)
    return either(all_of(parts), made, _never(frozenset(parts), stmt))


def tile_cells(stmt: Allocate, scope: Scope, machine: Machine) -> tuple[Cell, ...]:
    """The variables that the buffer consists of; nothing where it has to be in memory."""
    buffer = stmt.buffer
    if not _fits(buffer, machine):
        return ()
    extents = [int(dim.extent.value) for dim in buffer.dims if isinstance(dim.extent, Const)]
    sizes = accumulate(reversed(extents[1:]), mul, initial=1)
    strides = tuple(integer(size) for size in reversed(list(sizes)))
    count = len(buffer.dtypes)
    mins = tuple(dim.min for dim in buffer.dims)
    names = (buffer.name,) * count
    storage = Storage(names, buffer.dtypes, mins, (strides,) * count, ())
    return cells_of_buffer(stmt.body, buffer.name, storage, scope)


def _fits(buffer: Buffer, machine: Machine) -> bool:
    """Whether the registers hold it, and a few operands besides."""
    size = sum(stored(dtype).bits // 8 for dtype in buffer.dtypes)
    for dim in buffer.dims:
        if not isinstance(dim.extent, Const):
            return False
        size *= int(dim.extent.value)
    most = (machine.vector_registers - 3) * machine.vector_bytes
    return bool(buffer.dims) and not buffer.fold and 0 < size <= most


def _opened(stmt: Stmt, buffer: str) -> Stmt:
    """The loops that run over the elements of the buffer unrolled, and their Lets replaced."""
    match stmt:
        case Let() if is_plain(stmt.value):
            return _opened(replace_names(stmt.body, {stmt.var: stmt.value}), buffer)
        case For(kind=LoopKind.SERIAL, extent=Const(value=count)):
            body = _opened(stmt.body, buffer)
            if not _indexes(body, buffer, stmt.var):
                return replace(stmt, body=body)
            places = [total(stmt.min, integer(k)) for k in range(int(count))]
            return block(*(_folded(replace_names(body, {stmt.var: at})) for at in places))
        case _:
            return map_children(stmt, lambda child: _opened(child, buffer))


def _folded(stmt: Stmt) -> Stmt:
    """The statement with constants in its indices added up."""
    changed = map_exprs(stmt, lambda e: to_expr(to_linear(e)) if e.dtype is index else e)
    return map_children(changed, _folded)


def _indexes(stmt: Stmt, buffer: str, name: str) -> bool:
    """Whether the name says which element of the buffer is meant."""
    for s in walk(stmt):
        if isinstance(s, For) and s.kind is LoopKind.VECTORIZED and name in s.min.free:
            return True
        if isinstance(s, Store) and s.buffer == buffer and any(name in i.free for i in s.indices):
            return True
        for load in loads_of(*exprs_of(s)):
            if load.buffer == buffer and any(name in i.free for i in load.indices):
                return True
    return False


def _strongest(condition: Expr) -> list[Expr]:
    """The conjuncts but for those that follow from another: of x < M and x + 3 < M the latter."""
    least: list[tuple[Expr, Linear | None]] = []
    for part in dict.fromkeys(conjuncts_of(condition)):
        form = slack_of(part, frozenset())
        same = [k for k, (_, f) in enumerate(least) if form and f and f.terms == form.terms]
        if not same:
            least.append((part, form))
        elif form and (other := least[same[0]][1]) and form.constant < other.constant:
            least[same[0]] = part, form
    return [part for part, _ in least]


def _never(parts: AbstractSet[Expr], stmt: Stmt) -> Stmt:
    """The statement where not all parts hold: without the versions for where they do."""
    if not isinstance(stmt, Block):
        return map_children(stmt, lambda child: _never(parts, child))
    made: list[Stmt] = []
    previous: Stmt | None = None
    for s in stmt.statements:
        slow = otherwise(previous, s)
        if slow is not None and isinstance(previous, If) and _implies(previous.condition, parts):
            made[-1] = _never(parts, slow)
        else:
            made.append(_never(parts, s))
        previous = s
    return block(*made)


def _implies(condition: Expr, parts: AbstractSet[Expr]) -> bool:
    """Whether the conjunction has all the parts, however they are written."""
    return set(map(_written, parts)) <= set(map(_written, _strongest(condition)))


def _written(part: Expr) -> Expr:
    form = slack_of(part, frozenset())
    return part if form is None else to_expr(form)


def _stores(stmt: Stmt) -> int:
    return sum(isinstance(s, Store) for s in walk(stmt))
