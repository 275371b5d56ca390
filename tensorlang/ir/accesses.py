"""Where a program touches a buffer: every load and store, with the intervals of its indices."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias
from weakref import WeakKeyDictionary

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Compare, Expr, Load, Select, Unary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.interval import Interval, bounds_of, sharpen, within
from tensorlang.ir.interval_arithmetic import EVERYWHERE
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.stmt import For, If, Let, Stage, Stmt, Store, children_of, exprs_of
from tensorlang.ir.types import index
from tensorlang.span import Span

Ranges: TypeAlias = Mapping[str, Interval]
# The buffers that a statement touches, for as long as the statement lives.
Touched: TypeAlias = WeakKeyDictionary[Stmt, frozenset[str]]
_touched_by: Touched = WeakKeyDictionary()
# The names of a dimension's region and of its storage: f.x.min ... (ir/regions.py).
REGION_PARTS = ("min", "extent", "first", "last")
STORAGE_PARTS = ("low", "count")


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


def accesses_of(body: Stmt, buffer: str, dims: tuple[str, ...] = ()) -> Iterator[Access]:
    """Every load of `buffer`, and every store to it, below `body`.

    Args: dims: of a Func, the names of its dimensions; of an Input, nothing.
    """
    yield from _accesses(body, buffer, _Scope({}, {}, Facts.none, (), {}, dims, None))


@dataclass(frozen=True, slots=True, eq=False)
class _Scope:
    """What is known of the names bound between `body` and here.

    `own`: the names that run over a dimension of the buffer's own region, in its own stages, and
    which dimension that is.
    """

    loose: Ranges
    tight: Ranges
    # What guards say of more than names: of data that is an index, above all.
    facts: Facts
    extents: tuple[Expr, ...]
    own: Mapping[str, str]
    dims: tuple[str, ...]
    span: Span | None


def _touched(stmt: Stmt) -> frozenset[str]:
    """The buffers that a statement loads from or stores to."""
    found = _touched_by.get(stmt)
    if found is None:
        own = [stmt.buffer] if isinstance(stmt, Store) else list[str]()
        parts = [e.reads for e in exprs_of(stmt)]
        # A list, not a generator: what nests deeply may not recurse through C.
        parts += [_touched(child) for child in children_of(stmt)]
        found = _touched_by[stmt] = frozenset(own).union(*parts)
    return found


def _accesses(stmt: Stmt, buffer: str, scope: _Scope) -> Iterator[Access]:
    if buffer not in _touched(stmt):
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
        yield from _accesses(child, buffer, scope)


def _enter(stmt: Stmt, scope: _Scope, buffer: str) -> _Scope:
    if isinstance(stmt, (Let, For)):
        dim = _own_dim(stmt.value if isinstance(stmt, Let) else stmt.min, scope, buffer)
        if dim is not None:
            scope = replace(scope, own={**scope.own, stmt.var: dim})
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
    runs = [scope.own.get(e.name) if isinstance(e, Var) else None for e in indices]
    dims = scope.dims or (None,) * len(indices)
    pairs = [
        (e, run is None or run != dim) for e, run, dim in zip(indices, runs, dims, strict=True)
    ]
    outside = _Outside(buffer, scope.dims)
    return Access(
        tuple(outside(bounds_of(e, scope.loose)) if needed else None for e, needed in pairs),
        tuple(
            outside(_guarded(bounds_of(e, tight, facts), conditions, scope.tight))
            if needed
            else None
            for e, needed in pairs
        ),
        scope.extents,
        scope.span,
    )


class _Outside:
    """Intervals whose ends do not mention the region that they are to give.

    Of t % n, where t runs over a part of the Func's own region, both n - 1 and the last t are upper
    bounds, and only the first is known outside.
    """

    def __init__(self, buffer: str, dims: tuple[str, ...]) -> None:
        self.region = {
            f"{buffer}.{dim}.{part}": EVERYWHERE
            for dim in dims
            for part in (*REGION_PARTS, *STORAGE_PARTS)
        }

    def __call__(self, found: Interval) -> Interval:
        lo, hi = found.lo, found.hi
        if lo is not None and not lo.free.isdisjoint(self.region):
            lo = bounds_of(lo, self.region).lo
        if hi is not None and not hi.free.isdisjoint(self.region):
            hi = bounds_of(hi, self.region).hi
        return found if lo is found.lo and hi is found.hi else Interval(lo, hi)


def _guarded(found: Interval, conditions: tuple[Expr, ...], ranges: Ranges) -> Interval:
    """The interval of an index that is fixed here, cut to where select lets it be read.

    Of a name that varies the conditions narrow the range; of a fixed index, such as 2*i - 2 inside
    the loop over i, they say that it may not be needed at all: then the interval is empty.
    Conditions on names that vary between here and the region say nothing of it.
    """
    if found.lo is None or found.lo is not found.hi:
        return found
    this, lo, hi = to_linear(found.lo), found.lo, found.lo
    for condition in (c for guard in conditions for c in conjuncts_of(guard)):
        if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
            continue
        if condition.a.dtype is not index or condition.reads:
            continue
        if not condition.free.isdisjoint(ranges):
            continue
        slack = to_linear(condition.b - condition.a).shifted(-(condition.op == "lt"))
        above, below = slack - this, slack + this
        if this.terms and not this.terms.keys() & above.terms.keys():
            lo = maximum(lo, to_expr(-above))
        elif this.terms and not this.terms.keys() & below.terms.keys():
            hi = minimum(hi, to_expr(below))
    return Interval(lo, hi)


def _own_dim(e: Expr, scope: _Scope, buffer: str) -> str | None:
    """The dimension over which a loop from `e`, or a name for `e`, runs: f.x.min + ... is of x."""
    if isinstance(e, Var) and e.name in scope.own:
        return scope.own[e.name]
    firsts = {f"{buffer}.{dim}.min": dim for dim in scope.dims}
    return next((firsts[name] for name in e.free if name in firsts), None)
