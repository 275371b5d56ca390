"""Which part of a Func one point of another reads, as far as it follows that point.

out[y, x] = f[y - 1, x] + f[y + 1, x + 2]      f is reached at (y + [-1, 1], x + [0, 2])
t[i] = sum(f[i, k], over=k)                    f is reached at (i, anywhere)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.algorithm import Definition, FuncRecord, exprs_of_definition
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.linear import to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.walk import loads_of


@dataclass(frozen=True, slots=True)
class Follows:
    """An index that is dimension `dim` of the reader, plus `first` to `last`."""

    dim: int
    first: int = 0
    last: int = 0

    @property
    def spread(self) -> int:
        return self.last - self.first


# An index of each dimension of the Func that is read; None may be anywhere in the dimension.
Reach: TypeAlias = tuple[Follows | None, ...]


def reach_of(reader: FuncRecord, name: str) -> Reach | None:
    """What one point of `reader` reads of `name`; None when it reads nothing."""
    found: Reach | None = None
    for definition in reader.definitions:
        for load in loads_of(*exprs_of_definition(definition)):
            if load.buffer == name:
                here = tuple(_index(e, definition) for e in load.indices)
                found = here if found is None else union(found, here)
    return found


def union(a: Reach, b: Reach) -> Reach:
    """The smallest reach over both."""
    return tuple(_either(x, y) for x, y in zip(a, b, strict=True))


def through(inner: Reach, outer: Reach) -> Reach:
    """What the reader of a reader reaches: `inner` from the points that `outer` reaches."""
    return tuple(_followed(x, outer) for x in inner)


def _either(a: Follows | None, b: Follows | None) -> Follows | None:
    if a is None or b is None or a.dim != b.dim:
        return None
    return Follows(a.dim, min(a.first, b.first), max(a.last, b.last))


def _followed(x: Follows | None, outer: Reach) -> Follows | None:
    at = None if x is None else outer[x.dim]
    if x is None or at is None:
        return None
    return Follows(at.dim, x.first + at.first, x.last + at.last)


def _index(e: Expr, definition: Definition) -> Follows | None:
    """An index that is one pure Var, a constant, and reductions of constant range."""
    form = to_linear(simplify(e))
    points = _constant_ranges(definition)
    dim: int | None = None
    first = last = form.constant
    for term, coefficient in form.terms.items():
        name = term.name if isinstance(term, Var) else None
        if name in points:
            ends = [coefficient * end for end in points[name]]
            first, last = first + min(ends), last + max(ends)
        elif name in definition.pure and coefficient == 1 and dim is None:
            dim = definition.pure.index(name)
        else:
            return None
    return None if dim is None else Follows(dim, first, last)


def _constant_ranges(definition: Definition) -> Mapping[str | None, Sequence[int]]:
    """First and last value of each reduction variable whose range is constant and not empty."""
    found: dict[str | None, Sequence[int]] = {}
    for name, low, extent in definition.domain.dims if definition.domain else ():
        if isinstance(low, Const) and isinstance(extent, Const) and int(extent.value) > 0:
            found[name] = (int(low.value), int(low.value) + int(extent.value) - 1)
    return found
