"""Where drawn schedules compute and keep the Funcs between inputs and outputs.

Moves come one at a time, but a sliding window takes three of them that fit together.
"""

import contextlib
from collections.abc import Callable
from itertools import takewhile
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tensorlang.errors import ScheduleError
from tensorlang.lower.choose_placements import choose_placements
from tensorlang.schedule import Schedule

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

_FOLDS = (2, 3, 4, 8)
_PLACING = ("compute_at", "store_at", "store_root", "fold_storage")


def draw_placements(draw: Draw, schedule: Schedule, focus: str | None = None) -> None:
    """Place some Funcs at a loop of what reads them, kept there or further out.

    Args: focus: the keyword of a directive that is tried where it can be.
    """
    if focus == "rolling_update" or draw(st.booleans()):
        _draw_rolling(draw, schedule)
    if focus == "compute_with" or draw(st.integers(0, 3)) == 3:
        _draw_shared_loops(draw, schedule)
    outputs = {name for name, _ in schedule.algorithm.outputs}
    for func in reversed(schedule.state.algorithm.funcs):
        if func.name in outputs or func.name in schedule.state.placements:
            continue
        if focus not in _PLACING and draw(st.integers(0, 3)) < 2:
            continue
        with contextlib.suppress(ScheduleError):
            _place(draw, schedule, func.name)


def _draw_rolling(draw: Draw, schedule: Schedule) -> None:
    """Roll a reduction into one that needs its result, in slices of a loop of that."""
    reductions = [f for f in schedule.state.algorithm.funcs if not f.is_pure]
    pairs = [
        (first.name, second.name)
        for n, first in enumerate(reductions)
        for second in reductions[n + 1 :]
        if _depends(schedule, second.name, first.name)
    ]
    if not pairs:
        return
    func, into = draw(st.sampled_from(pairs))
    nest = schedule.state.nests[into, 1]
    loops = [loop.name for loop in nest.loops if loop.reduction]
    if not loops:
        return
    slices = draw(st.sampled_from(loops))
    rest = [name for name in nest.names() if name != slices]
    with contextlib.suppress(ScheduleError):
        schedule[into].update(0).reorder(slices, *rest)
        schedule[func].rolling_update(into, slices)


def _draw_shared_loops(draw: Draw, schedule: Schedule) -> None:
    """Let updates run in the loops of the stage before them, as far as these are alike."""
    for (func, number), nest in schedule.state.nests.items():
        before = schedule.state.nests.get((func, number - 1))
        if before is None:
            continue
        pairs = zip(nest.names(), before.names(), strict=False)
        alike = [name for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        if alike:
            with contextlib.suppress(ScheduleError):
                update = schedule[func].update(number - 1)
                update.compute_with(func, draw(st.sampled_from(alike)))


def _depends(schedule: Schedule, reader: str, func: str) -> bool:
    """Whether a Func reads another, also through others."""
    algorithm = schedule.state.algorithm
    found, queue = set[str](), [func]
    while queue:
        new = [name for name in algorithm.consumers(queue.pop()) if name not in found]
        found.update(new)
        queue += new
    return reader in found


def _place(draw: Draw, schedule: Schedule, func: str) -> None:
    """compute_at a loop, store_at one further out or at root, and perhaps fold_storage."""
    stages = _stages_that_read(schedule, func)
    if not stages:
        return
    user, number = draw(st.sampled_from(stages))
    loops = schedule.state.nests[user, number].names()
    if not loops:
        return
    at: int = draw(st.integers(0, len(loops) - 1))
    schedule[func].compute_at(user, loops[at])
    further: int = draw(st.integers(0, at + 1))
    if not further:
        return
    if further > at:
        schedule[func].store_root()
    else:
        schedule[func].store_at(user, loops[at - further])
    dims = schedule.state.funcs[func].dims
    if dims and draw(st.booleans()):
        schedule[func].fold_storage(draw(st.sampled_from(dims)), draw(st.sampled_from(_FOLDS)))


def _stages_that_read(schedule: Schedule, func: str) -> list[tuple[str, int]]:
    """The stages of the Funcs with loops of their own that read `func`, through inlined ones."""
    algorithm = schedule.state.algorithm
    placements = choose_placements(algorithm, schedule.state)
    found: set[str] = set()
    queue = list(algorithm.consumers(func))
    while queue:
        reader = queue.pop()
        if placements[reader].inline:
            queue += algorithm.consumers(reader)
        else:
            found.add(reader)
    definitions = {f.name: len(f.definitions) for f in algorithm.funcs}
    return [(name, n) for name in sorted(found) for n in range(definitions[name])]
