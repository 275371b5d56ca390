"""Numbers that several kernels read, such as the level of a norm: each finds them for itself.

    s[0] = sum(x * x); f[i] = a(s); g[i] = b(s)   ->   s, s' = ...; f[i] = a(s); g[i] = b(s')

A kernel of one program keeps the chip waiting; what it reads is in the cache of all the others.
"""

from collections.abc import Iterable, Mapping, Sequence

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.placing import Groups, Home
from tensorlang.schedule import Schedule

# Elements that a number may be made of to be found again by every program.
_MOST = 1 << 14


def find_again(
    schedule: Schedule, groups: Groups, extents: Extents, kernels: Mapping[str, Sequence[str]]
) -> None:
    """Let numbers at root be members of the kernels that read them.

    Args: kernels: the roots that may have them, each with the Funcs of its loops.
    """
    algorithm = schedule.algorithm
    for func in algorithm.funcs:
        if func.name not in groups.roots or func.dims or not _is_short(func, extents):
            continue
        readers = readers_of(algorithm, func.name, groups.inlined)
        homes = [r for r, inside in kernels.items() if readers & {r, *inside}]
        if not homes or readers - {f for r in homes for f in (r, *kernels[r])}:
            continue
        for root in homes[:-1]:
            clone = _cloned(schedule, func.name, {root, *kernels[root]}, groups.inlined)
            groups.inside[clone] = Home(root, ())
        groups.inside[func.name] = Home(homes[-1], ())
        groups.roots.remove(func.name)


def _is_short(func: FuncRecord, extents: Extents) -> bool:
    domain = None if func.is_pure else func.definitions[-1].domain
    return domain is not None and all(extents.of(n) <= _MOST for _, _, n in domain.dims[:1])


def readers_of(algorithm: Algorithm, name: str, inlined: set[str]) -> set[str]:
    """The Funcs with loops that read a Func, through those that are inlined."""
    found: set[str] = set()
    stack = [name]
    while stack:
        for consumer in algorithm.consumers(stack.pop()):
            if consumer in inlined:
                stack.append(consumer)
            else:
                found.add(consumer)
    return found


def _cloned(schedule: Schedule, name: str, wanted: Iterable[str], inlined: set[str]) -> str:
    """A clone of a Func for these readers, with clones of what is inlined between."""
    algorithm = schedule.algorithm
    between = _between(algorithm, name, inlined)
    own = {reader: reader for reader in wanted}
    for func in reversed(algorithm.funcs):
        if func.name in between:
            readers = [own[c] for c in algorithm.consumers(func.name) if c in own]
            if readers:
                own[func.name] = schedule[func.name].clone_in(*readers).name
    return own[name]


def _between(algorithm: Algorithm, name: str, inlined: set[str]) -> set[str]:
    """A Func and the inlined ones that read it."""
    found, stack = {name}, [name]
    while stack:
        more = [c for c in algorithm.consumers(stack.pop()) if c in inlined and c not in found]
        found.update(more)
        stack += more
    return found
