"""Move each Func to the loop that computes it, and its storage to where it is kept."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tensorlang.errors import ScheduleError
from tensorlang.ir.accesses import REGION_PARTS, STORAGE_PARTS
from tensorlang.ir.expr import Var
from tensorlang.ir.mentions import touches
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Dim,
    For,
    If,
    Let,
    Program,
    Stage,
    Stmt,
    Store,
    block,
    children_of,
    exprs_of,
    is_otherwise,
    map_children,
    with_body,
)
from tensorlang.lower.plan import ROOT, Level, Placement, Plan
from tensorlang.lower.shared_loops import is_shared, share_loops

Storage: TypeAlias = list[Let | Allocate]


def place_stages(program: Program, plan: Plan) -> Program:
    """for v: s   ->   for v: { allocate f { stages of f; s } }     for f computed at v

    Consumers come first, so that a Func lands inside a consumer that has been placed itself.
    Requires: every Func at root.  Ensures: no later pass sees the schedule.
    Raises: ScheduleError (consumer-outside, store-inside-compute).
    """
    moved = {name for name, p in plan.placements.items() if not p.inline and not _is_at_root(p)}
    body, taken = _take_out(program.body, moved)
    for func in reversed(plan.algorithm.funcs):
        if func.name in moved:
            placement = plan.placements[func.name]
            body = _with_readers_together(body, func.name, placement, plan)
            body = _put(body, func.name, taken[func.name], placement)
    return program if body is program.body else replace(program, body=body)


def _with_readers_together(body: Stmt, func: str, placement: Placement, plan: Plan) -> Stmt:
    """for v: a; for v: b   ->   for v: { a; b }     where compute_with says so, and both use `func`

    So the Func can be computed once for both, in the loop that they share.
    """
    level = placement.compute if placement.store in (None, ROOT) else placement.store
    for merge in plan.merges:
        if merge.into[0] != level.func:
            continue
        over = dict.fromkeys(_loops_over(body, f"{level.func}.{level.loop}", func), Block(()))
        if not _is_used_outside(body, func, over):
            continue
        names = plan.nests[merge.into].names()
        inside = level.loop in names and merge.loop in names
        if inside and names.index(level.loop) <= names.index(merge.loop):
            body = body if is_shared(body, merge) else share_loops(body, merge, plan)
    return body


def _is_at_root(placement: Placement) -> bool:
    return placement.compute == ROOT and placement.store in (None, ROOT)


def _put(body: Stmt, func: str, parts: "_Taken", placement: Placement) -> Stmt:
    """The stages of a Func where it is computed, its storage where that is kept."""
    stages, storage, compute = parts.stages, parts.storage, placement.compute
    store = compute if placement.store is None else placement.store
    if store == compute:
        return _at(
            body, func, placement, store, lambda inner: _around(storage, block(*stages, inner))
        )
    lets = [s for s in storage if isinstance(s, Let)]
    body = _at(body, func, placement, compute, lambda inner: _around(lets, block(*stages, inner)))
    kept = _storage_of_its_own(storage)
    return _at(body, func, placement, store, lambda inner: _around(kept, inner))


def _around(outer: Sequence[Let | Allocate], body: Stmt) -> Stmt:
    for stmt in reversed(outer):
        body = with_body(stmt, body)
    return body


def _storage_of_its_own(storage: Storage) -> Storage:
    """The allocation over `f.x.low` and `f.x.count`, for all that the loops inside it need."""
    made: Storage = []
    for stmt in storage:
        if isinstance(stmt, Let):
            base, _, part = stmt.var.rpartition(".")
            if part in (REGION_PARTS[0], REGION_PARTS[1]):
                own = STORAGE_PARTS[REGION_PARTS.index(part)]
                made.append(replace(stmt, var=f"{base}.{own}"))
        else:
            lets = [s for s in made if isinstance(s, Let)]
            names = [Var(s.var) for s in lets]
            dims = tuple(Dim(*pair) for pair in zip(names[::2], names[1::2], strict=True))
            made.append(replace(stmt, buffer=replace(stmt.buffer, dims=dims)))
    return made


@dataclass(frozen=True, slots=True)
class _Taken:
    """The stages of a Func; the Lets and the allocation around them."""

    stages: list[Stmt] = field(default_factory=list[Stmt])
    storage: Storage = field(default_factory=list[Let | Allocate])


def _take_out(body: Stmt, funcs: Collection[str]) -> tuple[Stmt, Mapping[str, _Taken]]:
    """The program without these Funcs at root, and what is theirs."""
    taken = {func: _Taken() for func in funcs}

    def remove(stmt: Stmt) -> Stmt:
        match stmt:
            case Let() if (func := stmt.var.partition(".")[0]) in taken:
                taken[func].storage.append(stmt)
                return remove(stmt.body)
            case Allocate() if stmt.buffer.name in taken:
                taken[stmt.buffer.name].storage.append(stmt)
                return remove(stmt.body)
            case Stage() if stmt.func in taken:
                taken[stmt.func].stages.append(stmt)
                return Block(())
            case Let() | Allocate() | Block():
                return map_children(stmt, remove)
            case _:
                return stmt

    rest = remove(body)
    return rest, taken


def _at(
    body: Stmt, func: str, placement: Placement, level: Level, make: Callable[[Stmt], Stmt]
) -> Stmt:
    """`make` of what stands just inside the loop `level`; every use of the Func must be there."""
    if level == ROOT:
        return make(body)
    var = f"{level.func}.{level.loop}"
    loops = list(_loops_over(body, var, func))
    made: Made = {loop: replace(loop, body=_inside_guards(loop.body, func, make)) for loop in loops}
    at_once = _most_that_run(body, func, made)
    if at_once != 1 or _is_used_outside(body, func, made):
        raise _consumer_outside(func, placement, level, at_once)
    return _swap(body, func, made)


Made: TypeAlias = Mapping[For, Stmt]


def _loops_over(stmt: Stmt, var: str, func: str) -> Iterator[For]:
    """The loops over `var` in which the Func is used."""
    if touches(stmt, func):
        if isinstance(stmt, For) and stmt.var == var:
            yield stmt
        for child in children_of(stmt):
            yield from _loops_over(child, var, func)


def _swap(body: Stmt, func: str, made: Made) -> Stmt:
    """What is made for the loops that use the Func in their place."""
    if not touches(body, func):
        return body
    if isinstance(body, For) and body in made:
        return made[body]
    return map_children(body, lambda child: _swap(child, func, made))


def _is_used_outside(stmt: Stmt, func: str, loops: Collection[For]) -> bool:
    if (isinstance(stmt, For) and stmt in loops) or not touches(stmt, func):
        return False
    stores = isinstance(stmt, Store) and stmt.buffer == func
    reads = any(func in e.reads for e in exprs_of(stmt))
    return stores or reads or any(_is_used_outside(s, func, loops) for s in children_of(stmt))


def _most_that_run(stmt: Stmt, func: str, loops: Made) -> int:
    """How many of the loops one call can reach: of the two sides of a condition only one."""
    if not touches(stmt, func):
        return 0
    if isinstance(stmt, For) and stmt in loops:
        return 1
    counts = [_most_that_run(s, func, loops) for s in children_of(stmt)]
    parts = children_of(stmt)
    if len(parts) == 2 and is_otherwise(*parts):
        return max(counts)
    return sum(counts)


def _inside_guards(stmt: Stmt, func: str, make: Callable[[Stmt], Stmt]) -> Stmt:
    """`make` of what stands there from the first use of the Func on.

    Values and conditions of the loop stay outside: what they mask need not be computed.  The region
    of a Func that was placed here before goes inside, since it reads this one.
    """
    reads = any(func in e.reads for e in exprs_of(stmt))
    is_region = isinstance(stmt, Let) and stmt.var.count(".") == 2
    if isinstance(stmt, (Let, If, Allocate)) and not reads and not is_region:
        return replace(stmt, body=_inside_guards(stmt.body, func, make))
    if isinstance(stmt, Block):
        parts = stmt.statements
        first = next((k for k, s in enumerate(parts) if touches(s, func)), 0)
        rest = block(*parts[first:])
        # A lone statement may be storage of another Func, in which the first use stands deeper.
        made = _inside_guards(rest, func, make) if first == len(parts) - 1 else make(rest)
        return block(*parts[:first], made)
    return make(stmt)


def _consumer_outside(func: str, placement: Placement, level: Level, loops: int) -> ScheduleError:
    why = {
        0: f"no stage of {level.func!r} with a loop {level.loop!r} reads {func!r}",
        1: f"{func!r} is also used outside that loop, where it would not exist",
    }.get(loops, f"{loops} stages of {level.func!r} have a loop {level.loop!r} and use {func!r}")
    return ScheduleError(
        "consumer-outside",
        f"cannot compute or store {func!r} at {level.loop!r} of {level.func!r}",
        why=why,
        fix="choose a loop that holds all its uses (rename it where two stages share the name), "
        "or compute_root",
        span=placement.span,
    )
