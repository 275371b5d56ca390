"""Where a program touches a buffer: every load and store, with the intervals of its indices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorlang.ir.expr import Expr, Load, Select, Unary
from tensorlang.ir.facts import Facts
from tensorlang.ir.interval import Interval, bounds_of, sharpen, within
from tensorlang.ir.stmt import For, If, Let, Stage, Stmt, Store, children_of, exprs_of
from tensorlang.ir.types import index
from tensorlang.span import Span

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


def accesses_of(body: Stmt, buffer: str) -> Iterator[Access]:
    """Every load of `buffer`, and every store to it, below `body`."""
    touching: dict[Stmt, bool] = {}
    yield from _accesses(body, buffer, _Scope({}, {}, Facts.none, (), frozenset(), None), touching)


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """What is known of the names bound between `body` and here.

    `own`: those that run over the region of the buffer itself, in its own stages.
    """

    loose: Ranges
    tight: Ranges
    # What guards say of more than names: of data that is an index, above all.
    facts: Facts
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
            facts = scope.facts.assume(stmt.condition)
            return replace(scope, tight=_where(scope.tight, stmt.condition), facts=facts)
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
    tight, facts = scope.tight, scope.facts
    for condition in conditions:
        tight, facts = _where(tight, condition), facts.assume(condition)
    known = [not _is_own(e, scope, buffer) for e in indices]
    pairs = list(zip(indices, known, strict=True))
    return Access(
        tuple(bounds_of(e, scope.loose) if needed else None for e, needed in pairs),
        tuple(bounds_of(e, tight, facts) if needed else None for e, needed in pairs),
        scope.extents,
        scope.span,
    )


def _is_own(e: Expr, scope: _Scope, buffer: str) -> bool:
    """Whether an index or a bound is made of the buffer's own region."""
    prefix = f"{buffer}."
    return any(
        name in scope.own or (name.startswith(prefix) and name.count(".") == 2) for name in e.free
    )
