"""Which iterations of an update touch one element, and so have to keep their order.

A dependence is a vector with one entry for each variable of the domain: the distance between the
two iterations along it, or None where every distance occurs.  Two iterations that agree on all pure
Vars conflict when both touch an element of the Func and one of them stores it:

    f[x, r] = f[x, r - 1] + g[r]                 (1)        r and r + 1 conflict
    f[r0, r1] = f[r0 - 1, r1] + ...              (1, 0)     only r0 carries it
    C[i, j] = C[i, j] + A[i, k] * B[k, j]        (None)     any two values of k conflict
    f[r] = f[r] * 2                              none       no two iterations touch one element
    hist[h[r]] = hist[h[r]] + 1                  (None)     an index that depends on data

See: Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.expr_text import print_index
from tensorlang.ir.linear import integer, to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.walk import loads_of

Distance: TypeAlias = int | None


@dataclass(frozen=True, slots=True)
class Dependence:
    """The distances between two conflicting iterations, one a variable of the domain, in order."""

    distances: tuple[Distance, ...]

    @property
    def moving(self) -> tuple[int, ...]:
        """The variables along which the two iterations can differ."""
        return tuple(k for k, d in enumerate(self.distances) if d != 0)


def dependences_of(
    func: str, indices: Sequence[Expr], values: Sequence[Expr], variables: Sequence[str]
) -> tuple[Dependence, ...]:
    """Every dependence of an update on itself, each once; the earlier iteration comes first.

    Args:
        indices, values: of the update; variables: of its domain, outermost first.
    """
    stored = tuple(indices)
    touched = {stored: None}
    for load in loads_of(*indices, *values):
        if load.buffer == func:
            touched[load.indices] = None
    found: dict[tuple[Distance, ...], None] = {}
    for other in touched:
        distances = _distances(stored, other, variables)
        if distances is not None and any(d != 0 for d in distances):
            found[_forward(distances)] = None
    return tuple(Dependence(d) for d in found)


def _distances(
    a: Sequence[Expr], b: Sequence[Expr], variables: Sequence[str]
) -> tuple[Distance, ...] | None:
    """How far apart two iterations are that store a and touch b in one element; None: never."""
    known: dict[str, int] = {}
    for x, y in zip(a, b, strict=True):
        step = _step(x, y, variables)
        if step is None:
            continue
        name, distance = step
        if name is None:
            if distance:
                return None
        elif known.setdefault(name, distance) != distance:
            return None
    return tuple(known.get(v) for v in variables)


def _step(x: Expr, y: Expr, variables: Sequence[str]) -> tuple[str | None, int] | None:
    """One index: (variable, distance) it fixes, (None, difference) without one, None: unknown.

    x at one iteration equals y at the other: c*v + a == c*(v + d) + b, so that d == (a - b) / c.
    """
    if x.reads or y.reads:
        return None
    first, second = to_linear(x), to_linear(y)
    names = [v for v in variables if Var(v) in first.terms or Var(v) in second.terms]
    if any(v in atom.free for v in variables for atom in first.terms if not isinstance(atom, Var)):
        return None
    difference = first - second
    if difference.terms or len(names) > 1:
        return None
    if not names:
        return None, difference.constant
    (name,) = names
    coefficient = first.terms[Var(name)]
    if difference.constant % coefficient:
        return None, 1
    return name, difference.constant // coefficient


def _forward(distances: tuple[Distance, ...]) -> tuple[Distance, ...]:
    """The same dependence seen from its earlier iteration.

    Behind an unknown distance a known one may have either sign, so it is unknown as well.
    """
    for k, d in enumerate(distances):
        if d is None:
            return (*distances[:k], *(e if e == 0 else None for e in distances[k:]))
        if d > 0:
            return distances
        if d < 0:
            return tuple(None if e is None else -e for e in distances)
    return distances


def keeps_order(dependence: Dependence, order: Sequence[int]) -> bool:
    """Whether the earlier iteration still comes first when the variables run in `order`.

    With two or more distances that are not known, exchanging those variables exchanges iterations.
    """
    unknown = [k for k in range(len(dependence.distances)) if dependence.distances[k] is None]
    if [k for k in order if k in unknown] != unknown:
        return False
    for k in order:
        distance = dependence.distances[k]
        if distance is None:
            # It decides the order, and it did before, unless a known distance came first then.
            return all(not dependence.distances[e] for e in range(k))
        if distance:
            return distance > 0
    return True


def carried_by(dependence: Dependence, variable: int, outside: Sequence[int]) -> bool:
    """Whether iterations of `variable` that run at once can conflict.

    They cannot where it does not separate the two, or where a serial loop outside always does.
    """
    if dependence.distances[variable] == 0:
        return False
    return not any(dependence.distances[k] not in (0, None) for k in outside)


def witness(
    dependence: Dependence, variables: Sequence[str], starts: Sequence[Expr] | None = None
) -> str:
    """Two iterations that conflict, in words: `r = 0 and r = 1`.

    Args:
        starts: where each variable begins (all at 0, when it is not given).
    """
    pairs = [
        (v, 1 if d is None else d)
        for v, d in zip(variables, dependence.distances, strict=True)
        if d != 0
    ]
    # An unknown distance need not move; the first one that does is enough.
    known = [(v, d) for v, d in pairs if dependence.distances[variables.index(v)] is not None]
    shown = known or pairs[:1]
    begin = dict(zip(variables, starts or [integer(0)] * len(variables), strict=True))
    low = {v: begin[v] + max(0, -d) for v, d in shown}
    first = ", ".join(f"{v} = {print_index(simplify(low[v]))}" for v, _ in shown)
    second = ", ".join(f"{v} = {print_index(simplify(low[v] + d))}" for v, d in shown)
    return f"{first} and {second}"
