"""Fuse the reductions of a rolling group into one loop over slices of their domain."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce

from tensorlang.directives.nest import region_name
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Load, Select, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.in_place import may_store_twice
from tensorlang.ir.interval import Interval, bounds_of, sharpen
from tensorlang.ir.mentions import touches
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Program,
    Stage,
    Stmt,
    Store,
    block,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.types import DType, i32, index
from tensorlang.ir.walk import postorder, rewrite, substitute
from tensorlang.lower.data_limits import Limits, Rows, data_limits
from tensorlang.lower.plan import Group, Plan
from tensorlang.lower.rolling_terms import BEFORE, SEEN, Ratio, Slice, Terms, store_of

REPAIR = "repair"
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


class _Roll:
    """One group, in a program that has every stage at root."""

    def __init__(self, plan: Plan, group: Group, body: Stmt) -> None:
        self.plan, self.group, self.body = plan, group, body
        self.stages = {(s.func, s.number): s for s in walk(body) if isinstance(s, Stage)}
        self.terms = Terms(plan, group, self.stages)
        self.part = Slice(ZERO, ZERO, ZERO)

    def rolled(self) -> Stmt:
        anchor = self.group.anchor
        loop = self._loop(self.stages[anchor, 1])
        self.part = part = self._slice(loop)
        limits = self._limits()
        loop = self._without_empty_slices(loop, part)
        loop = self._within(loop, part, limits.first, limits.last)
        inside: list[Stmt] = []
        kept: list[Buffer] = []
        for member in self.group.members:
            inside.extend(repair := self._repair(member))
            if self.terms.is_rolled(member) or (repair and self._meets_twice(member)):
                kept.append(self._buffer(member, BEFORE, self.terms.func(member).dtypes))
                inside.insert(0, self._keep(member))
            if member != anchor:
                update = self._on_slice(self.stages[member, 1], member, part)
                inside.append(update if member == self.terms.rolled else self._safe(update))
        if self.terms.counts:
            inside.append(self._see(part))
        body = block(*inside, self._safe(loop.body))
        for buffer in kept:
            body = Allocate(buffer, body)
        after = [s for member in self.group.members for s in self._poison(member)]
        whole = block(limits.around(replace(loop, body=body)), *after)
        if self.terms.counts:
            whole = self._with_seen(whole)
        return self._put(replace(self.stages[anchor, 1], body=whole))

    def _loop(self, stage: Stage) -> For:
        """The loop of the group, which has to stand outside all others of the anchor's update."""
        var = f"{self.group.anchor}.{self.group.rolling.loop}"
        if not isinstance(stage.body, For) or stage.body.var != var:
            raise self.terms.error(
                "loop-not-outermost",
                f"{self.group.rolling.loop!r} is not the outermost loop of the update of "
                f"{self.group.anchor!r}, so that the members would update more than once",
                "reorder it outermost, and tile the Func that the group is computed in",
            )
        return stage.body

    def _slice(self, loop: For) -> Slice:
        nest = self.plan.nests[self.group.anchor, 1]
        domain = self.terms.domain(self.group.anchor)
        name, low, extent = domain.dims[0]
        v = Var(loop.var)
        if self.group.rolling.loop == name:
            return Slice(v, ONE, low + extent)
        for binding in nest.bindings:
            inner = binding.value.free - {self.group.rolling.loop} & set(nest.names())
            if binding.name == name and self.group.rolling.loop in binding.value.free and inner:
                (half,) = inner
                found = nest.find(half)
                if found is not None and isinstance(found.extent, Const):
                    return Slice(low + v * int(found.extent.value), found.extent, low + extent)
        raise self.terms.error(
            "domain-scheduled",
            f"{self.group.rolling.loop!r} is neither {name!r} nor the outer half of its split",
            f"split {name!r} once by a Python int, and roll along the outer loop",
        )

    def _without_empty_slices(self, loop: For, part: Slice) -> For:
        """The loop without the slices in which `where` leaves no point for any row of the region.

        A slice with no point changes nothing: no term is added, and so no repair is due.
        """
        anchor = self.terms.func(self.group.anchor)
        definition, domain = anchor.definitions[1], self.terms.domain(anchor.name)
        parts = () if domain.where is None else conjuncts_of(domain.where)
        # What data says is found out by `_limits`.
        told = [e for e in parts if not e.reads]
        if not told or not isinstance(part.length, Const):
            return loop
        name, low, extent = domain.dims[0]
        ranges = {name: Interval(low, low + extent - 1)}
        for dim, v in zip(anchor.dims, definition.pure, strict=True):
            if v is not None:
                ends = (Var(region_name(anchor.name, dim, end)) for end in ("first", "last"))
                ranges[v] = Interval(*ends)
        for condition in told:
            ranges = sharpen(ranges, condition)
        there = bounds_of(Var(name), ranges)
        if there.lo is None or there.hi is None:
            return loop
        return self._within(loop, part, there.lo, there.hi)

    def _within(self, loop: For, part: Slice, first: Expr | None, last: Expr | None) -> For:
        """The loop with those slices alone that hold points from `first` to `last`."""
        if not isinstance(part.length, Const) or (first is None and last is None):
            return loop
        anchor = self.group.anchor
        name, low, _ = self.terms.domain(anchor).dims[0]
        # Slice v holds the points low + (v - min)*length ...; an unsplit loop is its own point.
        start = ZERO if loop.var == f"{anchor}.{name}" else low
        begin, end = loop.min, loop.min + loop.extent
        if first is not None:
            begin = maximum(begin, (first - start) // part.length)
        if last is not None:
            end = minimum(end, (last - start) // part.length + 1)
        return replace(loop, min=begin, extent=end - begin)

    def _limits(self) -> Limits:
        """Where data ends the domain of every row."""
        func = self.terms.func(self.terms.rolled)
        domain = self.terms.domain(func.name)
        parts = () if domain.where is None else conjuncts_of(domain.where)
        _, low, extent = domain.dims[0]
        inputs = frozenset(a.name for a in self.plan.algorithm.inputs)
        rows = Rows(func, self.stages[func.name, 0], inputs)
        return data_limits(rows, [e for e in parts if e.reads], low, low + extent)

    def _on_slice(self, stage: Stage, member: str, part: Slice) -> Stage:
        """The update of a member with its loop over the domain cut down to the slice."""
        var = f"{member}.{self.terms.domain(member).dims[0][0]}"
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
            raise self.terms.error(
                "domain-scheduled",
                f"the loop of {member!r} over its domain was split, fused or renamed",
                "leave it whole: it runs over the slice, serial or vectorized",
            )
        return made

    def _safe(self, stmt: Stmt) -> Stmt:
        """A member's terms, or what forms them, with the rolled value as it is read in the loop."""

        def rule(e: Expr) -> Expr:
            return self.terms.as_read(e, self.part)

        memo: dict[Expr, Expr] = {}

        def visit(s: Stmt) -> Stmt:
            return map_children(map_exprs(s, lambda e: rewrite(e, rule, memo)), visit)

        return visit(stmt)

    def _repair(self, member: str) -> list[Stage]:
        """g = g*rho, or g + shift, in the loops of g's pure definition."""
        if member == self.terms.rolled:
            return []
        shift = self.terms.shift(member, self.part)
        if shift is not None:
            return [self._in_pure_loops(member, REPAIR, lambda g: g + _cast(shift, g))]
        found = self.terms.ratio(member)
        if found is None:
            return []
        rho = self._where_changed(found)
        return [self._in_pure_loops(member, REPAIR, lambda g: g * _cast(rho, g))]

    def _meets_twice(self, member: str) -> bool:
        """Whether the loops of the pure definition meet a point twice: it is repaired once only."""
        return may_store_twice(self.stages[member, 0], member)

    def _where_changed(self, found: Ratio) -> Expr:
        """1 where no rolled value changed: m'/m may be 0/0, while exp(m - m') is 1 by itself."""
        if not any(isinstance(e, Binary) and e.op == "div" for e in postorder(found.rho)):
            return found.rho
        parts = [Compare("eq", self.terms.earlier(load), load) for load in found.loads]
        same: Expr = reduce(lambda a, b: Binary("and", a, b), parts)
        for load in found.loads:
            if load.buffer == self.terms.rolled and self.terms.is_extreme:
                none = Compare("eq", self.terms.earlier(load), self.terms.identity)
                same = Binary("or", same, none)
        return Select(same, Const(1, found.rho.dtype), found.rho)

    def _in_pure_loops(
        self,
        member: str,
        name: str,
        value: Callable[[Expr], Expr],
        buffer: str = "",
        when: Expr | None = None,
    ) -> Stage:
        """A stage that stores `value` of the element, in the loops of the pure definition.

        Value and condition are over the names of the update; they become those of the definition.
        Where its loops meet a point twice, the element is that which was kept before.
        """
        update, start = store_of(self.stages[member, 1]), store_of(self.stages[member, 0])
        names = {
            a.name: b
            for a, b in zip(update.indices, start.indices, strict=True)
            if isinstance(a, Var)
        }
        kept = name == REPAIR and self._meets_twice(member)
        source = f"{member}_{BEFORE}" if kept else member
        element = Load(source, start.indices, 0, self.terms.func(member).dtypes[0])
        stored = substitute(value(element), names)
        made: Stmt = Store(buffer or member, start.indices, (stored,), span=start.span)
        if when is not None:
            made = If(substitute(when, names), made)
        return Stage(f"{member}_{name}", 0, _with_store(self.stages[member, 0].body, made))

    def _keep(self, member: str) -> Stage:
        return self._in_pure_loops(member, BEFORE, lambda g: g, f"{member}_{BEFORE}")

    def _buffer(self, member: str, name: str, dtypes: tuple[DType, ...]) -> Buffer:
        dims = tuple(
            Dim(Var(region_name(member, d, "min")), Var(region_name(member, d, "extent")))
            for d in self.terms.func(member).dims
        )
        return Buffer(f"{member}_{name}", dtypes, dims)

    def _see(self, part: Slice) -> Stage:
        """seen = max(seen, 1) at every point of the domain, in the loops of the rolled update."""
        func = self.terms.rolled
        stage = self._on_slice(self.stages[func, 1], func, part)
        store, buffer = store_of(stage), f"{func}_{SEEN}"
        old = Load(buffer, store.indices, 0, i32)
        made = Store(buffer, store.indices, (Binary("max", old, Const(1, i32)),))
        return Stage(buffer, 1, _with_store(stage.body, made))

    def _with_seen(self, body: Stmt) -> Stmt:
        func = self.terms.rolled
        start = self._in_pure_loops(func, SEEN, lambda g: Const(0, i32), f"{func}_{SEEN}")
        return Allocate(self._buffer(func, SEEN, (i32,)), block(start, body))

    def _poison(self, member: str) -> list[Stage]:
        """Rows whose max is still -inf though they had a point: the definition gives NaN."""
        none = self.terms.poisoned(member)
        if none is None:
            return []
        nan = Const(float("nan"), self.terms.func(member).dtypes[0])
        if self._meets_twice(member):
            return [self._in_pure_loops(member, "empty", lambda g: nan, when=none)]
        return [self._in_pure_loops(member, "empty", lambda g: Select(none, nan, g))]

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

    def _safe_between(self, stmt: Stmt) -> Stmt:
        """A pure Func that is computed at the loop forms the members' terms."""
        if not isinstance(stmt, Stage) or stmt.func in self.group.members:
            return stmt
        return self._safe(stmt) if self.terms.at_the_loop(stmt.func) else stmt

    def _check_other_consumers(self) -> None:
        """Nobody may read a member before the loop has ended."""
        for stage in (s for s in walk(self.body) if isinstance(s, Stage)):
            if stage is self.stages[self.group.anchor, 1]:
                return
            reader = stage.func not in self.group.members and not self.terms.at_the_loop(stage.func)
            read = next((m for m in self.group.members if touches(stage, m)), None)
            if reader and read is not None:
                raise self.terms.error(
                    "other-consumer",
                    f"{stage.func!r} reads {read!r} before the loop of the group has ended",
                    f"compute {stage.func!r} at {self.group.rolling.loop!r} of "
                    f"{self.group.anchor!r}, inline it, or give it a copy with clone_in",
                )


def _with_store(stmt: Stmt, store: Stmt) -> Stmt:
    return store if isinstance(stmt, Store) else map_children(stmt, lambda s: _with_store(s, store))


def _cast(e: Expr, like: Expr) -> Expr:
    return e if e.dtype is like.dtype else Cast(like.dtype, e)
