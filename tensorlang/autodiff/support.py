"""Where an adjoint can be other than 0: only there is it handed on, and need it be formed.

    grad_f[i, j] = select(j <= i, e, 0)      ->  grad_f[i, j] = e,  read where j <= i alone
    grad_f[i, j] += t over k where j <= i    ->  grad_f[i, j] += t over k

What a definition reads of f at j <= i says nothing of other elements, so that no term of theirs
belongs to any sum: not even 0 times what may be infinite there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce

from tensorlang.autodiff.placing import Gather, Update, is_range, lies_in, where_of
from tensorlang.autodiff.space import Axis
from tensorlang.autodiff.sweep import Guarded
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Expr
from tensorlang.ir.walk import loads_of

Regions = Mapping[str, tuple[Axis, ...]]


def support_of(
    parts: Sequence[Gather | Update], target: tuple[Axis, ...], inputs: Collection[str]
) -> tuple[Expr, ...]:
    """The conditions on an element of `target` that all the parts have.

    Of those that read `inputs`, ranges of an index alone: what else data says, such as the sign of
    an activation, is cheaper where it is found than wherever the adjoint is read.
    """
    names = {axis.name for axis in target}
    found = [_conditions_of(part) for part in parts]
    if not found:
        return ()
    common = reduce(lambda a, b: a & b, (frozenset(own) for own in found))
    loops = frozenset(name for part in parts for name in _loops_of(part))
    return tuple(
        c for c in dict.fromkeys(found[0])
        if c in common and is_range(c, inputs)
        and loops.isdisjoint(c.free) and not names.isdisjoint(c.free)
    )  # fmt: skip


def is_safe(
    parts: Iterable[Gather | Update],
    support: Sequence[Expr],
    target: tuple[Axis, ...],
    regions: Regions,
) -> bool:
    """Whether the parts read nothing outside the regions of what they read, also elsewhere."""
    varying = frozenset[str]().union(*(c.free for c in support))
    for part in parts:
        axes = {axis.name: axis for axis in (*target, *_axes_of(part))}
        for load in loads_of(*_exprs_of(part)):
            region = regions.get(load.buffer)
            if region is None or not all(
                varying.isdisjoint(e.free) or lies_in(e, axis, axes)
                for e, axis in zip(load.indices, region, strict=True)
            ):
                return False
    return True


def without(part: Gather | Update, support: Iterable[Expr]) -> Gather | Update:
    """The part where these conditions hold."""
    known = frozenset(support)
    kept = [c for c in _conditions_of(part) if c not in known]
    if isinstance(part, Gather):
        return replace(part, part=Guarded(tuple(kept), part.part.value))
    return replace(part, domain=replace(part.domain, where=where_of(kept)))


def _conditions_of(part: Gather | Update) -> Sequence[Expr]:
    if isinstance(part, Gather):
        return part.part.guards
    where = part.domain.where
    return () if where is None or part.scatters else tuple(conjuncts_of(where))


def _loops_of(part: Gather | Update) -> Iterable[str]:
    return () if isinstance(part, Gather) else part.domain.names


def _axes_of(part: Gather | Update) -> Iterable[Axis]:
    if isinstance(part, Gather):
        return ()
    return (Axis(name, low, low + n - 1) for name, low, n in part.domain.dims)


def _exprs_of(part: Gather | Update) -> tuple[Expr, ...]:
    if isinstance(part, Gather):
        return (part.part.value, *part.part.guards)
    where = part.domain.where
    return (part.value, *part.indices, *(() if where is None else (where,)))
