"""From contributions to the definitions of an adjoint.

    for every point:  adjoint[indices(point)] += value(point)        what a definition hands on

becomes, where the index map inverts, a gather, and else a scatter:

    adjoint[t]  = ... + value(point(t))                              one point touches an element
    adjoint[t] += value(point(t, k))      over k                     several do
    adjoint[clamp(x, 0, n), t] += value(x, t)   over x               an index that does not invert
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.algorithm import Definition, Domain
from tensorlang.autodiff.inversion import invert
from tensorlang.autodiff.space import Axis, facts_of
from tensorlang.autodiff.sweep import FALSE, TRUE, Guarded, whole
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Compare, Expr, Load, Var
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.interval import Interval, bounds_of
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, substitute
from tensorlang.span import Span

Fresh = Callable[[str], str]


@dataclass(frozen=True, slots=True, eq=False)
class Contribution:
    """adjoint[indices], component `component`, gets `part` from every point of `space`."""

    space: tuple[Axis, ...]
    indices: tuple[Expr, ...]
    component: int
    part: Guarded
    span: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """adjoint[t] gets `part`, from the one point that touches it."""

    component: int
    part: Guarded


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """adjoint[indices] += value, over a domain; `pure` names the indices that are t itself."""

    component: int
    value: Expr
    indices: tuple[Expr, ...]
    pure: tuple[str | None, ...]
    domain: Domain
    span: Span | None

    @property
    def scatters(self) -> bool:
        return None in self.pure

    def definition(self, name: str, current: Sequence[Load], position: int) -> Definition:
        """The update of the Func `name` whose components are `current`, at its own indices."""
        here = [Load(name, self.indices, load.component, load.dtype) for load in current]
        values: list[Expr] = [*here]
        values[position] = here[position] + self.value
        return Definition(self.indices, tuple(values), self.pure, self.domain, span=self.span)


def place(
    contribution: Contribution,
    target: tuple[Axis, ...],
    reserved: frozenset[str],
    inputs: Mapping[str, tuple[Axis, ...]],
) -> Gather | Update | None:
    """The contribution as a term or an update of the adjoint over `target`; None: it is 0.

    Args:
        reserved: names that no loop may have.
        inputs: the arrays of which data may say over what range a sum is, with their regions.
    """
    taken = set(reserved) | {axis.name for axis in target}

    def fresh(base: str) -> str:
        name = fresh_name(base, taken)
        taken.add(name)
        return name

    moved = _renamed(contribution, fresh)
    inverse = invert(moved.indices, moved.space, target, fresh)
    values = {axis.name: inverse.values[axis.name] for axis in moved.space}
    guards = tuple(substitute(g, values) for g in moved.part.guards)
    value = substitute(moved.part.value, values)
    sums, extra = _boxed(inverse.sums, target)
    gathered = [axis for d, axis in enumerate(target) if d not in inverse.kept]
    facts = facts_of((*sums, *gathered))
    guards = tuple(c for g in guards for c in _apart(g, inputs.keys()))
    conditions, facts = _needed((*inverse.conditions, *extra, *guards), facts)
    if FALSE in set(conditions):
        return None
    value = simplify(value, facts)
    if not sums and not inverse.kept:
        return Gather(moved.component, Guarded(tuple(conditions), value))
    axes = {axis.name: axis for axis in (*target, *sums)}
    where = [c for c in conditions if is_range(c, inputs.keys()) and _is_safe(c, inputs, axes)]
    inner = tuple(c for c in conditions if c not in set(where))
    name = sums[0].name if len(sums) == 1 else fresh("r")
    domain = Domain(
        name,
        tuple((axis.name, axis.first, axis.extent) for axis in sums),
        where_of(where),
    )
    indices = tuple(inverse.kept.get(d, Var(axis.name)) for d, axis in enumerate(target))
    pure = tuple(None if d in inverse.kept else axis.name for d, axis in enumerate(target))
    term = whole(Guarded(inner, value))
    return Update(moved.component, term, indices, pure, domain, contribution.span)


def where_of(conditions: Sequence[Expr]) -> Expr | None:
    """The predicate of a domain, each part of which is defined by itself."""
    return reduce(lambda a, b: a & b, conditions) if conditions else None


def _is_safe(
    condition: Expr, inputs: Mapping[str, tuple[Axis, ...]], axes: Mapping[str, Axis]
) -> bool:
    """Whether a condition reads nothing outside the Inputs, whatever else holds."""
    return all(
        lies_in(e, axis, axes)
        for load in loads_of(condition)
        for e, axis in zip(load.indices, inputs[load.buffer], strict=True)
    )


def lies_in(e: Expr, region: Axis, axes: Mapping[str, Axis]) -> bool:
    """Whether an index is a loop that stays inside one dimension of a region."""
    if not (isinstance(e, Var) and e.name in axes):
        return False
    axis, facts = axes[e.name], facts_of(())
    return prove_le(region.first, axis.first, facts) and prove_le(axis.last, region.last, facts)


def is_range(condition: Expr, inputs: Collection[str]) -> bool:
    """Whether it reads nothing, or only what an index is compared with, in Inputs."""
    if not condition.reads:
        return True
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return False
    return condition.a.dtype is index and condition.reads <= set(inputs)


def _apart(guard: Expr, inputs: Collection[str]) -> Sequence[Expr]:
    """The conjuncts of a guard, where none may be what keeps the reads of another inside."""
    parts = tuple(conjuncts_of(guard))
    return parts if all(is_range(c, inputs) for c in parts) else (guard,)


def fresh_name(base: str, taken: Iterable[str]) -> str:
    """`base`, or `base_1`, `base_2` ... where that is taken."""
    known = frozenset(taken)
    name, number = base, 0
    while name in known:
        number += 1
        name = f"{base}_{number}"
    return name


def _renamed(contribution: Contribution, fresh: Fresh) -> Contribution:
    """The contribution over axes whose names nothing else has."""
    names: dict[str, Expr] = {axis.name: Var(fresh(axis.name)) for axis in contribution.space}
    space = tuple(
        Axis(str(names[a.name]), substitute(a.first, names), substitute(a.last, names))
        for a in contribution.space
    )
    part = Guarded(
        tuple(substitute(g, names) for g in contribution.part.guards),
        substitute(contribution.part.value, names),
    )
    indices = tuple(substitute(e, names) for e in contribution.indices)
    return replace(contribution, space=space, indices=indices, part=part)


def _boxed(
    sums: tuple[Axis, ...], target: tuple[Axis, ...]
) -> tuple[tuple[Axis, ...], tuple[Expr, ...]]:
    """The axes with bounds that no variable is in, and what then keeps to the true bounds."""
    ranges = {a.name: Interval(a.first, a.last) for a in (*target, *sums)}
    boxed: list[Axis] = []
    conditions: list[Expr] = []
    for axis in sums:
        if ranges.keys().isdisjoint(axis.first.free | axis.last.free):
            boxed.append(axis)
            continue
        first, last = bounds_of(axis.first, ranges).lo, bounds_of(axis.last, ranges).hi
        assert first is not None
        assert last is not None
        boxed.append(Axis(axis.name, first, last))
        conditions += (axis.first <= Var(axis.name), Var(axis.name) <= axis.last)
    return tuple(boxed), tuple(conditions)


def _needed(conditions: Iterable[Expr], facts: Facts) -> tuple[list[Expr], Facts]:
    """The conditions that the others and `facts` do not imply, and what then holds."""
    kept: list[Expr] = []
    there = facts
    for condition in conditions:
        plain = simplify(condition, there)
        if plain is not TRUE:
            kept.append(plain)
            there = there.assume(plain)
    # A condition may also follow from later ones, if it does not keep them defined.
    for condition in [c for c in kept if not c.reads]:
        others = [c for c in kept if c is not condition]
        if simplify(condition, _assuming(facts, others)) is TRUE:
            kept = others
    return kept, there


def _assuming(facts: Facts, conditions: Iterable[Expr]) -> Facts:
    for condition in conditions:
        facts = facts if condition.reads else facts.assume(condition)
    return facts
