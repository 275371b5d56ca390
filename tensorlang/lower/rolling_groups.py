"""The groups of reductions that rolling_update runs in one pass, before anything is lowered."""

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.directives.rolling_group import members_of, producers_of, same_domain
from tensorlang.errors import ScheduleError
from tensorlang.lower.plan import Group, Placement, Rolling


def find_groups(algorithm: Algorithm, rolling: tuple[Rolling, ...]) -> tuple[Group, ...]:
    """Every reduction over the domain of the rolled Func that reads it, also through others.

    Raises: ScheduleError: domains-differ, other-consumer.
    """
    return tuple(_group(algorithm, r) for r in rolling)


def _group(algorithm: Algorithm, rolling: Rolling) -> Group:
    rolled, anchor = algorithm.func(rolling.func), algorithm.func(rolling.into)
    if not same_domain(rolled, anchor):
        raise ScheduleError(
            "domains-differ",
            f"cannot roll {rolled.name!r} into {anchor.name!r}",
            why="the two do not reduce over the same points (min, extent and where)",
            fix="give both updates a domain of one dimension with the same range and predicate",
            span=rolling.span,
        )
    members = members_of(algorithm, rolled, anchor)
    if anchor.name not in members:
        raise ScheduleError(
            "not-a-consumer",
            f"cannot roll {rolled.name!r} into {anchor.name!r}, which does not read it",
            why="a group is made of reductions that need the rolled Func",
            fix="name a reduction whose terms read it",
            span=rolling.span,
        )
    return Group(rolling, members)


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
    producers = producers_of(algorithm)
    names = [f.name for f in algorithm.funcs]
    at = names.index(group.anchor)
    wanted = frozenset(group.members).union(*(producers[m] for m in group.members))
    early = [f for f in algorithm.funcs[at + 1 :] if f.name in wanted]
    late = [f for f in algorithm.funcs[at + 1 :] if f.name not in wanted]
    return (*algorithm.funcs[:at], *early, algorithm.funcs[at], *late)
