"""Outputs of the same rows in one kernel, for Triton: a sum and its norm, a norm and its level.

    h[i, j] = x + y; y[i, j] = h * level(i)      rows i { level; h[i, :]; y[i, :] }
    kept[i] = level(i)                           rows i { level; kept[i]; y[i, :] }

What one output takes of another it computes again from what both read: a backend finds equal
values, so that in the end every array is read once and no row goes through memory.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from operator import is_

from tensorlang.algorithm import Algorithm, FuncRecord, reads_of
from tensorlang.autoschedule.analysis import contraction_of, is_reduction, sources_of
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.numbers import readers_of
from tensorlang.autoschedule.placing import Groups, group_funcs
from tensorlang.ir.expr import Expr
from tensorlang.schedule import Schedule

# Elements of rows that registers hold: beyond, what is read twice is read from memory twice.
_HELD = 65536


@dataclass(frozen=True, slots=True)
class Joined:
    """Outputs that are computed in the rows of another one.

    Args: leaders: of each the output in whose loops it is.
    """

    leaders: dict[str, str]

    def companions(self, leader: str) -> list[str]:
        """The outputs in the loops of `leader`, in order."""
        return [name for name, other in self.leaders.items() if other == leader]


def join_outputs(schedule: Schedule, extents: Extents) -> Joined:
    """Choose them, and let no other Func read them."""
    algorithm = schedule.algorithm
    found: dict[str, str] = {}
    if len(algorithm.outputs) > 1:
        before = group_funcs(algorithm)
        for leader in _leaders(algorithm):
            if leader.name in found:
                continue
            found = _gathered(algorithm, extents, before, leader, found)
        _let_nobody_read(schedule, {*found, *_found_again(algorithm, extents, before, found)})
    # Producers first, as the algorithm has them.
    return Joined({f.name: found[f.name] for f in algorithm.funcs if f.name in found})


def _gathered(
    algorithm: Algorithm,
    extents: Extents,
    before: Groups,
    leader: FuncRecord,
    found: dict[str, str],
) -> dict[str, str]:
    """With all that may join a leader: some may only once others have."""
    waiting = list(_candidates(algorithm, leader, found))
    while True:
        for name in waiting:
            more = {**found, name: leader.name}
            if _is_worth(algorithm, extents, before, more):
                found = more
                waiting.remove(name)
                break
        else:
            return found


def _found_again(
    algorithm: Algorithm, extents: Extents, before: Groups, leaders: Mapping[str, str]
) -> set[str]:
    """Outputs of points that what reads them computes for itself.

    f[i] = x + 1; g[i] = f * 2   ->   g[i] = (x + 1) * 2      points i { f; g }
    """
    found: set[str] = set()
    funcs = {f.name: f for f in algorithm.funcs}
    for name, shape in algorithm.outputs:
        if name in leaders or name in leaders.values() or not funcs[name].is_pure:
            continue
        sources = sources_of(algorithm, name)
        if any(a in funcs and a not in before.inlined for a in sources):
            continue
        read = [a for a in algorithm.inputs if a.name in sources]
        taken = sum(_size(extents, a.shape) * a.dtype.bits for a in read)
        is_less = taken <= _size(extents, shape) * funcs[name].dtypes[0].bits
        if is_less or _is_read_by_its_like(algorithm, before, name):
            trial = Schedule(algorithm)
            _let_nobody_read(trial, {*leaders, *found, name})
            groups = group_funcs(trial.state.algorithm, leaders)
            if set(groups.roots) <= set(before.roots):
                found.add(name)
    return found


def _size(extents: Extents, shape: Sequence[Expr]) -> int:
    return prod(map(extents.of, shape))


def _is_read_by_its_like(algorithm: Algorithm, groups: Groups, name: str) -> bool:
    """Whether all kernels that read an output are of points of the same shape, beside it."""
    shapes, dims = dict(algorithm.outputs), algorithm.func(name).dims
    for reader in readers_of(algorithm, name, groups.inlined):
        func = algorithm.func(reader)
        if reader not in shapes or groups.members(reader) or not func.is_pure:
            return False
        same = len(shapes[reader]) == len(shapes[name])
        if func.dims != dims or not same or not all(map(is_, shapes[reader], shapes[name])):
            return False
    return True


def _leaders(algorithm: Algorithm) -> Sequence[FuncRecord]:
    """Outputs in whose rows others may be, those that are made of most first."""
    outputs = [algorithm.func(name) for name, _ in algorithm.outputs]
    rows = [f for f in outputs if f.is_pure and len(f.dims) > 1]
    return sorted(
        rows, key=lambda f: (len(f.dims), len(sources_of(algorithm, f.name))), reverse=True
    )


def _candidates(algorithm: Algorithm, leader: FuncRecord, taken: dict[str, str]) -> Iterator[str]:
    """Outputs whose dimensions are the first of the leader's, and that share data with it."""
    shapes = dict(algorithm.outputs)
    sources = sources_of(algorithm, leader.name)
    for name, shape in algorithm.outputs:
        func = algorithm.func(name)
        is_free = func is not leader and name not in taken and name not in taken.values()
        rank = len(func.dims)
        is_like = leader.dims[:rank] == func.dims and all(map(is_, shapes[leader.name], shape))
        is_row = rank >= len(leader.dims) - 1 and func.is_pure
        if is_free and is_like and is_row and sources & {name, *sources_of(algorithm, name)}:
            yield name


def _is_worth(
    algorithm: Algorithm, extents: Extents, before: Groups, leaders: dict[str, str]
) -> bool:
    """Whether joined outputs are fewer kernels, of rows that registers hold."""
    trial = Schedule(algorithm)
    _let_nobody_read(trial, leaders.keys())
    made = trial.state.algorithm
    groups = group_funcs(made, leaders)
    return set(groups.roots) <= set(before.roots) and all(
        _is_of_rows(made, extents, groups, leader, [n for n, m in leaders.items() if m == leader])
        for leader in set(leaders.values())
    )


def _is_of_rows(
    algorithm: Algorithm, extents: Extents, groups: Groups, leader: str, others: Sequence[str]
) -> bool:
    """Whether every member is a reduction of a row of the leader, and the rows fit."""
    members, func = groups.members(leader), algorithm.func(leader)
    *blocks, last = func.dims
    if not members or {v for home in members.values() for v in home.vars} != set(blocks):
        return False
    inner = [algorithm.func(name) for name in members]
    if any(contraction_of(f) or not all(is_reduction(f.name, d) for d in f.definitions[1:])
           for f in inner):  # fmt: skip
        return False
    made = [algorithm.func(name) for name in (leader, *others)]
    sources = {name for f in (*made, *inner) for name in sources_of(algorithm, f.name)}
    rows = sum(last in f.dims for f in made)
    rows += sum(a.name in sources and len(a.shape) >= len(func.dims) for a in algorithm.inputs)
    return rows * extents.shape(func)[-1] <= _HELD


def _let_nobody_read(schedule: Schedule, outputs: Collection[str]) -> None:
    """Let what reads one of these outputs read a clone of it."""
    for func in schedule.algorithm.funcs:
        readers = [f for f in schedule.state.algorithm.funcs if func.name in reads_of(f)]
        if func.name in outputs and any(f.name != func.name for f in readers):
            schedule[func.name].clone_in()
