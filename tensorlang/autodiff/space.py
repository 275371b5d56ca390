"""The points at which a definition runs, and the regions of Funcs that they lie in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tensorlang.algorithm import Algorithm, Definition
from tensorlang.ir.accesses import REGION_PARTS
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Let, walk
from tensorlang.ir.types import index
from tensorlang.lower.check_inputs import default_program

ZERO, ONE = Const(0, index), Const(1, index)


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """first <= name <= last."""

    name: str
    first: Expr
    last: Expr

    @property
    def extent(self) -> Expr:
        return simplify(self.last - self.first + ONE)


def regions_of(algorithm: Algorithm) -> Mapping[str, tuple[Axis, ...]]:
    """The box of each Func and Input that the outputs need, in terms of Sizes and Params."""
    body = default_program(algorithm).body
    values = {s.var: s.value for s in walk(body) if isinstance(s, Let)}
    first, last = REGION_PARTS[2:]
    regions = {a.name: box(a.shape) for a in algorithm.inputs}
    for func in algorithm.funcs:
        regions[func.name] = tuple(
            Axis(d, values[f"{func.name}.{d}.{first}"], values[f"{func.name}.{d}.{last}"])
            for d in func.dims
        )
    return regions


def box(shape: Iterable[Expr]) -> tuple[Axis, ...]:
    """The points of an array."""
    return tuple(Axis(f"_{k}", ZERO, simplify(n - ONE)) for k, n in enumerate(shape))


def space_of(definition: Definition, region: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The loops of a definition of a Func over its region: pure Vars, then those of the domain."""
    pure = tuple(
        Axis(name, axis.first, axis.last)
        for name, axis in zip(definition.pure, region, strict=True)
        if name is not None
    )
    if definition.domain is None:
        return pure
    dims = definition.domain.dims
    return pure + tuple(Axis(name, low, simplify(low + n - ONE)) for name, low, n in dims)


def facts_of(axes: Iterable[Axis], facts: Facts = Facts.none) -> Facts:
    """What is known of points of the axes."""
    for axis in axes:
        facts = facts.with_range(axis.name, axis.first, axis.extent)
    return facts


def vars_of(axes: Iterable[Axis]) -> tuple[Var, ...]:
    """The axes as variables."""
    return tuple(Var(axis.name) for axis in axes)
