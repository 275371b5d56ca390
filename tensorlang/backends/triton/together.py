"""Launches that need nothing of one another are one: the programs of the second after the first's.

    launch A over a in [0, m)         launch over p in [0, m + n):
    launch B over b in [0, n)   ->        if p < m: A with a = p
                                          if m <= p: B with b = p - m

A launch waits for all of the one before it, and its last programs leave most of the chip idle;
the products of one vector with several matrices are such launches, and so are the parts of a
region that only share its inputs.

Requires: grids of numbers, as many warps, and no loads that run ahead of a loop: what one part
keeps in shared memory and registers, all programs would hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.partition import HostIf, HostLoop, HostStep, Workspace
from tensorlang.backends.triton.tiles import Memory
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Block, For, Hints, If, Let, LoopKind, Stage, Stmt, map_children, walk

# Parts of one launch: each adds to its text, and to what a program may need.
_MOST_PARTS = 4
_ALONE = ("stages", "dependent", "registers")


def launch_together(steps: Sequence[HostStep]) -> tuple[HostStep, ...]:
    """The host's steps with such launches in one."""
    made: list[HostStep] = []
    run: list[Workspace | Launch] = []
    for step in steps:
        if isinstance(step, Workspace | Launch):
            run.append(step)
            continue
        made += _joined(run)
        run.clear()
        if isinstance(step, HostIf | HostLoop):
            made.append(replace(step, body=launch_together(step.body)))
        else:
            made.append(step)
    return (*made, *_joined(run))


def _joined(run: Sequence[Workspace | Launch]) -> Iterator[HostStep]:
    """A run with each launch moved up to the first that it may share a grid with."""
    groups: list[list[Launch]] = []
    for step in run:
        if isinstance(step, Launch):
            home = _home(step, groups)
            if home is None:
                groups.append([step])
            else:
                home.append(step)
    if len(groups) == sum(isinstance(step, Launch) for step in run):
        yield from run
        return
    yield from (step for step in run if isinstance(step, Workspace))
    yield from (_in_one(group) if len(group) > 1 else group[0] for group in groups)


def _home(launch: Launch, groups: Sequence[list[Launch]]) -> list[Launch] | None:
    """The group, after all that the launch needs or disturbs, that it may join."""
    found: list[Launch] | None = None
    for group in reversed(groups):
        if any(_depend(launch, other) for other in group):
            break
        if len(group) < _MOST_PARTS and _alike(launch, group[0]):
            found = group
    return found


def _depend(a: Launch, b: Launch) -> bool:
    """Whether one writes what the other touches."""
    shared = a.memories.keys() & b.memories.keys()
    return any(not (a.memories[name].constant and b.memories[name].constant) for name in shared)


def _alike(a: Launch, b: Launch) -> bool:
    """Whether two launches may be one."""
    return (
        all(map(_is_plain, (a, b)))
        and len({_hints_of(x).get("warps") for x in (a, b)} - {None}) < 2
        and (a.scalars, a.outside) == (b.scalars, b.outside)
    )


def _is_plain(launch: Launch) -> bool:
    hints = _hints_of(launch)
    return (
        launch.last is None
        and all(isinstance(loop.extent, Const) for loop in launch.grid)
        and not any(hint in hints for hint in _ALONE)
        and all(
            memory.load_with == memory.store_with == "pointer"
            for memory in launch.memories.values()
        )
    )


def _hints_of(launch: Launch) -> dict[str, int | str]:
    return dict(hint for loop in _loops(launch.body) for hint in loop.hints)


def _loops(stmt: Stmt) -> Iterator[For]:
    return (s for s in walk(stmt) if isinstance(s, For))


def _in_one(group: Sequence[Launch]) -> Launch:
    """One launch, its programs those of each in turn."""
    first = group[0]
    program = Var("launched")
    ends = list(accumulate(map(_programs, group)))
    parts: list[Stmt] = []
    for launch, start, end in zip(group, [0, *ends], ends, strict=False):
        body = _numbered(launch, simplify(program - integer(start)))
        if end < ends[-1]:
            body = If(Compare("lt", program, integer(end)), body)
        parts.append(If(Compare("le", integer(start), program), body) if start else body)
    loop = For(
        program.name,
        integer(0),
        integer(ends[-1]),
        LoopKind.GPU_BLOCK,
        Block(tuple(parts)),
        hints=_all_hints(group),
    )
    memories: dict[str, Memory] = {}
    for launch in group:
        memories.update(launch.memories)
    names = [first.name, *map(_func_of, group[1:])]
    return replace(first, name="_and_".join(names), body=loop, grid=(loop,), memories=memories)


def _func_of(launch: Launch) -> str:
    """The Func that a launch computes last."""
    return next(s.func for s in walk(launch.body) if isinstance(s, Stage)).replace(".", "_")


def _programs(launch: Launch) -> int:
    return prod(_extent(loop) for loop in launch.grid)


def _extent(loop: For) -> int:
    assert isinstance(loop.extent, Const)
    return max(int(loop.extent.value), 0)


def _all_hints(group: Sequence[Launch]) -> Hints:
    return tuple(dict(h for launch in group for loop in launch.grid for h in loop.hints).items())


def _numbered(launch: Launch, program: Expr) -> Stmt:
    """The body of a launch, the variables of its grid digits of a program's number."""
    values: dict[For, Expr] = {}
    rest = program
    for loop in reversed(launch.grid):
        extent = integer(_extent(loop))
        digit = rest if loop is launch.grid[0] else Binary("mod", rest, extent)
        values[loop] = simplify(loop.min + digit)
        rest = simplify(Binary("floordiv", rest, extent))
    return _with_digits(launch.body, values)


def _with_digits(stmt: Stmt, values: Mapping[For, Expr]) -> Stmt:
    if isinstance(stmt, For) and stmt in values:
        return Let(stmt.var, values[stmt], _with_digits(stmt.body, values))
    return map_children(stmt, lambda child: _with_digits(child, values))
