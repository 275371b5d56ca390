"""Fuse the reductions of a rolling group into one loop over slices of their domain."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.algorithm import Domain, FuncRecord
from tensorlang.directives.nest import region_name
from tensorlang.errors import InternalError, ScheduleError
from tensorlang.ir.associativity import Operator, associative_operator
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Load, Select, Var
from tensorlang.ir.functions import identity, maximum, minimum
from tensorlang.ir.interval import Interval, bounds_of, sharpen
from tensorlang.ir.moments import shift_of
from tensorlang.ir.points import has_point
from tensorlang.ir.printer import print_expr
from tensorlang.ir.repair import NoRepairError, Rolled, repair_of
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Let,
    Program,
    Stage,
    Stmt,
    Store,
    block,
    map_children,
    map_exprs,
    touches,
    walk,
)
from tensorlang.ir.types import DType, i32, index
from tensorlang.ir.walk import loads_of, postorder, rewrite, substitute
from tensorlang.lower.plan import Group, Level, Plan

_BEFORE, _SEEN = "before", "seen"
ZERO, ONE = Const(0, index), Const(1, index)


def roll_updates(program: Program, plan: Plan) -> Program:
    """m.1; l.1; for v: O.1   ->   for v: { keep m; m.1; repair l; l.1; repair O; O.1 }, on slices

    After the loop, rows whose m is still the identity though their domain had a point get NaN, as
    the definition gives them.
    Requires: every Func at root, pure Funcs between inlined or still at root.
    Raises: ScheduleError: loop-not-outermost, domain-scheduled, no-repair, other-consumer.
    """
    body = program.body
    for group in plan.groups:
        body = _Roll(plan, group, body).rolled()
    return program if body is program.body else replace(program, body=body)


@dataclass(frozen=True, slots=True)
class _Slice:
    """Points first, ..., first + length - 1 of the domain, of which those before `end` exist."""

    first: Expr
    length: Expr
    end: Expr


class _Roll:
    """One group, in a program that has every stage at root."""

    def __init__(self, plan: Plan, group: Group, body: Stmt) -> None:
        self.plan, self.group, self.body = plan, group, body
        self.stages = {(s.func, s.number): s for s in walk(body) if isinstance(s, Stage)}
        self.rolled_func = group.rolling.func
        self.part = _Slice(ZERO, ZERO, ZERO)
        self.dtype = plan.algorithm.func(self.rolled_func).dtypes[0]
        # What stands between the members, computed at the loop: a term is seen through it.
        self.between = {
            f.name: _store_of(self.stages[f.name, 0])
            for f in plan.algorithm.funcs
            if f.is_pure and (f.name, 0) in self.stages and self._at_the_loop(f.name)
        }
        self.operator = self._term(self.rolled_func)[0]
        self.identity = identity(self.operator, self.dtype)
        # A max or min of floats starts at an infinity, which must not enter a term.
        self.is_extreme = self.operator in ("max", "min") and self.dtype.is_float
        (dim,), where = self._domain(self.rolled_func).dims, self._domain(self.rolled_func).where
        self.nonempty = has_point(*dim, where)
        # Whether a row of the domain has a point is known at once, or counted in the loop.
        self.counts = where is not None and self.is_extreme and self.nonempty is None

    def _term(self, func: str) -> tuple[Operator, Expr, Store]:
        """The operator of a member's update, its term, and the store that holds it."""
        store = _store_of(self.stages[func, 1])
        values = tuple(self._expanded(v) for v in store.values)
        found = associative_operator(func, store.indices, values)
        if found is None or len(store.values) != 1:
            raise self._error(
                "not-a-reduction",
                f"the update of {func!r} is no known reduction to one value",
                "roll sums, max and min",
            )
        return found[0], found[1][0], store

    def _expanded(self, root: Expr) -> Expr:
        """`root` with the Funcs that are computed at the loop replaced by their definitions."""

        def rule(e: Expr) -> Expr:
            if isinstance(e, Load) and e.buffer in self.between:
                store = self.between[e.buffer]
                names = {v.name: i for v, i in zip(store.indices, e.indices, strict=True)
                         if isinstance(v, Var)}  # fmt: skip
                return self._expanded(substitute(store.values[e.component], names))
            return e

        return rewrite(root, rule)

    def rolled(self) -> Stmt:
        anchor = self.group.anchor
        loop = self._loop(self.stages[anchor, 1])
        self.part = part = self._slice(loop)
        loop = self._without_empty_slices(loop, part)
        inside: list[Stmt] = []
        kept: list[Buffer] = []
        for member in self.group.members:
            inside.extend(self._repair(member))
            if self._is_rolled(member):
                kept.append(self._buffer(member, _BEFORE, self._func(member).dtypes))
                inside.insert(0, self._keep(member))
            if member != anchor:
                update = self._on_slice(self.stages[member, 1], member, part)
                inside.append(update if member == self.rolled_func else self._safe(update))
        if self.counts:
            inside.append(self._see(part))
        body = block(*inside, self._safe(loop.body))
        for buffer in kept:
            body = Allocate(buffer, body)
        after = [s for member in self.group.members for s in self._poison(member)]
        whole = block(replace(loop, body=body), *after)
        if self.counts:
            whole = self._with_seen(whole)
        return self._put(replace(self.stages[anchor, 1], body=whole))

    def _func(self, name: str) -> FuncRecord:
        return self.plan.algorithm.func(name)

    def _loop(self, stage: Stage) -> For:
        """The loop of the group, which has to stand outside all others of the anchor's update."""
        var = f"{self.group.anchor}.{self.group.rolling.loop}"
        if not isinstance(stage.body, For) or stage.body.var != var:
            raise self._error(
                "loop-not-outermost",
                f"{self.group.rolling.loop!r} is not the outermost loop of the update of "
                f"{self.group.anchor!r}, so that the members would update more than once",
                "reorder it outermost, and tile the Func that the group is computed in",
            )
        return stage.body

    def _slice(self, loop: For) -> _Slice:
        nest = self.plan.nests[self.group.anchor, 1]
        domain = self._domain(self.group.anchor)
        name, low, extent = domain.dims[0]
        v = Var(loop.var)
        if self.group.rolling.loop == name:
            return _Slice(v, ONE, low + extent)
        for binding in nest.bindings:
            inner = binding.value.free - {self.group.rolling.loop} & set(nest.names())
            if binding.name == name and self.group.rolling.loop in binding.value.free and inner:
                (half,) = inner
                found = nest.find(half)
                if found is not None and isinstance(found.extent, Const):
                    return _Slice(low + v * int(found.extent.value), found.extent, low + extent)
        raise self._error(
            "domain-scheduled",
            f"{self.group.rolling.loop!r} is neither {name!r} nor the outer half of its split",
            f"split {name!r} once by a Python int, and roll along the outer loop",
        )

    def _without_empty_slices(self, loop: For, part: _Slice) -> For:
        """The loop without the slices in which `where` leaves no point for any row of the region.

        A slice with no point changes nothing: no term is added, and so no repair is due.
        """
        anchor = self._func(self.group.anchor)
        definition, domain = anchor.definitions[1], self._domain(anchor.name)
        if domain.where is None or not isinstance(part.length, Const):
            return loop
        name, low, extent = domain.dims[0]
        ranges = {name: Interval(low, low + extent - 1)}
        for dim, v in zip(anchor.dims, definition.pure, strict=True):
            if v is not None:
                ends = (Var(region_name(anchor.name, dim, end)) for end in ("first", "last"))
                ranges[v] = Interval(*ends)
        there = bounds_of(Var(name), sharpen(ranges, domain.where))
        if there.lo is None or there.hi is None:
            return loop
        # Slice v holds the points low + (v - min)*length ...; an unsplit loop is its own point.
        start = loop.min if loop.var == f"{anchor.name}.{name}" else low
        first = loop.min + (there.lo - start) // part.length
        last = loop.min + (there.hi - start) // part.length
        first = maximum(loop.min, first)
        end = minimum(loop.min + loop.extent, last + 1)
        return replace(loop, min=first, extent=end - first)

    def _domain(self, func: str) -> Domain:
        domain = self._func(func).definitions[1].domain
        if domain is None:
            raise InternalError(f"{func} has no domain")
        return domain

    def _on_slice(self, stage: Stage, member: str, part: _Slice) -> Stage:
        """The update of a member with its loop over the domain cut down to the slice."""
        var = f"{member}.{self._domain(member).dims[0][0]}"
        found = False

        def cut(stmt: Stmt) -> Stmt:
            nonlocal found
            if isinstance(stmt, For) and stmt.var == var:
                found = True
                body = If(Var(var) < part.end, stmt.body)
                return replace(stmt, min=part.first, extent=part.length, body=body)
            return map_children(stmt, cut)

        made = replace(stage, body=cut(stage.body))
        if not found:
            raise self._error(
                "domain-scheduled",
                f"the loop of {member!r} over its domain was split, fused or renamed",
                "leave it whole: it runs over the slice, serial or vectorized",
            )
        return made

    def _is_rolled(self, member: str) -> bool:
        """Whether another member's terms read it."""
        return any(
            member in self._term(other)[1].reads for other in self.group.members if other != member
        )

    def _safe_value(self, buffer: str, e: Expr) -> Expr:
        """Before anything was seen a max is -inf: terms are formed with 0 in its place."""
        if buffer != self.rolled_func or not self.is_extreme:
            return e
        return Select(Compare("eq", e, self.identity), Const(0, self.dtype), e)

    def _safe(self, stmt: Stmt) -> Stmt:
        """A member's terms, or what forms them, with the rolled value as it is read in the loop."""

        def rule(e: Expr) -> Expr:
            if self._is_mean(e):
                return Binary("div", e.children[0], self._count(seen=True))
            is_rolled = isinstance(e, Load) and e.buffer == self.rolled_func
            return self._safe_value(self.rolled_func, e) if is_rolled else e

        memo: dict[Expr, Expr] = {}

        def visit(s: Stmt) -> Stmt:
            return map_children(map_exprs(s, lambda e: rewrite(e, rule, memo)), visit)

        return visit(stmt)

    def _ratio(self, member: str) -> tuple[Expr, list[Load]] | None:
        """rho of a member, over the names of its update, and the rolled loads it depends on."""
        operator, term, store = self._term(member)
        loads = [e for e in loads_of(term) if e.buffer in self.group.members and e.buffer != member]
        if not loads:
            return None
        pure = frozenset(name for e in store.indices for name in e.free)
        bound = frozenset(_bound(self.stages[member, 1])) - pure
        if operator != "add" or any(not load.free.isdisjoint(bound) for load in loads):
            raise self._no_repair(member, term)
        rolled: dict[Expr, Rolled] = {
            load: Rolled(
                self._safe_value(load.buffer, self._earlier(load)),
                self._safe_value(load.buffer, load),
            )
            for load in loads
        }
        try:
            rho = repair_of(term, rolled, bound)
        except NoRepairError as none:
            raise self._no_repair(member, none.factor) from None
        return None if rho is None else (rho, loads)

    def _earlier(self, load: Load) -> Load:
        return Load(f"{load.buffer}_{_BEFORE}", load.indices, load.component, load.dtype)

    def _is_mean(self, e: Expr) -> bool:
        """Whether an expression is the rolled sum over the number of points of its domain."""
        if not isinstance(e, Binary) or e.op != "div" or self.operator != "add":
            return False
        domain = self._domain(self.rolled_func)
        points = Cast(self.dtype, domain.dims[0][2])
        is_sum = isinstance(e.a, Load) and e.a.buffer == self.rolled_func
        return is_sum and domain.where is None and simplify(e.b) is simplify(points)

    def _count(self, *, seen: bool) -> Expr:
        """How many points were seen: with this slice, or before it."""
        _, low, _ = self._domain(self.rolled_func).dims[0]
        end = minimum(self.part.first + self.part.length, self.part.end)
        return Cast(self.dtype, (end if seen else self.part.first) - low)

    def _shift(self, member: str) -> list[Stmt] | None:
        """g = g + (what its terms change by), where they are polynomial in a mean; else None."""
        operator, term, store = self._term(member)
        means = [e for e in postorder(term) if self._is_mean(e)]
        mean = Var("_mean")
        rest = rewrite(term, lambda e: mean if self._is_mean(e) else e)
        if operator != "add" or len(set(means)) != 1 or self.rolled_func in rest.reads:
            return None
        (load,) = means[0].children[:1]
        assert isinstance(load, Load)
        bound = frozenset(_bound(self.stages[member, 1])) - {
            name for e in store.indices for name in e.free
        }
        earlier = self._earlier(load)
        before = Binary("div", earlier, self._count(seen=False))
        after = Binary("div", load, self._count(seen=True))

        def moment(factors: tuple[Expr, ...]) -> Expr | None:
            if not factors:
                return self._count(seen=False)
            return earlier if self._sums(load, member, factors) else None

        try:
            shift = shift_of(rest, mean, (before, after), bound, moment)
        except NoRepairError as none:
            raise self._no_repair(member, none.factor) from None
        none_yet = Compare("le", self._count(seen=False), Const(0, self.dtype))
        shift = Select(none_yet, Const(0, shift.dtype), shift)
        return [self._in_pure_loops(member, "repair", lambda g: Binary("add", g, _cast(shift, g)))]

    def _sums(self, load: Load, member: str, factors: tuple[Expr, ...]) -> bool:
        """Whether the rolled sum, of the row that is loaded, is that of a product of factors."""
        _, term, store = self._term(self.rolled_func)
        names = {v.name: e for v, e in zip(store.indices, load.indices, strict=True)
                 if isinstance(v, Var)}  # fmt: skip
        own, other = (f"{f}.{self._domain(f).dims[0][0]}" for f in (self.rolled_func, member))
        summed = substitute(term, {**names, own: Var(other)})
        return summed is reduce(lambda a, b: Binary("mul", a, b), factors)

    def _repair(self, member: str) -> list[Stmt]:
        """g = g * rho, in the loops of g's pure definition."""
        shifted = None if member == self.rolled_func else self._shift(member)
        if shifted is not None:
            return shifted
        found = None if member == self.rolled_func else self._ratio(member)
        if found is None:
            return []
        rho, loads = found
        same: Expr | None = None
        for load in loads:
            earlier = self._earlier(load)
            unchanged = Compare("eq", earlier, load)
            same = unchanged if same is None else Binary("and", same, unchanged)
        for load in loads:
            if load.buffer == self.rolled_func and self.is_extreme and same is not None:
                # Nothing was accumulated yet; the ratio may be inf, and 0 * inf is NaN.
                empty = Compare("eq", self._earlier(load), self.identity)
                same = Binary("or", same, empty)
        if same is not None:
            rho = Select(same, Const(1, rho.dtype), rho)
        return [self._in_pure_loops(member, "repair", lambda g: Binary("mul", g, _cast(rho, g)))]

    def _in_pure_loops(
        self, member: str, name: str, value: Callable[[Expr], Expr], buffer: str = ""
    ) -> Stage:
        """A stage that stores `value` of the element, in the loops of the pure definition.

        The value is over the names of the update; they become those of the pure definition.
        """
        update, start = _store_of(self.stages[member, 1]), _store_of(self.stages[member, 0])
        names = {
            a.name: b
            for a, b in zip(update.indices, start.indices, strict=True)
            if isinstance(a, Var)
        }
        element = Load(member, start.indices, 0, self._func(member).dtypes[0])
        stored = substitute(value(element), names)
        made = Store(buffer or member, start.indices, (stored,), span=start.span)
        return Stage(f"{member}_{name}", 0, _with_store(self.stages[member, 0].body, made))

    def _keep(self, member: str) -> Stage:
        return self._in_pure_loops(member, _BEFORE, lambda g: g, f"{member}_{_BEFORE}")

    def _buffer(self, member: str, name: str, dtypes: tuple[DType, ...]) -> Buffer:
        dims = tuple(
            Dim(Var(region_name(member, d, "min")), Var(region_name(member, d, "extent")))
            for d in self._func(member).dims
        )
        return Buffer(f"{member}_{name}", dtypes, dims)

    def _see(self, part: _Slice) -> Stage:
        """seen = max(seen, 1) at every point of the domain, in the loops of the rolled update."""
        func = self.rolled_func
        stage = self._on_slice(self.stages[func, 1], func, part)
        store, buffer = _store_of(stage), f"{func}_{_SEEN}"
        old = Load(buffer, store.indices, 0, i32)
        made = Store(buffer, store.indices, (Binary("max", old, Const(1, i32)),))
        return Stage(buffer, 1, _with_store(stage.body, made))

    def _with_seen(self, body: Stmt) -> Stmt:
        func = self.rolled_func
        start = self._in_pure_loops(func, _SEEN, lambda g: Const(0, i32), f"{func}_{_SEEN}")
        return Allocate(self._buffer(func, _SEEN, (i32,)), block(start, body))

    def _poison(self, member: str) -> list[Stmt]:
        """Rows whose max is still -inf though they had a point: the definition gives NaN."""
        if member == self.rolled_func or not self.is_extreme:
            return []
        found = self._ratio(member)
        if found is None or self._is_guarded(member):
            return []
        load = next((e for e in found[1] if e.buffer == self.rolled_func), None)
        if load is None:
            return []
        none = Binary("and", Compare("eq", load, self.identity), self._had_point(load))
        nan = Const(float("nan"), self._func(member).dtypes[0])
        return [self._in_pure_loops(member, "empty", lambda g: Select(none, nan, g))]

    def _is_guarded(self, member: str) -> bool:
        """Whether the definition itself takes 0 for a max of nothing: select(m == -inf, 0, m)."""

        def rule(e: Expr) -> Expr:
            if isinstance(e, Select) and self.rolled_func in e.b.reads:
                none = Compare("eq", e.b, self.identity)
                if e.condition is none and isinstance(e.a, Const) and e.a.value == 0:
                    return e.a
            return e

        return self.rolled_func not in rewrite(self._term(member)[1], rule).reads

    def _had_point(self, load: Load) -> Expr:
        """Whether the domain of the row that is loaded had a point."""
        rows = self._func(self.rolled_func).definitions[1].pure
        if self.nonempty is None:
            seen = Load(f"{load.buffer}_{_SEEN}", load.indices, 0, i32)
            return Compare("lt", Const(0, i32), seen)
        names = {v: e for v, e in zip(rows, load.indices, strict=True) if v is not None}
        return substitute(self.nonempty, names)

    def _put(self, fused: Stage) -> Stmt:
        """The program with the group's loop in the anchor's place."""
        self._check_other_consumers()
        gone = {id(self.stages[m, 1]) for m in self.group.members if m != self.group.anchor}

        def visit(stmt: Stmt) -> Stmt:
            if stmt is self.stages[self.group.anchor, 1]:
                return fused
            if id(stmt) in gone:
                return Block(())
            return self._safe_between(map_children(stmt, visit))

        return visit(self.body)

    def _at_the_loop(self, func: str) -> bool:
        level = self.plan.placements[func].compute
        return level == Level(self.group.anchor, self.group.rolling.loop)

    def _safe_between(self, stmt: Stmt) -> Stmt:
        """A pure Func that is computed at the loop forms the members' terms."""
        if not isinstance(stmt, Stage) or stmt.func in self.group.members:
            return stmt
        return self._safe(stmt) if self._at_the_loop(stmt.func) else stmt

    def _check_other_consumers(self) -> None:
        """Nobody may read a member before the loop has ended."""
        for stage in (s for s in walk(self.body) if isinstance(s, Stage)):
            if stage is self.stages[self.group.anchor, 1]:
                return
            reader = stage.func not in self.group.members and not self._at_the_loop(stage.func)
            read = next((m for m in self.group.members if touches(stage, m)), None)
            if reader and read is not None:
                raise self._error(
                    "other-consumer",
                    f"{stage.func!r} reads {read!r} before the loop of the group has ended",
                    f"compute {stage.func!r} at {self.group.rolling.loop!r} of "
                    f"{self.group.anchor!r}, inline it, or give it a copy with clone_in",
                )

    def _no_repair(self, member: str, factor: Expr) -> ScheduleError:
        return self._error(
            "no-repair",
            f"a term of {member!r} does not come apart: {print_expr(factor)}",
            "terms are products of factors without the rolled value, exp or exp2 of it scaled and "
            "shifted, and any function of it alone; or polynomials in a rolled sum over the number "
            "of its points, of which the group holds the moments",
        )

    def _error(self, code: str, why: str, fix: str) -> ScheduleError:
        rolling = self.group.rolling
        return ScheduleError(
            code,
            f"cannot roll {rolling.func!r} into {rolling.into!r} along {rolling.loop!r}",
            why=why,
            fix=fix,
            span=rolling.span,
        )


def _store_of(stage: Stage) -> Store:
    return next(s for s in walk(stage) if isinstance(s, Store))


def _with_store(stmt: Stmt, store: Store) -> Stmt:
    return store if isinstance(stmt, Store) else map_children(stmt, lambda s: _with_store(s, store))


def _bound(stmt: Stmt) -> set[str]:
    """The names that loops and Lets bind."""
    return {s.var for s in walk(stmt) if isinstance(s, (For, Let))}


def _cast(e: Expr, like: Expr) -> Expr:
    return e if e.dtype is like.dtype else Cast(like.dtype, e)
