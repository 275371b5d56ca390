"""What the members of a rolling group sum, and by what their accumulators are repaired."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from tensorlang.algorithm import Domain, FuncRecord
from tensorlang.errors import InternalError, ScheduleError
from tensorlang.ir.associativity import Operator, associative_operator
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Load, Select, Var
from tensorlang.ir.functions import identity, minimum
from tensorlang.ir.moments import shift_of
from tensorlang.ir.points import has_point
from tensorlang.ir.printer import print_expr
from tensorlang.ir.repair import NoRepairError, Rolled, either, known_seen, repair_of
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, Let, Stage, Stmt, Store, walk
from tensorlang.ir.types import i32
from tensorlang.ir.walk import loads_of, postorder, rewrite, substitute
from tensorlang.lower.plan import Group, Level, Plan

BEFORE, SEEN = "before", "seen"


@dataclass(frozen=True, slots=True)
class Slice:
    """Points first, ..., first + length - 1 of the domain, of which those before `end` exist."""

    first: Expr
    length: Expr
    end: Expr


@dataclass(frozen=True, slots=True)
class Ratio:
    """rho, over the names of a member's update, and the rolled loads that it depends on."""

    rho: Expr
    loads: tuple[Load, ...]


class Terms:
    """One group, in a program that has every stage at root."""

    def __init__(self, plan: Plan, group: Group, stages: Mapping[tuple[str, int], Stage]) -> None:
        self.plan, self.group, self.stages = plan, group, stages
        self.rolled = group.rolling.func
        self.dtype = self.func(self.rolled).dtypes[0]
        # What stands between the members, computed at the loop: a term is seen through it.
        self.between = {
            f.name: store_of(stages[f.name, 0])
            for f in plan.algorithm.funcs
            if f.is_pure and (f.name, 0) in stages and self.at_the_loop(f.name)
        }
        self.operator = self.term(self.rolled)[0]
        self.identity = identity(self.operator, self.dtype)
        # A max or min of floats starts at an infinity, which must not enter a term.
        self.is_extreme = self.operator in ("max", "min") and self.dtype.is_float
        (dim,), where = self.domain(self.rolled).dims, self.domain(self.rolled).where
        self.nonempty = has_point(*dim, where)
        # Whether a row of the domain has a point is known at once, or counted in the loop.
        self.counts = where is not None and self.is_extreme and self.nonempty is None

    def func(self, name: str) -> FuncRecord:
        return self.plan.algorithm.func(name)

    def domain(self, func: str) -> Domain:
        domain = self.func(func).definitions[1].domain
        if domain is None:
            raise InternalError(f"{func} has no domain")
        return domain

    def at_the_loop(self, func: str) -> bool:
        """Whether a Func is computed at the loop of the group."""
        level = self.plan.placements[func].compute
        return level == Level(self.group.anchor, self.group.rolling.loop)

    def term(self, func: str) -> tuple[Operator, Expr, Store]:
        """The operator of a member's update, its term, and the store that holds it."""
        store = store_of(self.stages[func, 1])
        values = tuple(self._expanded(v) for v in store.values)
        found = associative_operator(func, store.indices, values)
        if found is None or len(store.values) != 1:
            raise self.error(
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

    def is_rolled(self, member: str) -> bool:
        """Whether another member's terms read it."""
        return any(
            member in self.term(other)[1].reads for other in self.group.members if other != member
        )

    def as_read(self, e: Expr, part: Slice) -> Expr:
        """A node of a term as it is evaluated in the loop, its operands already so.

        Before anything was seen a max is -inf: terms are formed with 0 in its place.  A mean is
        over the points so far.
        """
        if self.is_mean(e):
            return Binary("div", e.children[0], self.count(part, seen=True))
        if self.is_extreme and isinstance(e, Load) and e.buffer == self.rolled:
            return either(e, self.identity, Const(0, self.dtype))
        return known_seen(e, self.identity)

    def ratio(self, member: str) -> Ratio | None:
        """By what the accumulator of a member changes; None: not at all."""
        operator, term, store = self.term(member)
        loads = [e for e in loads_of(term) if e.buffer in self.group.members and e.buffer != member]
        if not loads:
            return None
        bound = _bound(self.stages[member, 1]) - _names(store)
        if operator != "add" or any(not load.free.isdisjoint(bound) for load in loads):
            raise self._no_repair(member, term)
        try:
            rho = repair_of(term, {load: self._change(load) for load in loads}, bound)
        except NoRepairError as none:
            raise self._no_repair(member, none.factor) from None
        if rho is None:
            return None
        settled = rewrite(rho, lambda e: known_seen(e, self.identity))
        return Ratio(settled, tuple(loads))

    def _change(self, load: Load) -> Rolled:
        """A rolled value before and after a slice; where nothing was seen before, no change."""
        if load.buffer != self.rolled or not self.is_extreme:
            return Rolled(self.earlier(load), load)
        after = either(load, self.identity, Const(0, self.dtype))
        return Rolled(either(self.earlier(load), self.identity, after), after)

    def earlier(self, load: Load) -> Load:
        return Load(f"{load.buffer}_{BEFORE}", load.indices, load.component, load.dtype)

    def is_mean(self, e: Expr) -> bool:
        """Whether an expression is the rolled sum over the number of points of its domain."""
        if not isinstance(e, Binary) or e.op != "div" or self.operator != "add":
            return False
        domain = self.domain(self.rolled)
        points = Cast(self.dtype, domain.dims[0][2])
        is_sum = isinstance(e.a, Load) and e.a.buffer == self.rolled
        return is_sum and domain.where is None and simplify(e.b) is simplify(points)

    def count(self, part: Slice, *, seen: bool) -> Expr:
        """How many points were seen: with this slice, or before it."""
        _, low, _ = self.domain(self.rolled).dims[0]
        end = minimum(part.first + part.length, part.end)
        return Cast(self.dtype, (end if seen else part.first) - low)

    def shift(self, member: str, part: Slice) -> Expr | None:
        """What its terms change by, where they are polynomial in a mean; else None."""
        operator, term, store = self.term(member)
        means = [e for e in postorder(term) if self.is_mean(e)]
        mean = Var("_mean")
        rest = rewrite(term, lambda e: mean if self.is_mean(e) else e)
        if operator != "add" or len(set(means)) != 1 or self.rolled in rest.reads:
            return None
        (load,) = means[0].children[:1]
        assert isinstance(load, Load)
        earlier, count = self.earlier(load), self.count(part, seen=False)
        before = Binary("div", earlier, count)
        after = Binary("div", load, self.count(part, seen=True))

        def moment(factors: tuple[Expr, ...]) -> Expr | None:
            if not factors:
                return count
            return earlier if self._sums(load, member, factors) else None

        bound = _bound(self.stages[member, 1]) - _names(store)
        try:
            shift = shift_of(rest, mean, (before, after), bound, moment)
        except NoRepairError as none:
            raise self._no_repair(member, none.factor) from None
        none_yet = Compare("le", count, Const(0, self.dtype))
        return Select(none_yet, Const(0, shift.dtype), shift)

    def _sums(self, load: Load, member: str, factors: tuple[Expr, ...]) -> bool:
        """Whether the rolled sum, of the row that is loaded, is that of a product of factors."""
        _, term, store = self.term(self.rolled)
        names = {v.name: e for v, e in zip(store.indices, load.indices, strict=True)
                 if isinstance(v, Var)}  # fmt: skip
        own, other = (f"{f}.{self.domain(f).dims[0][0]}" for f in (self.rolled, member))
        summed = substitute(term, {**names, own: Var(other)})
        return summed is reduce(lambda a, b: Binary("mul", a, b), factors)

    def poisoned(self, member: str) -> Expr | None:
        """Where the max of a row is -inf though it had a point, so that a member is NaN."""
        if member == self.rolled or not self.is_extreme:
            return None
        found = self.ratio(member)
        if found is None or self._is_guarded(member):
            return None
        load = next((e for e in found.loads if e.buffer == self.rolled), None)
        if load is None:
            return None
        return Binary("and", Compare("eq", load, self.identity), self._had_point(load))

    def _is_guarded(self, member: str) -> bool:
        """Whether the definition itself takes 0 for a max of nothing: select(m == -inf, 0, m)."""

        def rule(e: Expr) -> Expr:
            if isinstance(e, Select) and self.rolled in e.b.reads:
                none = Compare("eq", e.b, self.identity)
                if e.condition is none and isinstance(e.a, Const) and e.a.value == 0:
                    return e.a
            return e

        return self.rolled not in rewrite(self.term(member)[1], rule).reads

    def _had_point(self, load: Load) -> Expr:
        """Whether the domain of the row that is loaded had a point."""
        rows = self.func(self.rolled).definitions[1].pure
        if self.nonempty is None:
            seen = Load(f"{load.buffer}_{SEEN}", load.indices, 0, i32)
            return Compare("lt", Const(0, i32), seen)
        names = {v: e for v, e in zip(rows, load.indices, strict=True) if v is not None}
        return substitute(self.nonempty, names)

    def _no_repair(self, member: str, factor: Expr) -> ScheduleError:
        return self.error(
            "no-repair",
            f"a term of {member!r} does not come apart: {print_expr(factor)}",
            "terms are products of factors without the rolled value, exp or exp2 of it scaled and "
            "shifted, and any function of it alone; or polynomials in a rolled sum over the number "
            "of its points, of which the group holds the moments",
        )

    def error(self, code: str, why: str, fix: str) -> ScheduleError:
        rolling = self.group.rolling
        return ScheduleError(
            code,
            f"cannot roll {rolling.func!r} into {rolling.into!r} along {rolling.loop!r}",
            why=why,
            fix=fix,
            span=rolling.span,
        )


def store_of(stage: Stage) -> Store:
    """The one store of a stage."""
    return next(s for s in walk(stage) if isinstance(s, Store))


def _bound(stmt: Stmt) -> frozenset[str]:
    """The names that loops and Lets bind."""
    return frozenset(s.var for s in walk(stmt) if isinstance(s, (For, Let)))


def _names(store: Store) -> frozenset[str]:
    """The names in the indices: those of one accumulator."""
    return frozenset(name for e in store.indices for name in e.free)
