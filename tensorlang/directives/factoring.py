"""rfactor: a reduction in two steps, through a Func of partial results."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from tensorlang.algorithm import Definition, Domain, FuncRecord
from tensorlang.directives.base import Directive, State
from tensorlang.directives.group_factoring import factor_group
from tensorlang.directives.nest import Loop, Nest, default_nest
from tensorlang.directives.parallel import Atomic
from tensorlang.directives.partials import Merging, combine, recovered, start_of
from tensorlang.ir.associativity import associative_operator, side_by_side
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.tuple_operators import TupleOperator, tuple_operator
from tensorlang.ir.walk import substitute

Merge = Literal["kernel", "atomic", "last"]


@dataclass(frozen=True, slots=True, eq=False)
class RFactor(Directive):
    """f[x] = f[x] + e over (r, k)   ->   f_u[u, x] = 0; f_u[u, x] = f_u[u, x] + e[r := u] over k;
    f[x] = f[x] + f_u[r, x] over r

    The new Func `f_u` has `u` as its first dimension and starts at root.  Apply it to an RDom loop
    of an update (split it first to choose how many partial results there are), before the pure
    loops of that update are scheduled.

    Where a group is rolled into `f` along the loop, the whole group is factored: each slice becomes
    a partial result of its own, and they are merged by the derived repair (group_factoring.py).

    Args:
        var: the RDom loop whose iterations become independent.
        factored: the pure Var that takes its place in the new Func.
        merge: how a GPU adds the partial results up: by a kernel of its own; by atomics, so that
            the loop over them may be gpu_blocks with `f_u` computed inside; or in the last program
            to arrive.
    Raises: ScheduleError: not-an-update, not-a-reduction-loop, not-associative, not-commutative,
        loops-scheduled.
    See: Halide's Stage::rfactor; Suriana, Adams, Kamil (CGO 2017).
    """

    keyword: ClassVar[str] = "rfactor"
    var: str
    factored: str
    merge: Merge = "kernel"

    def makes(self, func: str) -> str:
        return f"{func}_{self.factored}"

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        nest = state.nests[stage]
        loop = self.loop(nest, self.var)
        func = state.funcs[nest.func]
        definition = func.definitions[nest.number]
        self._check_words(state, nest)
        self._check_loops(nest, loop, definition)
        group = next((g for g in state.rolling if (g.into, g.loop) == (func.name, loop.name)), None)
        if group is not None:
            self._check_group_merge(nest)
            whole = factor_group(self, state, group, self.factored)
            if self.merge == "last":
                state.hints[whole] = (("merge", self.merge),)
            return
        operator, terms = self._operator(nest, loop, definition)
        partial = self._partial(func, definition, nest, loop, operator, terms)
        merged = self._merged(func, loop, operator, partial.name)
        definitions = list(func.definitions)
        definitions[nest.number] = merged
        changed = replace(func, definitions=tuple(definitions))
        state.insert(partial, func.name, changed)
        state.nests[stage] = default_nest(changed, nest.number)
        if self.merge == "atomic":
            Atomic(span=self.span).apply(state, stage)
        elif self.merge == "last":
            state.hints[partial.name] = (("merge", self.merge),)

    def _what(self, nest: Nest) -> str:
        return f"cannot rfactor {self.var!r} of {nest.stage!r}"

    def _check_words(self, state: State, nest: Nest) -> None:
        name, what = self.makes(nest.func), self._what(nest)
        if name in {a.name for a in state.algorithm.inputs} | set(state.funcs):
            raise self.error(
                "func-name-taken",
                f"{what}: there is a {name!r} already",
                why="the new Func is named after its origin and its new Var",
                fix=f"choose another Var than {self.factored!r}",
            )
        if self.merge not in get_args(Merge):
            raise self.error(
                "unknown-merge",
                f"{what} with merge={self.merge!r}",
                why="merge says how a GPU adds the partial results up",
                fix=f"one of {', '.join(get_args(Merge))}",
            )

    def _check_group_merge(self, nest: Nest) -> None:
        if self.merge == "atomic":
            raise self.error(
                "unknown-merge",
                f"{self._what(nest)} with merge={self.merge!r}",
                why="a group is rolled along it, and its partial results are repaired before they "
                "are added up",
                fix='merge="kernel" or merge="last"',
                nest=nest,
            )

    def _check_loops(self, nest: Nest, loop: Loop, definition: Definition) -> None:
        pure = {v for v in definition.pure if v is not None}
        if not loop.reduction or loop.origins & pure:
            raise self.error(
                "not-a-reduction-loop",
                self._what(nest),
                why=f"{self.var!r} is no loop of an RDom alone",
                fix="rfactor a loop that comes from an RDom variable",
                nest=nest,
            )
        if nest.variants:
            raise self.error(
                "loops-scheduled",
                self._what(nest),
                why="it is specialized already, and the update is about to change",
                fix="rfactor first, then specialize",
                nest=nest,
            )
        scheduled = [b.name for b in nest.bindings if b.name in pure]
        if scheduled or any(nest.needed_by(inner) for inner in nest.loops):
            raise self.error(
                "loops-scheduled",
                self._what(nest),
                why="its pure loops are scheduled already, and the update is about to change",
                fix="rfactor first, then schedule the pure loops of both Funcs",
                nest=nest,
            )

    def _operator(
        self, nest: Nest, loop: Loop, definition: Definition
    ) -> tuple[Merging, tuple[Expr, ...]]:
        """The associative operator of the update, and its terms."""
        update = nest.func, definition.indices, definition.values
        found = associative_operator(*update) or side_by_side(*update)
        found = found or tuple_operator(*update, of_reals=True)
        if found is not None and isinstance(found[0], TupleOperator):
            self._check_sequence(nest, loop, found[0])
        if found is None:
            raise self.error(
                "not-associative",
                self._what(nest),
                why=f"the update of {nest.func!r} is no known associative operation, so that its "
                "terms cannot be grouped in another way",
                fix="write it as a sum, prod, min, max, any, all, argmin or argmax; as a tuple of "
                "such, one a component; or as a tuple of one dtype whose update is an associative "
                "polynomial",
                nest=nest,
            )
        return found

    def _check_sequence(self, nest: Nest, loop: Loop, operator: TupleOperator) -> None:
        """Terms that do not commute are grouped as they follow each other."""
        if not operator.is_commutative and nest.sequence[0] != loop.name:
            raise self.error(
                "not-commutative",
                self._what(nest),
                why=f"the update of {nest.func!r} is associative but not commutative, and the "
                f"iterations that share one of {self.var!r} do not follow each other",
                fix=f"rfactor {nest.sequence[0]!r}, the outermost loop of the domain",
                nest=nest,
            )

    def _partial(
        self,
        func: FuncRecord,
        definition: Definition,
        nest: Nest,
        loop: Loop,
        operator: Merging,
        terms: tuple[Expr, ...],
    ) -> FuncRecord:
        """f_u[u, x]: the identity, then the update over the other loops of the domain."""
        u, name = Var(self.factored), self.makes(func.name)
        values, guards = recovered(nest, {loop.name: u})
        dims = tuple((v.name, v.min, v.extent) for v in nest.loops if v.reduction and v is not loop)
        where = definition.domain.where if definition.domain else None
        conditions = [*guards, *([] if where is None else [substitute(where, values)])]
        index = (u, *(substitute(e, values) for e in definition.indices))
        current = tuple(Load(name, index, k, t) for k, t in enumerate(func.dtypes))
        taken = tuple(substitute(e, values) for e in terms)
        step = combine(operator, current, taken)
        condition = None
        for e in conditions:
            condition = e if condition is None else condition & e
        domain = Domain(f"{func.name}_{loop.name}", dims, condition)
        pure = (self.factored, *definition.pure)
        start_dims = (self.factored, *func.dims)
        start = Definition(
            tuple(Var(v) for v in start_dims),
            start_of(operator, func),
            start_dims,
            span=self.span,
        )
        update = Definition(index, step, pure, domain, span=definition.span)
        return FuncRecord(name, start_dims, func.dtypes, (start, update), span=self.span)

    def _merged(self, func: FuncRecord, loop: Loop, operator: Merging, partial: str) -> Definition:
        """f[x] = f[x] + f_u[r, x] over r"""
        index = tuple(Var(v) for v in func.dims)
        key = (Var(loop.name), *index)
        current = tuple(Load(func.name, index, k, t) for k, t in enumerate(func.dtypes))
        terms = tuple(Load(partial, key, k, t) for k, t in enumerate(func.dtypes))
        domain = Domain(loop.name, ((loop.name, loop.min, loop.extent),))
        return Definition(
            index, combine(operator, current, terms), func.dims, domain, span=self.span
        )
