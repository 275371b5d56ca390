"""The Funcs of a gradient while it is made: versions of forward Funcs, and adjoints."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from tensorlang.algorithm import Algorithm, Definition, FuncRecord
from tensorlang.autodiff.derivatives import adjoint_dtype
from tensorlang.autodiff.placing import Contribution, Gather, Update, fresh_name, place
from tensorlang.autodiff.renaming import renamed_reads
from tensorlang.autodiff.space import Axis, vars_of
from tensorlang.autodiff.support import is_safe, support_of, without
from tensorlang.autodiff.sweep import FALSE, TRUE, Guarded, adjoints_of, all_of, whole
from tensorlang.ir.expr import Const, Expr, Load, cast
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import DType
from tensorlang.ir.walk import substitute
from tensorlang.span import Span


@dataclass(frozen=True, slots=True, eq=False)
class Adjoint:
    """Where the adjoint of each component is read: a buffer, a component of it, its dtype.

    Args: support: conditions on `dims`; where one does not hold, the adjoint is 0, whatever the
        buffer has there.
    """

    sources: Mapping[int, tuple[str, int, DType]]
    dims: tuple[str, ...] = ()
    support: tuple[Expr, ...] = ()

    def at(self, component: int, indices: Sequence[Expr]) -> Expr:
        """The adjoint of an element."""
        return whole(self.bar(component, indices))

    def bar(self, component: int, indices: Sequence[Expr]) -> Guarded:
        """The adjoint of an element, where it is not 0."""
        buffer, part, dtype = self.sources[component]
        value = cast(adjoint_dtype(dtype), Load(buffer, tuple(indices), part, dtype))
        here = dict(zip(self.dims, indices, strict=False))
        return Guarded(tuple(substitute(c, here) for c in self.support), value)


@dataclass(slots=True, eq=False)
class Building:
    """What is made so far.

    Args:
        wanted: the Funcs, Inputs and Params whose adjoints are needed.
        kept_in: the dtype in which the adjoint of a Func is kept, where it is not its own.
    """

    algorithm: Algorithm
    regions: dict[str, tuple[Axis, ...]]
    wanted: frozenset[str]
    kept_in: Mapping[str, DType]
    taken: set[str]
    records: dict[str, FuncRecord] = field(default_factory=dict[str, FuncRecord])
    versions: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    contributions: dict[str, list[Contribution]] = field(
        default_factory=dict[str, list[Contribution]]
    )

    def name(self, base: str) -> str:
        """A name that nothing else has."""
        name = fresh_name(base, self.taken)
        self.taken.add(name)
        return name

    def add(self, record: FuncRecord) -> None:
        self.records[record.name] = record

    def version(self, func: FuncRecord, number: int) -> str:
        """The Func that has the values of `func` after its definition `number`."""
        if number == len(func.definitions) - 1:
            return func.name
        key = func.name, number
        if key not in self.versions:
            name = self.versions[key] = self.name(f"{func.name}_after_{number}")
            definitions = func.definitions[: number + 1]
            definitions = tuple(renamed_reads(d, {func.name: name}) for d in definitions)
            self.add(replace(func, name=name, definitions=definitions, home=None))
        return self.versions[key]

    def hand_on(
        self,
        roots: Iterable[tuple[Expr, Guarded]],
        space: tuple[Axis, ...],
        condition: Expr | None,
        span: Span | None,
    ) -> None:
        """Contribute to all that the roots read, at every point of `space` where `condition`."""
        for leaf, part in adjoints_of(roots, self.wanted).items():
            self.contribute(leaf, part, space, condition, span)

    def contribute(
        self,
        leaf: Expr,
        part: Guarded,
        space: tuple[Axis, ...],
        condition: Expr | None,
        span: Span | None,
    ) -> None:
        """Contribute to a Load or a Param."""
        if condition is not None:
            part = Guarded((condition, *part.guards), part.value)
        name, indices, component = str(leaf), (), 0
        if isinstance(leaf, Load):
            name, indices, component = leaf.buffer, leaf.indices, leaf.component
        made = Contribution(space, indices, component, part, span)
        self.contributions.setdefault(name, []).append(made)

    def adjoint(
        self,
        name: str,
        target: tuple[Axis, ...],
        dtypes: Sequence[DType],
        contributions: Sequence[Contribution],
        keep: DType | None,
        span: Span | None,
        *,
        is_whole: bool = True,
    ) -> Adjoint:
        """The Func `name` over `target` that sums the contributions.

        Args:
            dtypes: of the components of what this is the adjoint of.
            keep: the dtype of the Func, where it is narrower than that of the sum.
            is_whole: whether it is read as it is, also where it is 0.
        """
        components = sorted({c.component for c in contributions})
        inputs = {array.name: self.regions[array.name] for array in self.algorithm.inputs}
        found = (place(c, target, frozenset(self.taken), inputs) for c in contributions)
        placed = [p for p in found if p is not None]
        support = () if is_whole else support_of(placed, target, inputs.keys())
        if support and is_safe(placed, support, target, self.regions):
            placed = [without(p, support) for p in placed]
        self.regions[name] = target
        gathers = [p for p in placed if isinstance(p, Gather)]
        updates = [p for p in placed if isinstance(p, Update)]
        wide = tuple(adjoint_dtype(dtypes[c]) for c in components)
        narrow = wide if keep is None else tuple(keep for _ in components)
        sums = tuple(
            _total((g.part for g in gathers if g.component == c), dtype)
            for c, dtype in zip(components, wide, strict=True)
        )
        indices, dims = vars_of(target), tuple(axis.name for axis in target)
        if narrow == wide or not updates:
            values = tuple(cast(t, e) for t, e in zip(narrow, sums, strict=True))
            definitions = (Definition(indices, values, dims, span=span),)
            definitions += tuple(_updates(name, wide, updates, components))
            self.add(FuncRecord(name, dims, narrow, definitions, span=span))
        else:
            inner = self.name(f"{name}_sum")
            home = None if any(u.scatters for u in updates) else name
            definitions = (Definition(indices, sums, dims, span=span),)
            definitions += tuple(_updates(inner, wide, updates, components))
            self.add(FuncRecord(inner, dims, wide, definitions, home, span=span))
            loads = (Load(inner, indices, k, t) for k, t in enumerate(wide))
            values = tuple(cast(t, e) for t, e in zip(narrow, loads, strict=True))
            rounded = (Definition(indices, values, dims, span=span),)
            self.add(FuncRecord(name, dims, narrow, rounded, span=span))
        return Adjoint({c: (name, k, narrow[k]) for k, c in enumerate(components)}, dims, support)


def _total(parts: Iterable[Guarded], dtype: DType) -> Expr:
    """The sum; of one value under two conditions that cover everything, it is that value."""
    terms: list[Guarded] = []
    for part in parts:
        for k, other in enumerate(terms):
            if other.value is part.value and _complement(other, part):
                terms[k] = Guarded((), part.value)
                break
        else:
            terms.append(part)
    return reduce(lambda a, b: a + b, map(whole, terms)) if terms else Const(0.0, dtype)


def _complement(a: Guarded, b: Guarded) -> bool:
    """Whether the conditions of just one of two hold, always."""
    first, second = all_of(a.guards), all_of(b.guards)
    return simplify(first | second) is TRUE and simplify(first & second) is FALSE


def _updates(
    name: str, dtypes: tuple[DType, ...], updates: Iterable[Update], components: Sequence[int]
) -> Iterable[Definition]:
    for update in updates:
        current = [Load(name, update.indices, k, t) for k, t in enumerate(dtypes)]
        yield update.definition(name, current, components.index(update.component))
