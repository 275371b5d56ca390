"""Elements that a loop updates over and over: held in C variables while it runs.

for k: C[i, j] = C[i, j] + a(k)        ->   c = C[i, j];  for k: c = c + a(k);  C[i, j] = c
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tensorlang.backends.c.context import Cell, Lane, Scope, Unit
from tensorlang.backends.c.guards import guards_of
from tensorlang.backends.c.rewriting import is_plain, place_names, replace_names
from tensorlang.backends.c.storage import Storage
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Expr, Load
from tensorlang.ir.linear import Linear
from tensorlang.ir.stmt import (
    Allocate,
    For,
    If,
    Let,
    LoopKind,
    Stmt,
    Store,
    children_of,
    exprs_of,
    map_children,
    walk,
)
from tensorlang.ir.types import f32, f64, index
from tensorlang.ir.walk import loads_of, postorder


@dataclass(frozen=True, slots=True)
class _Access:
    """A load or a store, and the lane loop it stands in."""

    cell: Cell | None
    is_store: bool


def cells_of(loop: For, scope: Scope, unit: Unit) -> tuple[Cell, ...]:
    """What to hold in variables around the loop; nothing where that might not be right."""
    bound = _bound_in(loop.body, loop.var)
    if bound is None or _may_protect(loop.body, bound):
        return ()
    busy = {cell.buffer for cell in scope.cells}
    stores = [s for s in walk(loop.body) if isinstance(s, Store)]
    stored = {s.buffer for s in stores} - {s.buffer for s in stores if s.atomic}
    found: list[Cell] = []
    for buffer in sorted(stored - busy - bound):
        found += _cells(_accesses(loop.body, buffer, scope, unit.storages[buffer]), bound)
    vectors = sum(cell.lanes > 1 for cell in found)
    if vectors > unit.machine.vector_registers - 3 or len(found) - vectors > 8:
        return ()
    return tuple(found)


def with_fixed_places(loop: For) -> For:
    """The loop with what it only names replaced: a place that is the same in an iteration.

    for k: { let x = o*4 + 1; C[x] = C[x] + a(k) }   ->   for k: C[o*4 + 1] = C[o*4 + 1] + a(k)

    Itself where nothing is updated, and so nothing gained.
    """
    stores = (s for s in walk(loop.body) if isinstance(s, Store))
    if not any(s.buffer in value.reads for s in stores for value in s.values):
        return loop
    body = _with_fixed_places(loop.body, frozenset())
    return loop if body is loop.body else replace(loop, body=body)


def _with_fixed_places(stmt: Stmt, varying: frozenset[str]) -> Stmt:
    match stmt:
        case Let(var=name, value=value) if is_plain(value) and varying.isdisjoint(value.free):
            return _with_fixed_places(replace_names(stmt.body, {name: value}), varying)
        case Let() | For():
            varying |= {stmt.var}
        case _:
            pass
    return map_children(stmt, lambda child: _with_fixed_places(child, varying))


def cells_of_buffer(body: Stmt, buffer: str, storage: Storage, scope: Scope) -> tuple[Cell, ...]:
    """All elements of a buffer as vectors; nothing where it has to be in memory.

    Args: body: all that touches the buffer.
    """
    bound = _bound_in(body)
    if bound is None:
        return ()
    cells = _cells(_accesses(body, buffer, scope, storage), bound)
    return tuple(cells) if all(cell.lanes > 1 for cell in cells) else ()


def stores_to(buffers: AbstractSet[str], loop: For) -> bool:
    """Whether the loop stores to one of the buffers."""
    return any(isinstance(s, Store) and s.buffer in buffers for s in walk(loop.body))


def shared_loads(loop: For, scope: Scope, unit: Unit) -> tuple[Cell, ...]:
    """Vectors that several statements of a loop that holds cells load: once an iteration is enough.

    A compiler reads memory again in each instruction where it can, and so more than it has to.
    """
    bound = _bound_in(loop.body, loop.var)
    if bound is None or any(isinstance(s, If) for s in walk(loop.body)):
        return ()
    stored = {s.buffer for s in walk(loop.body) if isinstance(s, Store)}
    stored |= {cell.buffer for cell in scope.cells}
    free = unit.machine.vector_registers - 1 - len(scope.cells)
    found: list[tuple[Cell, int]] = []
    for cell in _vector_loads(loop.body, scope, unit, stored | bound):
        if not _is_fixed(cell.places, bound - {loop.var}):
            continue
        same = next((k for k, (c, _) in enumerate(found) if _is_same(c, cell)), None)
        if same is None:
            found.append((cell, 1))
        else:
            found[same] = (cell, found[same][1] + 1)
    shared = tuple(cell for cell, count in found if count > 1)
    return shared if len(shared) <= free else ()


def _is_same(a: Cell, b: Cell) -> bool:
    own = (a.buffer, a.component, a.lanes) == (b.buffer, b.component, b.lanes)
    return own and a.is_at(b.places)


def _vector_loads(
    stmt: Stmt, scope: Scope, unit: Unit, but: frozenset[str] | set[str]
) -> Iterator[Cell]:
    """The vectors of floats, each in one register, that stores load, `but` from those buffers."""
    if isinstance(stmt, For) and stmt.kind is LoopKind.VECTORIZED:
        lane = Lane(stmt.var, int(stmt.extent.value), stmt.min)  # type: ignore[attr-defined]
        yield from _vector_loads(stmt.body, replace(scope, lane=lane), unit, but)
        return
    if isinstance(stmt, Store) and scope.lane is not None:
        guarded = guards_of(stmt.values, scope.mask)
        for load in loads_of(*stmt.values):
            width = load.dtype.bits // 8 * scope.lane.width
            if load.buffer in but or load in guarded or load.dtype not in (f32, f64):
                continue
            if width != unit.machine.vector_bytes:
                continue
            access = _load_access(load, scope, unit.storages[load.buffer])
            if access.cell is not None and access.cell.lanes > 1:
                yield access.cell
    for child in children_of(stmt):
        yield from _vector_loads(child, scope, unit, but)


def _bound_in(body: Stmt, *also: str) -> frozenset[str] | None:
    """The names bound there, but for lane loops; None where threads are started."""
    names = set(also)
    for stmt in walk(body):
        match stmt:
            case For(kind=LoopKind.PARALLEL | LoopKind.GPU_BLOCK):
                return None
            case For(kind=LoopKind.VECTORIZED):
                pass
            case For() | Let():
                names.add(stmt.var)
            case Allocate():
                names.add(stmt.buffer.name)
            case _:
                pass
    return frozenset(names)


def _may_protect(body: Stmt, bound: AbstractSet[str]) -> bool:
    """Whether a condition inside may keep an element from being touched at all.

    One that does not depend on the loop may, and one like `i + k < N`, which may hold for no k:
    element i need not be there.  So may an inner loop over [0, N - i).  One of data alone or of
    the loop alone says nothing of i.
    """
    within = list(walk(body))
    conditions = [s.condition for s in within if isinstance(s, If)]
    if any(bound.isdisjoint(condition.free) for condition in conditions):
        return True
    parts = [part for condition in conditions for part in conjuncts_of(condition)]
    parts += [s.extent for s in within if isinstance(s, For)]
    return not bound >= _places_in(parts, [s for s in within if isinstance(s, Let)])


def _places_in(parts: Iterable[Expr], lets: Iterable[Let]) -> set[str]:
    """The index variables that decide the parts, through the names of Lets; data decides alone."""
    values: dict[str, list[Expr]] = {}
    for let in lets:
        values.setdefault(let.var, []).append(let.value)
    found: set[str] = set()
    waiting = list(parts)
    while waiting:
        for name in place_names(waiting.pop()) - found:
            found.add(name)
            waiting += values.get(name, ())
    return found


def _accesses(stmt: Stmt, buffer: str, scope: Scope, storage: Storage) -> Iterator[_Access]:
    """Every access of the buffer; one that cannot be held has no cell."""
    if isinstance(stmt, For) and stmt.kind is LoopKind.VECTORIZED:
        lane = Lane(stmt.var, int(stmt.extent.value), stmt.min)  # type: ignore[attr-defined]
        inner = replace(scope, lane=lane)
        yield from _accesses(stmt.body, buffer, inner, storage)
        return
    if _is_lane_by_lane(stmt, scope) and _touches(stmt, buffer):
        # One element after another, in memory.
        yield _Access(None, False)
        return
    if isinstance(stmt, Let) and scope.varies(stmt.value):
        body = replace_names(stmt.body, {stmt.var: stmt.value})
        yield from _accesses(body, buffer, scope, storage)
        return
    if isinstance(stmt, Store):
        if stmt.buffer == buffer:
            for component in range(len(stmt.values)):
                yield _access(buffer, component, stmt.indices, scope, storage, is_store=True)
        if any(buffer in i.reads for i in stmt.indices):
            yield _Access(None, False)
        yield from _loads(stmt.values, buffer, scope, storage)
    elif any(buffer in e.reads for e in exprs_of(stmt)):
        yield _Access(None, False)
    for child in children_of(stmt):
        yield from _accesses(child, buffer, scope, storage)


def _is_lane_by_lane(stmt: Stmt, scope: Scope) -> bool:
    """Whether what a statement does differs in shape from lane to lane."""
    match stmt:
        case For():
            return scope.varies(stmt.min) or scope.varies(stmt.extent)
        case Let():
            return scope.varies(stmt.value) and bool(stmt.value.reads)
        case If():
            return scope.varies(stmt.condition) and bool(stmt.condition.reads)
        case _:
            return False


def _touches(stmt: Stmt, buffer: str) -> bool:
    return any(
        (isinstance(s, Store) and s.buffer == buffer) or any(buffer in e.reads for e in exprs_of(s))
        for s in walk(stmt)
    )


def _loads(
    values: tuple[Expr, ...], buffer: str, scope: Scope, storage: Storage
) -> Iterator[_Access]:
    if not any(buffer in value.reads for value in values):
        return
    for load in loads_of(*values):
        if any(buffer in i.reads for i in load.indices):
            yield _Access(None, False)
        elif load.buffer == buffer:
            yield _load_access(load, scope, storage)
    for e in postorder(*values):
        # Computed lane by lane, from memory.
        if e.dtype is index and buffer in e.reads:
            yield _Access(None, False)


def _load_access(load: Load, scope: Scope, storage: Storage) -> _Access:
    return _access(load.buffer, load.component, load.indices, scope, storage, is_store=False)


def _access(
    buffer: str,
    component: int,
    indices: tuple[Expr, ...],
    scope: Scope,
    storage: Storage,
    *,
    is_store: bool,
) -> _Access:
    lanes = 1
    if scope.lane is not None and any(scope.lane.var in i.free for i in indices):
        if storage.step_of(indices, component, scope.lane.name) != 1:
            return _Access(None, is_store)
        lanes = scope.lane.width
    elif scope.lane is not None and is_store:
        return _Access(None, is_store)
    places = scope.at_first_lane(storage.places(indices))
    return _Access(Cell(buffer, component, places, lanes), is_store)


def _cells(accesses: Iterable[_Access], bound: frozenset[str]) -> list[Cell]:
    """The distinct cells, where each access has one and no two can overlap."""
    fixed: list[tuple[Cell, bool]] = []
    for access in accesses:
        if access.cell is None or not _is_fixed(access.cell.places, bound):
            return []
        fixed.append((access.cell, access.is_store))
    found: list[Cell] = []
    for cell, is_store in sorted(fixed, key=lambda pair: not pair[1]):
        same = [c for c in found if c.component == cell.component and c.is_at(cell.places)]
        if same:
            if same[0].lanes != cell.lanes:
                return []
        elif is_store:
            found.append(cell)
        else:
            return []
    for k, a in enumerate(found):
        if not all(a.component != b.component or a.is_apart_from(b) for b in found[:k]):
            return []
    return found


def _is_fixed(places: tuple[Linear, ...], bound: frozenset[str]) -> bool:
    return all(bound.isdisjoint(atom.free) and not atom.reads for p in places for atom in p.terms)
