"""Where a program touches a buffer: every load and store, with the intervals of its indices."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Load, Select, Unary, Var
from tensorlang.ir.facts import Facts, canonical
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.interval import Interval, bounds_of, sharpen, within
from tensorlang.ir.interval_arithmetic import EVERYWHERE
from tensorlang.ir.linear import Linear, to_expr, to_linear
from tensorlang.ir.mentions import names_needed
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, If, Let, Stage, Stmt, Store, children_of, exprs_of
from tensorlang.ir.types import index
from tensorlang.ir.walk import postorder, substitute
from tensorlang.span import Span

Ranges: TypeAlias = Mapping[str, Interval]
# The names of a dimension's region and of its storage: f.x.min ... (ir/regions.py).
REGION_PARTS = ("min", "extent", "first", "last")
STORAGE_PARTS = ("low", "count")


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A load or store of a buffer: two intervals an index, and where it stands.

    An interval is None where the index is the Func's own loop over its region.  `loops`: the
    extents of the loops around it, and the ranges that hold there; none where all are None.
    """

    loose: tuple[Interval | None, ...]
    tight: tuple[Interval | None, ...]
    loops: tuple[tuple[Expr, Ranges], ...] = ()
    span: Span | None = None
    is_store: bool = False

    @property
    def extents(self) -> tuple[Expr, ...]:
        """Upper bounds of the extents of the loops; where one is <= 0 the access never happens."""
        highest = (bounds_of(extent, ranges).hi for extent, ranges in self.loops)
        return tuple(end for end in highest if end is not None)


def accesses_of(
    body: Stmt, buffer: str, dims: tuple[str, ...] = (), unknown: frozenset[str] = frozenset()
) -> list[Access]:
    """Every load of `buffer`, and every store to it, below `body`.

    Args:
        dims: of a Func, the names of its dimensions; of an Input, nothing.
        unknown: buffers whose elements say nothing outside `body`.
    """
    # Rounds of inference ask again of what did not change.
    asked = (accesses_of, buffer, dims, unknown)
    if asked not in body.found:
        body.found[asked] = _accesses(body, buffer, dims, unknown)
    return body.found[asked]


def _accesses(
    body: Stmt, buffer: str, dims: tuple[str, ...], unknown: frozenset[str]
) -> list[Access]:
    query = _Query(buffer, dims, names_needed(body, buffer))
    varying = dict.fromkeys(unknown, EVERYWHERE)
    _collect(body, _Place(_Around(_Scope(varying, varying, {}, Facts.none, ())), {}), query)
    return query.found


class _Query:
    """The accesses asked for, and those found."""

    def __init__(
        self, buffer: str, dims: tuple[str, ...], needed: Mapping[Stmt, frozenset[str]]
    ) -> None:
        self.buffer = buffer
        self.dims = dims
        # See `names_needed`.
        self.needed = needed
        # Where the loops over the buffer's own region begin, and of which dimension.
        self.firsts = {f"{buffer}.{dim}.min": dim for dim in dims}
        self.found: list[Access] = []


class _Scope(NamedTuple):
    """What is known of the names bound between `body` and here.

    `fixed`: the names bound to a value in which nothing varies, which stands for them.
    """

    loose: Ranges
    tight: Ranges
    fixed: Mapping[str, Expr]
    # What guards say of more than names: of data that is an index, above all.
    facts: Facts
    loops: tuple[tuple[Expr, Ranges], ...]
    # Names whose loops all stand inside `body`.
    whole: frozenset[str] = frozenset()
    # Guards on names that do not vary here, though they may where the region stands.
    guards: tuple[Expr, ...] = ()

    def value(self, e: Expr) -> Expr:
        """The expression over names that vary, and names from outside."""
        return substitute(e, self.fixed)


class _Around:
    """What stands around a statement; what follows from it is found when an access asks.

    A Func's stores to its own region, which are half of all accesses, do not ask.
    """

    __slots__ = ("outer", "scope_found", "stmt")

    def __init__(
        self, scope: _Scope | None, stmt: Stmt | None = None, outer: "_Around | None" = None
    ) -> None:
        self.scope_found = scope
        self.stmt = stmt
        self.outer = outer

    @property
    def scope(self) -> _Scope:
        if self.scope_found is None:
            assert self.stmt is not None
            assert self.outer is not None
            self.scope_found = _enter(self.stmt, self.outer.scope)
        return self.scope_found


class _Place(NamedTuple):
    """Where a statement stands.

    `own`: the names that run over a dimension of the buffer's own region, in its own stages, and
    which dimension that is.
    """

    around: _Around
    own: Mapping[str, str]
    span: Span | None = None


