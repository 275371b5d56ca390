"""rfactor of a rolling group: its slices on their own, then one result by the derived repair.

    m = max(S); l = sum(exp(S - m)); O = sum(exp(S - m)*V)        over j = part*n + r

        m_u = max(S); l_u = sum(exp(S - m_u)); O_u = sum(exp(S - m_u)*V)     over r, for each part u
        m = max(m_u); l = sum(l_u * exp(m_u - m)); O = sum(O_u * exp(m_u - m))    over u

`O_u_all[u, x] = (m_u, l_u, O_u)` stands between the two: computed at root it is what one kernel
writes and another reads; by default it is inlined.  Attention becomes flash decoding.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from tensorlang.algorithm import Definition, Domain, FuncRecord
from tensorlang.directives.base import Directive, Rolling, State
from tensorlang.directives.nest import Loop, default_nest
from tensorlang.directives.partials import combine, recovered, start_of
from tensorlang.directives.rolling_group import between, expanded, members_of, producers_first
from tensorlang.errors import ScheduleError
from tensorlang.ir.associativity import Operator, associative_operator
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Load, Select, Var
from tensorlang.ir.functions import identity
from tensorlang.ir.moments import shift_of
from tensorlang.ir.points import points_of
from tensorlang.ir.printer import print_expr
from tensorlang.ir.repair import NoRepairError, Rolled, either, repair_of
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import LoopKind
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, postorder, rewrite, substitute


def factor_group(directive: Directive, state: State, rolling: Rolling, factored: str) -> str:
    """Put the partial results of a group in, and make its members their merge.

    Returns: the name of the Func that holds all of them, or else those of the anchor.
    """
    factoring = _Factoring(directive, state, rolling, Var(factored))
    factoring.apply()
    return factoring.whole


class _Factoring:
    """One group, rolled along the loop that is to become the Var `u`."""

    def __init__(self, directive: Directive, state: State, rolling: Rolling, u: Var) -> None:
        self.directive, self.state, self.rolling, self.u = directive, state, rolling, u
        algorithm = state.algorithm
        self.rolled, self.anchor = algorithm.func(rolling.func), algorithm.func(rolling.into)
        self.nest = state.nests[self.anchor.name, 1]
        self.members = members_of(algorithm, self.rolled, self.anchor)
        self.between = {f.name: f for f in between(algorithm, self.members)}
        self.renamed = {name: f"{name}_{u.name}" for name in (*self.members, *self.between)}
        self.all = f"{self.anchor.name}_{u.name}_all"
        self._check()
        self.loop, self.inner = self._loops()
        values, self.guards = recovered(self.nest, {self.loop.name: u})
        self.point = values[self._domain(self.anchor).names[0]]
        self.operator = self._reduction(self.rolled)[0]
        self.identity = identity(self.operator, self.rolled.dtypes[0])
        self.is_extreme = self.operator in ("max", "min") and self.rolled.dtypes[0].is_float

    def apply(self) -> None:
        state, members = self.state, [self._func(name) for name in self.members]
        partials = [self._partial(f) for f in members]
        copies = [self._copy(f) for f in self.between.values()]
        whole = self._all()
        made = {f.name: f for f in (*partials, *copies, *([whole] if whole else []))}
        merged = {f.name: self._merged(f) for f in members}
        kept = (merged.get(f.name, f) for f in state.algorithm.funcs)
        funcs = (*made.values(), *kept)
        state.algorithm = producers_first(replace(state.algorithm, funcs=funcs))
        for func in (*made.values(), *merged.values()):
            for number in range(len(func.definitions)):
                if func.name in made or number == 1:
                    state.nests[func.name, number] = default_nest(func, number)
        state.rolling = tuple(r for r in state.rolling if r is not self.rolling)
        self._forget()

    @property
    def whole(self) -> str:
        """What is merged: all partial results, if they are one Func, or else the anchor's."""
        return self.renamed[self.anchor.name] if self._rows is None else self.all

    def _forget(self) -> None:
        """What nobody reads any more has no loops and no place."""
        there = self.state.funcs
        for key in [key for key in self.state.nests if key[0] not in there]:
            del self.state.nests[key]
        for name in [name for name in self.state.placements if name not in there]:
            del self.state.placements[name]

    def _func(self, name: str) -> FuncRecord:
        return self.state.algorithm.func(name)

    def _domain(self, func: FuncRecord) -> Domain:
        domain = func.definitions[1].domain
        assert domain is not None
        return domain

    def _check(self) -> None:
        taken = {a.name for a in self.state.algorithm.inputs} | set(self.state.funcs)
        for name in (*self.renamed.values(), self.all):
            if name in taken:
                raise self._error(
                    "func-name-taken",
                    f"there is a {name!r} already",
                    f"choose another Var than {self.u.name!r}",
                )
        for func in self.between.values():
            if not func.is_pure:
                raise self._error(
                    "not-a-reduction",
                    f"{func.name!r} stands between members and is no pure Func",
                    "factor a group of reductions over one domain",
                )
        for name in self.members:
            nest = self.state.nests[name, 1]
            loops = [loop.kind is not LoopKind.SERIAL for loop in nest.loops]
            if name != self.anchor.name and (nest.bindings or any(loops)):
                raise self._error(
                    "loops-scheduled",
                    f"the update of {name!r} is scheduled already, and is about to change",
                    "rfactor the group first, then schedule its Funcs",
                )

    def _loops(self) -> tuple[Loop, Loop]:
        """The loop of the slices, and the one inside them."""
        loop = self.directive.loop(self.nest, self.rolling.loop)
        rest = [v for v in self.nest.loops if v.reduction and v is not loop]
        if len(rest) != 1:
            raise self._error(
                "domain-scheduled",
                f"{loop.name!r} is not the outer half of one split of the domain",
                "split the domain once, roll along the outer loop, and rfactor that",
            )
        return loop, rest[0]

    def _reduction(self, func: FuncRecord) -> tuple[Operator, Expr]:
        """The operator of a member, and its term."""
        definition = func.definitions[1]
        found = associative_operator(func.name, definition.indices, definition.values)
        if found is None or len(definition.values) != 1 or None in definition.pure:
            raise self._error(
                "not-a-reduction",
                f"the update of {func.name!r} is no known reduction to one value",
                "factor sums, max and min",
            )
        return found[0], found[1][0]

    def _partial(self, func: FuncRecord) -> FuncRecord:
        """f_u[u, x]: the reduction over the points of slice u, in terms of other partial results"""
        operator, term = self._reduction(func)
        definition, name = func.definitions[1], self.renamed[func.name]
        domain = self._domain(func)
        values = {domain.names[0]: self.point}
        conditions = list(self.guards)
        if domain.where is not None:
            conditions.append(substitute(domain.where, values))
        where = None
        for condition in conditions:
            where = condition if where is None else where & condition
        inside = Domain(f"{name}_points", (self._range(),), where)
        dims = (self.u.name, *func.dims)
        at = (self.u, *definition.indices)
        current = (Load(name, at, 0, func.dtypes[0]),)
        step = combine(operator, current, (substitute(self._of_slice(term), values),))
        pure = (self.u.name, *definition.pure)
        start = Definition(
            tuple(map(Var, dims)), start_of(operator, func), dims, span=self.directive.span
        )
        update = Definition(at, step, pure, inside, span=definition.span)
        return FuncRecord(name, dims, func.dtypes, (start, update), span=self.directive.span)

    def _range(self) -> tuple[str, Expr, Expr]:
        return self.inner.name, self.inner.min, self.inner.extent

    def _copy(self, func: FuncRecord) -> FuncRecord:
        """What stands between, of the partial results of slice u."""
        definition = func.definitions[0]
        values = tuple(map(self._of_slice, definition.values))
        dims = (self.u.name, *func.dims)
        own = replace(definition, indices=tuple(map(Var, dims)), values=values, pure=dims)
        return FuncRecord(self.renamed[func.name], dims, func.dtypes, (own,), span=func.span)

    def _of_slice(self, e: Expr) -> Expr:
        """An expression over the group, with the values of slice u in their place."""
        return rewrite(e, lambda node: self._read_slice(node, self.u))

    def _read_slice(self, e: Expr, part: Expr) -> Expr:
        if self._is_mean(e, self.renamed[self.rolled.name]):
            return Binary("div", e.children[0], self._count(part))
        if isinstance(e, Load) and e.buffer in self.renamed:
            return Load(self.renamed[e.buffer], (part, *e.indices), e.component, e.dtype)
        return e

    def _is_mean(self, e: Expr, rolled: str) -> bool:
        """Whether an expression is the rolled sum over the number of points of its domain."""
        if not isinstance(e, Binary) or e.op != "div" or not isinstance(e.a, Load):
            return False
        domain = self._domain(self.rolled)
        if e.a.buffer != rolled or self.operator != "add" or domain.where is not None:
            return False
        points = Cast(self.rolled.dtypes[0], domain.dims[0][2])
        return simplify(e.b) is simplify(points)

    def _count(self, part: Expr) -> Expr:
        """How many points a slice has."""
        where = None
        for guard in self.guards:
            where = guard if where is None else where & guard
        points = points_of(*self._range(), where)
        if points is None:
            raise self._error(
                "no-repair",
                "the number of points of a slice is not known",
                "split the domain once by a Python int",
            )
        return Cast(self.rolled.dtypes[0], substitute(points, {self.u.name: part}))

    @cached_property
    def _rows(self) -> Mapping[str, Mapping[int, int]] | None:
        """For each member, which dimension of the anchor each of its own is; None: not one of each.

        Members are matched by the rolled value that they read.
        """
        of_rolled = {name: self._matched(self._func(name)) for name in self.members}
        of_anchor = of_rolled[self.anchor.name]
        if of_anchor is None:
            return None
        found: dict[str, Mapping[int, int]] = {}
        for name, own in of_rolled.items():
            if own is None or (name != self.anchor.name and len(own) < len(self._func(name).dims)):
                return None
            found[name] = {own[row]: of_anchor[row] for row in own if row in of_anchor}
        found[self.anchor.name] = {k: k for k in range(len(self.anchor.dims))}
        return found

    def _matched(self, func: FuncRecord) -> dict[int, int] | None:
        """Dimension of the rolled Func -> dimension of a member; None where they are not one."""
        if func.name == self.rolled.name:
            return {k: k for k in range(len(func.dims))}
        pure = func.definitions[1].pure
        loads = [e for e in loads_of(self._term_of(func)) if e.buffer == self.rolled.name]
        found: dict[int, int] = {}
        for load in loads[:1]:
            for row, e in enumerate(load.indices):
                if not isinstance(e, Var) or e.name not in pure:
                    return None
                found[row] = pure.index(e.name)
        return found if len(loads) == 1 and len({*found.values()}) == len(found) else None

    def _all(self) -> FuncRecord | None:
        """The partial results of all members as one tuple, over the dimensions of the anchor."""
        if self._rows is None:
            return None
        dims = (self.u.name, *self.anchor.dims)
        values: list[Expr] = []
        for name in self.members:
            func = self._func(name)
            at = [Var(self.anchor.dims[self._rows[name][k]]) for k in range(len(func.dims))]
            values.append(Load(self.renamed[name], (self.u, *at), 0, func.dtypes[0]))
        dtypes = tuple(v.dtype for v in values)
        definition = Definition(
            tuple(map(Var, dims)), tuple(values), dims, span=self.directive.span
        )
        return FuncRecord(self.all, dims, dtypes, (definition,), span=self.directive.span)

    def _part(self, load: Load, part: Expr) -> Load:
        """The partial result of slice `part` that a load of a member becomes."""
        if self._rows is None:
            return Load(self.renamed[load.buffer], (part, *load.indices), 0, load.dtype)
        at: list[Expr] = [Const(0, index)] * len(self.anchor.dims)
        for k, row in self._rows[load.buffer].items():
            at[row] = load.indices[k]
        component = self.members.index(load.buffer)
        return Load(self.all, (part, *at), component, load.dtype)

    def _merged(self, func: FuncRecord) -> FuncRecord:
        """f[x] = f[x] op repaired(f_u[part, x])    over the slices"""
        operator, _ = self._reduction(func)
        definition, part = func.definitions[1], Var(self.loop.name)
        current = Load(func.name, definition.indices, 0, func.dtypes[0])
        term = self._repaired(func, operator, self._part(current, part), part)
        domain = Domain(self.loop.name, ((self.loop.name, self.loop.min, self.loop.extent),))
        values = combine(operator, (current,), (term,))
        update = Definition(
            definition.indices, values, definition.pure, domain, span=self.directive.span
        )
        return replace(func, definitions=(func.definitions[0], update))

    def _term_of(self, func: FuncRecord) -> Expr:
        """The term of a member, seen through what stands between."""
        return expanded(self._reduction(func)[1], self.between)

    def _repaired(self, func: FuncRecord, operator: Operator, own: Load, part: Var) -> Expr:
        """The partial result as if its terms had been formed with the values of all slices."""
        term = self._term_of(func)
        loads = [e for e in loads_of(term) if e.buffer in self.members]
        bound = frozenset(self._domain(func).names)
        if not loads:
            return own
        if operator != "add" or any(not load.free.isdisjoint(bound) for load in loads):
            raise self._no_repair(func, term)
        try:
            means = [e for e in postorder(term) if self._is_mean(e, self.rolled.name)]
            if means:
                return Binary("add", own, _cast(self._shift(func, term, means[0], part), own))
            changes: dict[Expr, Rolled] = {
                e: Rolled(self._seen(e.buffer, self._part(e, part)), self._seen(e.buffer, e))
                for e in loads
            }
            rho = repair_of(term, changes, bound)
        except NoRepairError as none:
            raise self._no_repair(func, none.factor) from None
        return own if rho is None else self._times(own, rho, loads, part)

    def _seen(self, member: str, value: Expr) -> Expr:
        """A max of nothing is -inf, which must not enter a ratio: 0 stands for it."""
        if member != self.rolled.name or not self.is_extreme:
            return value
        return either(value, self.identity, Const(0, value.dtype))

    def _times(self, own: Load, rho: Expr, loads: list[Load], part: Var) -> Expr:
        """own*rho; own where nothing has changed, and nothing of a slice in which nothing was."""
        whole: Expr = Binary("mul", own, _cast(rho, own))
        same: Expr | None = None
        for load in loads:
            earlier = self._part(load, part)
            if load.buffer == self.rolled.name and self.is_extreme:
                none = Compare("eq", earlier, self.identity)
                whole = Select(none, Const(0.0, own.dtype), whole)
            unchanged = Compare("eq", earlier, load)
            same = unchanged if same is None else Binary("and", same, unchanged)
        return whole if same is None else Select(same, own, whole)

    def _shift(self, func: FuncRecord, term: Expr, found: Expr, part: Var) -> Expr:
        """What terms that are polynomial in a mean change by."""
        mean, load = Var("_mean"), found.children[0]
        rest = rewrite(term, lambda e: mean if e is found else e)
        if self.rolled.name in rest.reads or not isinstance(load, Load):
            raise self._no_repair(func, term)
        count, summed = self._count(part), self._part(load, part)

        def moment(factors: tuple[Expr, ...]) -> Expr | None:
            if not factors:
                return count
            return summed if self._sums(func, load, factors) else None

        change = (Binary("div", summed, count), found)
        return shift_of(rest, mean, change, frozenset(self._domain(func).names), moment)

    def _sums(self, func: FuncRecord, load: Load, factors: tuple[Expr, ...]) -> bool:
        """Whether the rolled sum, of the row that is loaded, is that of a product of factors."""
        definition = self.rolled.definitions[1]
        names: dict[str, Expr] = {
            v: e for v, e in zip(definition.pure, load.indices, strict=True) if v is not None
        }
        names[self._domain(self.rolled).names[0]] = Var(self._domain(func).names[0])
        product = factors[0]
        for factor in factors[1:]:
            product = Binary("mul", product, factor)
        return substitute(self._reduction(self.rolled)[1], names) is product

    def _no_repair(self, func: FuncRecord, factor: Expr) -> ScheduleError:
        return self._error(
            "no-repair",
            f"a term of {func.name!r} does not come apart: {print_expr(factor)}",
            "terms are products of factors without the rolled value, exp or exp2 of it scaled and "
            "shifted, and any function of it alone; or polynomials in a mean",
        )

    def _error(self, code: str, why: str, fix: str) -> ScheduleError:
        rolling = self.rolling
        what = f"cannot rfactor {rolling.loop!r}, along which {rolling.func!r} is rolled"
        return self.directive.error(code, f"{what} into {rolling.into!r}", why=why, fix=fix)


def _cast(e: Expr, like: Expr) -> Expr:
    return e if e.dtype is like.dtype else Cast(like.dtype, e)
