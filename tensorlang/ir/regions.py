"""The region of each Func that its consumers need, from the loads that stand in a program.

A region is four names a dimension, bound by Let around the Func's storage:

    f.x.min, f.x.extent     what is allocated and looped over
    f.x.first, f.x.last     what is needed: the rest is computed by no iteration (a guard)

Two intervals are found for every index.  The loose one lets every loop run over its whole range, so
that the extent of a tile comes out constant; the tight one also uses guards, `where` and select.
Where the tight extent is constant, or the loose one is not, the region is the tight one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.errors import InternalError
from tensorlang.ir.expr import Const, Expr, Load, Select, Unary
from tensorlang.ir.facts import Facts
from tensorlang.ir.interval import Interval, bounds_of, sharpen, union, within
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Allocate,
    For,
    If,
    Let,
    Stage,
    Stmt,
    Store,
    children_of,
    exprs_of,
    map_children,
    walk,
)
from tensorlang.ir.types import index
from tensorlang.span import Span

REGION_PARTS = ("min", "extent", "first", "last")
ZERO, ONE = Const(0, index), Const(1, index)
Ranges: TypeAlias = Mapping[str, Interval]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store of a buffer: two intervals an index, and where it stands.

    An interval is None where the index is the Func's own loop over its region.  `extents`: upper
    bounds of the extents of the loops around it; where one is <= 0 the access never happens.
    """

    loose: tuple[Interval | None, ...]
    tight: tuple[Interval | None, ...]
    extents: tuple[Expr, ...]
    span: Span | None = None


def infer_regions(body: Stmt, facts: Facts = Facts.none) -> Stmt:
    """Every region shrunk to what is needed where its Func is allocated."""
    match body:
        case Let() if (region := _open_region(body)) is not None:
            func, lets, inner = region
            facts = facts.with_value(body.var, body.value)
            result = infer_regions(inner, facts)
            dims = [_region(accesses, facts) for accesses in _by_dim(result, func)]
            values = [value for dim in dims for value in dim]
            for let, value in reversed(list(zip(lets, values, strict=True))):
                result = Let(let.var, value, result)
            return result
        case Let():
            facts = facts.with_value(body.var, body.value)
        case For():
            facts = facts.with_range(body.var, body.min, body.extent)
        case If():
            facts = facts.assume(body.condition)
        case _:
            pass
    return map_children(body, lambda child: infer_regions(child, facts))


def _open_region(stmt: Let) -> tuple[str, list[Let], Stmt] | None:
    """A Func, the Lets of its region, and what they stand around; None for an output's.

    The storage may stand deeper: producers that the Func reads come between.
    """
    lets: list[Let] = []
    func, _, part = stmt.var.rpartition(".")
    if part != REGION_PARTS[0] or "." not in func:
        return None
    func = func.rpartition(".")[0]
    inner: Stmt = stmt
    while isinstance(inner, Let) and inner.var.startswith(f"{func}."):
        lets.append(inner)
        inner = inner.body
    if any(isinstance(s, Allocate) and s.buffer.name == func for s in walk(inner)):
        return func, lets, inner
    return None


def _by_dim(body: Stmt, func: str) -> list[list[tuple[Interval, Interval, Span | None]]]:
    """For each dimension of a Func, the intervals of all accesses to it."""
    accesses = list(accesses_of(body, func))
    rank = len(accesses[0].loose) if accesses else 0
    dims: list[list[tuple[Interval, Interval, Span | None]]] = [[] for _ in range(rank)]
    for access in accesses:
        for dim, loose, tight in zip(dims, access.loose, access.tight, strict=True):
            if loose is not None and tight is not None:
                dim.append((loose, tight, access.span))
    return dims


def _region(
    needs: list[tuple[Interval, Interval, Span | None]], facts: Facts
) -> tuple[Expr, Expr, Expr, Expr]:
    """min, extent, first and last of one dimension."""
    if not needs:
        return ZERO, ZERO, ZERO, Const(-1, index)
    loose, tight = needs[0][:2]
    for a, b, _ in needs[1:]:
        loose, tight = union(loose, a, facts), union(tight, b, facts)
    if tight.lo is None or tight.hi is None:
        raise InternalError("the region of a Func is unbounded; unbounded_index should refuse it")
    first, last = simplify(tight.lo, facts), simplify(tight.hi, facts)
    extent = simplify(last - first + 1, facts)
    if isinstance(extent, Const) or loose.lo is None or loose.hi is None:
        return first, extent, first, last
    whole = simplify(loose.hi - loose.lo + 1, facts)
    if isinstance(whole, Const):
        return simplify(loose.lo, facts), whole, first, last
    return first, extent, first, last


