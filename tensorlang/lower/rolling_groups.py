"""The groups of reductions that rolling_update runs in one pass, before anything is lowered."""

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.algorithm import Algorithm, Domain, FuncRecord, reads_of
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.walk import substitute
from tensorlang.lower.plan import Group, Placement, Rolling


def find_groups(algorithm: Algorithm, rolling: tuple[Rolling, ...]) -> tuple[Group, ...]:
    """Every reduction over the domain of the rolled Func that reads it, also through others.

    Raises: ScheduleError: domains-differ, other-consumer.
    """
    return tuple(_group(algorithm, r) for r in rolling)


def _group(algorithm: Algorithm, rolling: Rolling) -> Group:
    rolled, anchor = algorithm.func(rolling.func), algorithm.func(rolling.into)
    if not _same_domain(rolled, anchor):
        raise ScheduleError(
            "domains-differ",
            f"cannot roll {rolled.name!r} into {anchor.name!r}",
            why="the two do not reduce over the same points (min, extent and where)",
            fix="give both updates a domain of one dimension with the same range and predicate",
            span=rolling.span,
        )
    producers = _producers(algorithm)
    members = [
        f.name
        for f in algorithm.funcs
        if f.name == rolled.name
        or (
            rolled.name in producers[f.name]
            and _same_domain(rolled, f)
            and anchor.name not in producers[f.name]
        )
    ]
    if anchor.name not in members:
        raise ScheduleError(
            "not-a-consumer",
            f"cannot roll {rolled.name!r} into {anchor.name!r}, which does not read it",
            why="a group is made of reductions that need the rolled Func",
            fix="name a reduction whose terms read it",
            span=rolling.span,
        )
    return Group(rolling, tuple(members))


def _producers(algorithm: Algorithm) -> Mapping[str, frozenset[str]]:
    """Everything that each Func needs, itself left out."""
    found: dict[str, frozenset[str]] = {}
    for f in algorithm.funcs:
        direct = reads_of(f) - {f.name}
        found[f.name] = direct.union(*(found.get(name, frozenset[str]()) for name in direct))
    return found


def _same_domain(a: FuncRecord, b: FuncRecord) -> bool:
    """Whether the one update of each runs over one dimension with the same points."""
    if len(a.definitions) != 2 or len(b.definitions) != 2:
        return False
    first, second = a.definitions[1].domain, b.definitions[1].domain
    if first is None or second is None or len(first.dims) != 1 or len(second.dims) != 1:
        return False
    (_, low, extent), (_, other_low, other_extent) = first.dims[0], second.dims[0]
    return low is other_low and extent is other_extent and _where(first) is _where(second)


def _where(domain: Domain) -> Expr | None:
    """The predicate over one name for the variable, so that two of them can be one object."""
    if domain.where is None:
        return None
    return substitute(domain.where, {domain.names[0]: Var("_point")})


def arrange(
    algorithm: Algorithm, groups: tuple[Group, ...], placements: Mapping[str, Placement]
) -> tuple[Algorithm, Mapping[str, Placement]]:
    """Members come before their anchor, and are computed where it is."""
    placed = dict(placements)
    for group in groups:
        algorithm = replace(algorithm, funcs=_members_first(algorithm, group))
        for name in group.members:
            placed[name] = placed[group.anchor]
    return algorithm, placed


def _members_first(algorithm: Algorithm, group: Group) -> tuple[FuncRecord, ...]:
    producers = _producers(algorithm)
    names = [f.name for f in algorithm.funcs]
    at = names.index(group.anchor)
    wanted = frozenset(group.members).union(*(producers[m] for m in group.members))
    early = [f for f in algorithm.funcs[at + 1 :] if f.name in wanted]
    late = [f for f in algorithm.funcs[at + 1 :] if f.name not in wanted]
    return (*algorithm.funcs[:at], *early, algorithm.funcs[at], *late)
