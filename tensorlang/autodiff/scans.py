"""Reversing an update that writes each element at most once: a scan, or writing over a part.

    f[x, r] = F(f[x, r - 1], g[x, r])            for r upwards

    t[x, r - 1] = t[x, r - 1] + t[x, r] * dF/df  for r downwards, t starting as the adjoint of f
    g gets t[x, r] * dF/dg

A read of f is *new* where the element was written before, or is never written by this update, and
*old* where it is written later or now: then what gets its adjoint is the value before the update.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from tensorlang.algorithm import Definition, Domain, FuncRecord
from tensorlang.autodiff.building import Adjoint, Building
from tensorlang.autodiff.derivatives import adjoint_dtype
from tensorlang.autodiff.inversion import invert
from tensorlang.autodiff.placing import Contribution
from tensorlang.autodiff.space import ZERO, Axis, facts_of, space_of, vars_of
from tensorlang.autodiff.sweep import FALSE, TRUE, Guarded, adjoints_of, all_of, whole
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Compare, Const, Expr, Load, Param, Select, Unary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.interval import Interval, bounds_of
from tensorlang.ir.printer import print_expr
from tensorlang.ir.scans import scan_along
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, rewrite, substitute


def reverse_writes(
    building: Building, func: FuncRecord, number: int, adjoint: Adjoint
) -> Adjoint | None:
    """Hand on what the update reads; the adjoint of the value before it, None where it is 0.

    Raises: DefinitionError (no-gradient) where an element may be written twice.
    """
    writes = _Writes.of(building, func, number)
    tracks = _Tracks(building, func, number, adjoint, writes)
    through = tracks.through()
    left: list[Contribution] = []
    for leaf, unresolved in tracks.parts(through).items():
        part = writes.resolved(unresolved)
        if isinstance(leaf, Load) and leaf.buffer == func.name:
            old = (*writes.condition, writes.old(leaf), *part.guards)
            if writes.old(leaf) is not FALSE:
                kept = Guarded(tuple(g for g in old if g is not TRUE), part.value)
                left.append(Contribution(writes.space, leaf.indices, leaf.component, kept))
        else:
            condition = all_of(writes.condition) if writes.condition else None
            building.contribute(leaf, part, writes.space, condition, writes.definition.span)
    region = building.regions[func.name]
    kept = simplify(Unary("not", writes.at(vars_of(region))), facts_of(region))
    if kept is not FALSE:
        guards = () if kept is TRUE else (kept,)
        left += (
            Contribution(
                region, vars_of(region), c, Guarded(guards, through.at(c, vars_of(region)))
            )
            for c in through.sources
        )
    if not left:
        return None
    name = building.name(f"grad_{func.name}")
    return building.adjoint(name, region, func.dtypes, left, None, func.span)


@dataclass(frozen=True, slots=True, eq=False)
class _Writes:
    """Which point of an update writes an element, and which value of the Func a read sees."""

    func: FuncRecord
    definition: Definition
    space: tuple[Axis, ...]
    facts: Facts
    target: tuple[Axis, ...]
    writer: Mapping[str, Expr]
    written: Expr
    before: str
    after: str

    @staticmethod
    def of(building: Building, func: FuncRecord, number: int) -> "_Writes":
        definition = func.definitions[number]
        region = building.regions[func.name]
        space = space_of(definition, region)
        taken = building.taken | {axis.name for axis in space}
        target = tuple(
            Axis(f"at_{k}" if f"at_{k}" not in taken else building.name(f"at_{k}"), a.first, a.last)
            for k, a in enumerate(region)
        )
        inverse = invert(definition.indices, space, target, building.name)
        if inverse.sums or inverse.kept:
            raise _no_gradient(func, definition)
        where = [] if definition.domain is None else [definition.domain.where]
        conditions = [
            *inverse.conditions,
            *(substitute(w, inverse.values) for w in where if w is not None),
        ]
        return _Writes(
            func,
            definition,
            space,
            facts_of(space),
            target,
            inverse.values,
            simplify(all_of(conditions), facts_of(target)),
            building.version(func, number - 1),
            building.version(func, number),
        )

    @property
    def condition(self) -> tuple[Expr, ...]:
        """That a point of the space is one of the update."""
        domain = self.definition.domain
        return () if domain is None or domain.where is None else (domain.where,)

    def at(self, indices: Iterable[Expr]) -> Expr:
        """Whether the update writes the element."""
        return substitute(self.written, self._names(indices))

    def _names(self, indices: Iterable[Expr]) -> dict[str, Expr]:
        return {axis.name: e for axis, e in zip(self.target, indices, strict=True)}

    def new(self, load: Load) -> Expr:
        """Whether a read sees the value that the update gives, or one that it never changes."""
        return simplify(Unary("not", self.old(load)), self.facts)

    def old(self, load: Load) -> Expr:
        """Whether a read sees the value before the update, of an element that it writes."""
        names = self._names(load.indices)
        earlier: Expr = FALSE
        domain = self.definition.domain
        for name in reversed(domain.names if domain else ()):
            there, here = substitute(self.writer[name], names), Var(name)
            earlier = (there < here) | (Compare("eq", there, here) & earlier)
        return simplify(self.at(load.indices) & Unary("not", earlier), self.facts)

    def resolved(self, part: Guarded) -> Guarded:
        """The part with every read of the Func as one of the version that it sees."""

        def rule(e: Expr) -> Expr:
            if not (isinstance(e, Load) and e.buffer == self.func.name):
                return e
            old, new = (
                Load(name, e.indices, e.component, e.dtype) for name in (self.before, self.after)
            )
            seen = self.old(e)
            return old if seen is TRUE else new if seen is FALSE else Select(seen, old, new)

        guards = tuple(rewrite(g, rule) for g in part.guards)
        return Guarded(guards, rewrite(part.value, rule))


@dataclass(frozen=True, slots=True, eq=False)
class _Tracks:
    """The adjoints of the values that the update gives, and of what it reads."""

    building: Building
    func: FuncRecord
    number: int
    adjoint: Adjoint
    writes: _Writes

    def parts(self, through: Adjoint) -> dict[Load | Param, Guarded]:
        """The adjoints of all that the update reads, from those of what it writes."""
        definition = self.writes.definition
        roots = [
            (definition.values[c], Guarded((), through.at(c, definition.indices)))
            for c in through.sources
        ]
        return adjoints_of(roots, self.building.wanted | {self.func.name})

    def through(self) -> Adjoint:
        """The adjoint of each element as the update leaves it: with what later points add."""
        definition, name = self.writes.definition, self.func.name
        loads = [e for e in loads_of(*definition.values) if e.buffer == name]
        if all(self.writes.new(e) is FALSE for e in loads if e.dtype.is_float):
            return self.adjoint
        backwards = self._backwards()
        if backwards is not None:
            return backwards
        components = [c for c, dtype in enumerate(self.func.dtypes) if dtype.is_float]
        dtypes = [adjoint_dtype(self.func.dtypes[c]) for c in components]
        made = self.building.name(f"grad_{name}")
        through = Adjoint({c: (made, k, dtypes[k]) for k, c in enumerate(components)})
        steps: dict[tuple[Expr, ...], dict[int, Guarded]] = {}
        for leaf, unresolved in self.parts(through).items():
            if isinstance(leaf, Load) and leaf.buffer == name:
                new = self.writes.new(leaf)
                if new is not FALSE:
                    part = self.writes.resolved(unresolved)
                    guards = part.guards if new is TRUE else (new, *part.guards)
                    steps.setdefault(leaf.indices, {})[leaf.component] = Guarded(guards, part.value)
        if not steps:
            return self.adjoint
        definitions = (self._start(through, len(steps) > 1), self._steps(through, steps))
        record = FuncRecord(made, self.func.dims, tuple(dtypes), definitions, span=self.func.span)
        self.building.add(record)
        return through

    def _backwards(self) -> Adjoint | None:
        """Of a running sum the same from the last point to the first; None of anything else.

        t[x, r] = select(r is last, adjoint[x, r], t[x, r + 1] + adjoint[x, r])
        """
        definition, func = self.writes.definition, self.func
        domain = definition.domain
        if domain is None or domain.where is not None or len(domain.dims) != 1:
            return None
        ((name, first, _),) = domain.dims
        scan = scan_along(func.name, definition.indices, definition.values, name, first)
        if scan is None or scan.operator != "add" or scan.begins is None:
            return None
        made, dtype = self.building.name(f"grad_{func.name}"), adjoint_dtype(func.dtypes[0])
        dims, back, inside = _reversed(definition, self.writes.space)
        if inside:
            return None
        at, after = (
            tuple(simplify(substitute(e, {name: back[name] + k})) for e in definition.indices)
            for k in (0, 1)
        )
        term = self.adjoint.at(0, at)
        value = Select(scan.begins, term, Load(made, after, 0, dtype) + term)
        through = Adjoint({0: (made, 0, dtype)})
        update = Definition(at, (value,), definition.pure, Domain(name, dims), span=definition.span)
        region = vars_of(self.building.regions[func.name])
        start = self._start(through, masked=False)
        if simplify(self.writes.at(region), facts_of(self.building.regions[func.name])) is TRUE:
            start = Definition(region, (Const(0.0, dtype),), func.dims, span=definition.span)
        self.building.add(FuncRecord(made, func.dims, (dtype,), (start, update), span=func.span))
        return through

    def _start(self, through: Adjoint, masked: bool) -> Definition:
        """The adjoint of the final value; `masked`: 0 outside the region, where a step may look."""
        region = self.building.regions[self.func.name]
        at = vars_of(region)
        moving = [a for a, v in zip(region, self.writes.definition.pure, strict=True) if v is None]
        inside = [c for a in moving for c in (a.first <= Var(a.name), Var(a.name) <= a.last)]
        guards = tuple(inside) if masked else ()
        values = tuple(
            whole(Guarded(guards, self.adjoint.at(c, at)))
            if c in self.adjoint.sources
            else Const(0.0, dtype)
            for c, (_, _, dtype) in through.sources.items()
        )
        return Definition(at, values, self.func.dims, span=self.writes.definition.span)

    def _steps(
        self, through: Adjoint, steps: Mapping[tuple[Expr, ...], Mapping[int, Guarded]]
    ) -> Definition:
        """One update in reverse order; with several elements to add to, these are innermost."""
        definition = self.writes.definition
        dims, back, inside = _reversed(definition, self.writes.space)
        choice = self.building.name("step")
        if len(steps) > 1:
            dims = (*dims, (choice, ZERO, Const(len(steps), index)))
        tests = [Compare("eq", Var(choice), Const(k, index)) for k in range(len(steps) - 1)]

        def chosen(values: Iterable[Expr]) -> Expr:
            *others, last = (simplify(substitute(e, back)) for e in values)
            if all(e is last for e in others):
                return last
            return reduce(
                lambda e, pair: Select(pair[0], pair[1], e),
                reversed(list(zip(tests, others, strict=True))),
                last,
            )

        indices = tuple(chosen(at[d] for at in steps) for d in range(len(self.func.dims)))
        values: list[Expr] = []
        for c, (name, k, dtype) in through.sources.items():
            zero = Guarded((), Const(0.0, dtype))
            added = chosen(whole(parts.get(c, zero)) for parts in steps.values())
            current = Load(name, indices, k, dtype)
            values.append(current if added is zero.value else current + added)
        where = [substitute(c, back) for c in self.writes.condition] + inside
        if len(steps) == 1:
            ((guards),) = (
                {g: None for part in parts.values() for g in part.guards}
                for parts in steps.values()
            )
            if len(next(iter(steps.values()))) == 1:
                where += [substitute(g, back) for g in guards if not g.reads]
        domain = None
        if dims:
            name = dims[0][0] if len(dims) == 1 else self.building.name("r")
            domain = Domain(name, dims, all_of(where) if where else None)
        return Definition(indices, tuple(values), definition.pure, domain, span=definition.span)


def _reversed(
    definition: Definition, space: tuple[Axis, ...]
) -> tuple[tuple[tuple[str, Expr, Expr], ...], dict[str, Expr], list[Expr]]:
    """The dimensions of the domain, each name counted backwards, and what keeps to true bounds."""
    names = definition.domain.names if definition.domain else ()
    axes = [axis for axis in space if axis.name in names]
    ranges = {a.name: Interval(a.first, a.last) for a in space}
    dims: list[tuple[str, Expr, Expr]] = []
    back: dict[str, Expr] = {}
    inside: list[Expr] = []
    for axis in axes:
        first, last = bounds_of(axis.first, ranges).lo, bounds_of(axis.last, ranges).hi
        assert first is not None
        assert last is not None
        dims.append((axis.name, first, Axis(axis.name, first, last).extent))
        back[axis.name] = simplify(first + last - Var(axis.name))
        if first is not simplify(axis.first) or last is not simplify(axis.last):
            inside += (axis.first <= Var(axis.name), Var(axis.name) <= axis.last)
    return tuple(dims), back, [substitute(c, back) for c in inside]


def _no_gradient(func: FuncRecord, definition: Definition) -> DefinitionError:
    term = ", ".join(print_expr(v) for v in definition.values)
    at = ", ".join(print_expr(e) for e in definition.indices)
    return DefinitionError(
        "no-gradient",
        f"the update {func.name}[{at}] = {term} has no gradient",
        why=f"it may write an element of {func.name!r} several times, and what stood there before "
        "is not kept",
        fix="an update that adds, multiplies, or takes min or max of terms free of "
        f"{func.name!r}; or one that writes each element once, such as a scan f[r] = ... f[r - 1]",
        span=definition.span,
    )