def accesses_of(body: Stmt, buffer: str) -> Iterator[Access]:
    """Every load of `buffer`, and every store to it, below `body`."""
    touching: dict[Stmt, bool] = {}
    yield from _accesses(body, buffer, _Scope({}, {}, (), frozenset(), None), touching)


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """What is known of the names bound between `body` and here.

    `own`: those that run over the region of the buffer itself, in its own stages.
    """

    loose: Ranges
    tight: Ranges
    extents: tuple[Expr, ...]
    own: frozenset[str]
    span: Span | None


def _touches(stmt: Stmt, buffer: str, memo: dict[Stmt, bool]) -> bool:
    if stmt not in memo:
        memo[stmt] = (
            (isinstance(stmt, Store) and stmt.buffer == buffer)
            or any(buffer in e.reads for e in exprs_of(stmt))
            or any(_touches(child, buffer, memo) for child in children_of(stmt))
        )
    return memo[stmt]


def _accesses(stmt: Stmt, buffer: str, scope: _Scope, memo: dict[Stmt, bool]) -> Iterator[Access]:
    if not _touches(stmt, buffer, memo):
        return
    if isinstance(stmt, (Stage, Store)):
        scope = replace(scope, span=stmt.span)
    for e in exprs_of(stmt):
        for load, conditions in _guarded_loads(e, buffer):
            yield _access(load.indices, buffer, scope, conditions)
    if isinstance(stmt, Store) and stmt.buffer == buffer:
        yield _access(stmt.indices, buffer, scope, ())
    scope = _enter(stmt, scope, buffer)
    for child in children_of(stmt):
        yield from _accesses(child, buffer, scope, memo)


def _enter(stmt: Stmt, scope: _Scope, buffer: str) -> _Scope:
    if isinstance(stmt, (Let, For)) and any(_is_own(e, scope, buffer) for e in exprs_of(stmt)):
        scope = replace(scope, own=scope.own | {stmt.var})
    match stmt:
        case Let() if stmt.value.dtype is index:
            return replace(
                scope,
                loose={**scope.loose, stmt.var: bounds_of(stmt.value, scope.loose)},
                tight={**scope.tight, stmt.var: bounds_of(stmt.value, scope.tight)},
            )
        case For():
            extent = bounds_of(stmt.extent, scope.tight).hi
            extents = scope.extents if extent is None else (*scope.extents, extent)
            return replace(
                scope,
                loose={**scope.loose, stmt.var: _range_of(stmt, scope.loose)},
                tight={**scope.tight, stmt.var: _range_of(stmt, scope.tight)},
                extents=extents,
            )
        case If():
            return replace(scope, tight=_where(scope.tight, stmt.condition))
        case _:
            return scope


def _where(ranges: Ranges, condition: Expr) -> Ranges:
    """The ranges where the condition holds; what a Let says of its name helps to compare bounds."""
    return sharpen(ranges, condition, within(ranges))


def _range_of(loop: For, ranges: Ranges) -> Interval:
    return Interval(
        bounds_of(loop.min, ranges).lo, bounds_of(loop.min + loop.extent - 1, ranges).hi
    )


def _guarded_loads(root: Expr, buffer: str) -> Iterator[tuple[Load, tuple[Expr, ...]]]:
    """The loads of `buffer` below an expression, each with the select conditions it is under."""
    seen: set[tuple[Expr, tuple[Expr, ...]]] = set()
    stack: list[tuple[Expr, tuple[Expr, ...]]] = [(root, ())]
    while stack:
        e, conditions = stack.pop()
        if buffer not in e.reads or (e, conditions) in seen:
            continue
        seen.add((e, conditions))
        if isinstance(e, Load) and e.buffer == buffer:
            yield e, conditions
        if isinstance(e, Select):
            stack.append((e.b, (*conditions, Unary("not", e.condition))))
            stack.append((e.a, (*conditions, e.condition)))
            stack.append((e.condition, conditions))
        else:
            stack.extend((child, conditions) for child in e.children)


def _access(
    indices: tuple[Expr, ...], buffer: str, scope: _Scope, conditions: tuple[Expr, ...]
) -> Access:
    tight = scope.tight
    for condition in conditions:
        tight = _where(tight, condition)
    known = [not _is_own(e, scope, buffer) for e in indices]
    pairs = list(zip(indices, known, strict=True))
    return Access(
        tuple(bounds_of(e, scope.loose) if needed else None for e, needed in pairs),
        tuple(bounds_of(e, tight) if needed else None for e, needed in pairs),
        scope.extents,
        scope.span,
    )


def _is_own(e: Expr, scope: _Scope, buffer: str) -> bool:
    """Whether an index or a bound is made of the buffer's own region."""
    prefix = f"{buffer}."
    return any(
        name in scope.own or (name.startswith(prefix) and name.count(".") == 2) for name in e.free
    )