def _collect(stmt: Stmt, place: _Place, query: _Query) -> None:
    """Add the accesses below a statement."""
    if stmt not in query.needed:
        return
    buffer = query.buffer
    if isinstance(stmt, (Stage, Store)):
        place = place._replace(span=stmt.span)
    for e in exprs_of(stmt):
        if buffer in e.reads:
            for load, conditions in _guarded_loads(e, buffer):
                if not any(_never_holds(condition, place.around.scope) for condition in conditions):
                    query.found.append(_access(load.indices, place, query, conditions))
    if isinstance(stmt, Store) and stmt.buffer == buffer:
        query.found.append(replace(_access(stmt.indices, place, query, ()), is_store=True))
    if isinstance(stmt, (For, If)) or (
        isinstance(stmt, Let) and stmt.var in query.needed.get(stmt.body, ())
    ):
        place = _inside(stmt, place, query)
    for child in children_of(stmt):
        _collect(child, place, query)


def _inside(stmt: For | If | Let, place: _Place, query: _Query) -> _Place:
    around, own = _Around(None, stmt, place.around), place.own
    if not isinstance(stmt, If):
        dim = _own_dim(stmt.value if isinstance(stmt, Let) else stmt.min, own, query.firsts)
        if dim is not None:
            own = {**own, stmt.var: dim}
    return _Place(around, own, place.span)


def _enter(stmt: Stmt, scope: _Scope) -> _Scope:
    match stmt:
        case Let() if stmt.value.dtype is index:
            return _bound(stmt.var, stmt.value, scope)
        case For(extent=Const(value=1)):
            return _bound(stmt.var, stmt.min, scope)
        case For():
            first, extent = scope.value(stmt.min), scope.value(stmt.extent)
            return scope._replace(
                whole=scope.whole | {stmt.var},
                loose={**scope.loose, stmt.var: _range_of(first, extent, scope.loose)},
                tight={**scope.tight, stmt.var: _range_of(first, extent, scope.tight)},
                loops=(*scope.loops, (extent, scope.tight)),
            )
        case If():
            return _guard(stmt.condition, scope)
        case _:
            return scope


def _bound(name: str, value: Expr, scope: _Scope) -> _Scope:
    """Inside a Let: where nothing varies in its value, that stands for the name."""
    inside = all(n in scope.whole or n in scope.fixed or is_region_name(n) for n in value.free)
    value = scope.value(value)
    if scope.loose.keys().isdisjoint(value.free) and not value.reads:
        return scope._replace(fixed={**scope.fixed, name: simplify(value)})
    return scope._replace(
        loose={**scope.loose, name: bounds_of(value, scope.loose)},
        tight={**scope.tight, name: bounds_of(value, scope.tight)},
        whole=scope.whole | {name} if inside else scope.whole,
    )


def is_region_name(name: str) -> bool:
    """Whether a name is an end or extent of the region of a Func: f.x.min ..."""
    return name.count(".") == 2


def _guard(condition: Expr, scope: _Scope) -> _Scope:
    """Inside an If.

    What keeps the loops of a Func to its region needs no proof where all those loops stand inside
    `body`: they run over that region, so that its ends are the ends of the variable.
    """
    others: list[Expr] = []
    for part in conjuncts_of(condition):
        found = _region_end(part, scope)
        if found is None:
            others.append(scope.value(part))
            continue
        name, is_upper, end = found
        old = scope.tight[name]
        new = Interval(old.lo, end) if is_upper else Interval(end, old.hi)
        scope = scope._replace(tight={**scope.tight, name: new})
    for part in others:
        if scope.loose.keys().isdisjoint(part.free) and not part.reads:
            scope = scope._replace(guards=(*scope.guards, part))
            continue
        facts = scope.facts.assume(part)
        scope = scope._replace(tight=_where(scope.tight, part), facts=facts)
    return scope


def _region_end(condition: Expr, scope: _Scope) -> tuple[str, bool, Expr] | None:
    """Of f.x.first <= f.x, f.x <= f.x.last or f.x < f.x.min + f.x.extent: the variable, whether its
    upper end is meant, and that end.
    """
    match condition:
        case Compare(op="le", a=Var(name=end), b=Var(name=name)) if end == f"{name}.first":
            value = condition.a
        case Compare(op="le", a=Var(name=name), b=Var(name=end)) if end == f"{name}.last":
            value = condition.b
        case Compare(
            op="lt", a=Var(name=name), b=Binary(op="add", a=Var(name=start), b=Var(name=count))
        ) if (start, count) == (f"{name}.min", f"{name}.extent"):
            value = condition.b - 1
        case _:
            return None
    if name not in scope.whole:
        return None
    ends = bounds_of(scope.value(value), scope.tight)
    is_upper = condition.a is Var(name)
    end = ends.hi if is_upper else ends.lo
    return None if end is None else (name, is_upper, end)


def _where(ranges: Ranges, condition: Expr) -> Ranges:
    """The ranges where the condition holds; what is known of other names helps to compare."""
    return sharpen(ranges, condition, within(ranges))


def _range_of(first: Expr, extent: Expr, ranges: Ranges) -> Interval:
    """Where the variable of a loop lies.

    Of a loop that is cut short by another one, as the inner one of a ragged split is, the end says
    so: the two together do not reach as far as each of them may.
    """
    low, last = bounds_of(first, ranges).lo, first + extent - 1
    is_cut = isinstance(extent, Binary) and extent.op == "min"
    if is_cut and not ranges.keys().isdisjoint(last.free):
        return Interval(low, canonical(last))
    return Interval(low, bounds_of(last, ranges).hi)


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
            told = _tells_indices(e.condition)
            stack.append((e.b, (*conditions, Unary("not", e.condition)) if told else conditions))
            stack.append((e.a, (*conditions, e.condition) if told else conditions))
            stack.append((e.condition, conditions))
        else:
            stack.extend((child, conditions) for child in e.children)


def _never_holds(condition: Expr, scope: _Scope) -> bool:
    """Whether a comparison in a condition fails over all that runs here: nothing is read then."""
    for part in conjuncts_of(scope.value(condition)):
        if isinstance(part, Compare) and part.a.dtype is index and not part.reads:
            slack = bounds_of(part.b - part.a, scope.tight)
            if _fails(part.op, *(_number(end) for end in (slack.lo, slack.hi))):
                return True
    return False


def _number(end: Expr | None) -> int | None:
    return int(end.value) if isinstance(end, Const) else None


def _fails(op: str, least: int | None, most: int | None) -> bool:
    """Whether no slack b - a of that range lets `a op b` hold."""
    below, above = most is not None and most < 0, least is not None and least > 0
    match op:
        case "lt":
            return below or most == 0
        case "le":
            return below
        case "eq":
            return below or above
        case _:
            return least == most == 0


def _tells_indices(condition: Expr) -> bool:
    """Whether a condition compares integers: what floats are says nothing of an index."""
    return any(isinstance(e, Compare) and e.a.dtype.is_integer for e in postorder(condition))


def _access(
    indices: tuple[Expr, ...], place: _Place, query: _Query, conditions: tuple[Expr, ...]
) -> Access:
    runs = [place.own.get(e.name) if isinstance(e, Var) else None for e in indices]
    dims = query.dims or (None,) * len(indices)
    is_own = [run is not None and run == dim for run, dim in zip(runs, dims, strict=True)]
    if is_own and all(is_own):
        nothing = (None,) * len(indices)
        return Access(nothing, nothing, span=place.span)
    scope = place.around.scope
    tight, facts = scope.tight, scope.facts
    conditions = tuple(map(scope.value, conditions))
    for condition in conditions:
        tight, facts = _where(tight, condition), facts.assume(condition)
    guards = (*scope.guards, *conditions)
    values = [None if own else scope.value(e) for e, own in zip(indices, is_own, strict=True)]
    return Access(
        tuple(None if e is None else bounds_of(e, scope.loose) for e in values),
        tuple(
            None if e is None else _guarded(bounds_of(e, tight, facts), guards, scope.tight)
            for e in values
        ),
        scope.loops,
        place.span,
    )


def _guarded(found: Interval, conditions: tuple[Expr, ...], ranges: Ranges) -> Interval:
    """The interval of an index, cut to where guards and select let it be read.

    Of a name that varies the conditions narrow the range; of an end that is fixed, such as
    2*i - 2 inside the loop over i, they say that it may not be needed at all: then the interval is
    empty.  Conditions on names that vary between here and the region say nothing of it, nor do
    those on sizes alone: in N == 5 the last index may be said as 4, which outside is no bound of
    N - 1.
    """
    slacks = list(_slacks(conditions, ranges))
    return Interval(_cut(found.lo, slacks, -1), _cut(found.hi, slacks, 1))


def _slacks(conditions: Iterable[Expr], ranges: Ranges) -> Iterator[Linear]:
    """Of a <= b and a < b with a fixed Var somewhere: what is >= 0."""
    for condition in (c for guard in conditions for c in conjuncts_of(guard)):
        if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
            continue
        if condition.a.dtype is not index or condition.reads:
            continue
        if not condition.free.isdisjoint(ranges):
            continue
        if any(isinstance(e, Var) for e in postorder(condition)):
            yield to_linear(condition.b - condition.a).shifted(-(condition.op == "lt"))


def _cut(end: Expr | None, slacks: Iterable[Linear], sign: int) -> Expr | None:
    """An upper end (or, where sign is -1, a lower one) that the slacks move inwards.

    Where slack >= 0 says sign*end <= rest, no more than sign*rest is needed.
    """
    if end is None:
        return None
    form, tighter = to_linear(end), minimum if sign > 0 else maximum
    for slack in slacks:
        rest = slack + form * sign
        if form.terms and form.terms.keys().isdisjoint(rest.terms):
            end = tighter(end, to_expr(rest * sign))
    return end


def _own_dim(e: Expr, own: Mapping[str, str], firsts: Mapping[str, str]) -> str | None:
    """The dimension over which a loop from `e`, or a name for `e`, runs: f.x.min + ... is of x."""
    if isinstance(e, Var) and e.name in own:
        return own[e.name]
    return next((firsts[name] for name in e.free if name in firsts), None)
