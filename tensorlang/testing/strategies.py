"""Hypothesis strategies: pipelines, legal schedules of a pipeline, and inputs for it.

    @given(st.data())
    def test_my_operator(data):
        schedule = data.draw(schedules(my_pipeline))
        case = data.draw(inputs(my_pipeline))
        assert_equivalent(my_pipeline, schedule, inputs=case.arrays, sizes=case.sizes)

Every directive is reachable.  A failure shrinks to the fewest directives on the smallest sizes.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from tensorlang.algorithm import Algorithm
from tensorlang.calling.evaluate import evaluate
from tensorlang.calling.plan import leading_asserts
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const, Size
from tensorlang.ir.stmt import Program
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Applied, Schedule
from tensorlang.testing.moves import MOVES, ON_CPU, ON_GPU, draw_move
from tensorlang.testing.placing import draw_placements
from tensorlang.testing.samples import fixed_sizes, random_array

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

# 0 and 1, primes, powers of two and their neighbours: where tails go wrong.
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17)
# Of a directive that is refused where it was drawn.
_TRIES = 3
# Once in so many steps a schedule is long enough.
_MORE = 6
# Of so many directives and one, one is left out.
_KEPT = 9


@dataclass(frozen=True, slots=True)
class Case:
    """Arrays for a call, and the Sizes that their shapes do not tell."""

    arrays: tuple[Any, ...]
    sizes: dict[str, int]
    params: dict[str, int | float]


# --- schedules -----------------------------------------------------------------------------------


@st.composite
def schedules(
    draw: Draw,
    pipeline: Pipeline,
    *,
    most: int = 8,
    gpu: bool = False,
    most_lanes: int = 4096,
    focus: str | None = None,
) -> Schedule:
    """A legal Schedule of `pipeline` with some `most` directives at most.

    Args:
        gpu: also draw gpu_blocks and hints for a GPU.
        most_lanes: the largest product of the constant extents of a stage's vectorized loops.
        focus: the keyword of a directive that is tried half of the time.
    """
    schedule = Schedule(pipeline)
    keywords = ON_GPU if gpu else ON_CPU
    if focus in MOVES:
        keywords += (focus,) * len(keywords)
    for _ in range(most):
        if not draw(_steps(schedule, keywords)):
            break
    draw_placements(draw, schedule, focus)
    # A draw for each directive, whose least outcome leaves it out: a failure that has shrunk needs
    # every one of its directives, whatever draws made them.
    kept = [a for a in schedule.applied if draw(st.integers(0, _KEPT))]
    if len(kept) < len(schedule.applied):
        schedule = _replayed(pipeline, kept)
    return _legal(pipeline, schedule, most_lanes)


@st.composite
def _steps(draw: Draw, schedule: Schedule, keywords: Sequence[str]) -> bool:
    """Perhaps one directive more; a failure shrinks by leaving whole steps out."""
    if draw(st.integers(0, _MORE)) == 0:
        return False
    for _ in range(_TRIES):
        if draw_move(draw, schedule, keywords):
            break
    return True


def _legal(pipeline: Pipeline, schedule: Schedule, most_lanes: int) -> Schedule:
    """The schedule without the directives at fault: some faults show only in the whole."""

    def is_legal(schedule: Schedule) -> bool:
        return _lanes(schedule) <= most_lanes and _lowers(pipeline, schedule)

    begun = 0
    while not is_legal(schedule):
        # So many directives are legal, and one more is not.
        applied = schedule.applied
        begun += bisect_left(
            range(begun + 1, len(applied)),
            True,
            key=lambda n: not is_legal(_replayed(pipeline, applied[:n])),
        )
        schedule = _replayed(pipeline, applied[:begun] + applied[begun + 1 :])
    return schedule


def _replayed(pipeline: Pipeline, applied: Sequence[Applied]) -> Schedule:
    """A schedule of these directives, but for those that need one that is not among them."""
    made = Schedule(pipeline)
    known = {a.name for a in pipeline.algorithm.inputs}
    for a in applied:
        if a.func in known or a.func in made.state.funcs:
            with suppress(ScheduleError):
                made.apply(a.func, a.number, a.directive, a.path)
    return made


def _lowers(pipeline: Pipeline, schedule: Schedule) -> bool:
    try:
        _lowered(pipeline, schedule)
    except ScheduleError:
        return False
    return True


@lru_cache(maxsize=2)
def _lowered(pipeline: Pipeline, schedule: Schedule) -> Program:
    """The loop IR; inputs are drawn for the schedule that was found to be legal just before."""
    return pipeline.lower(schedule)


def _lanes(schedule: Schedule) -> int:
    most = 1
    for nest in (n for whole in schedule.state.nests.values() for n in whole.everywhere()):
        lanes = 1
        for loop in nest.loops:
            if loop.kind.value in ("vectorized", "unrolled"):
                lanes *= int(loop.extent.value) if isinstance(loop.extent, Const) else 16
        most = max(most, lanes)
    return most


# --- inputs --------------------------------------------------------------------------------------


@st.composite
def inputs(
    draw: Draw,
    pipeline: Pipeline,
    schedule: Schedule | None = None,
    *,
    sizes: tuple[int, ...] = SIZES,
    special: bool = True,
) -> Case:
    """Sizes, arrays that fit them, and Params.

    Args:
        schedule: whose demands on a call (`bound`) hold for what is drawn.
        special: with NaN and inf among the floats.
    """
    algorithm = pipeline.algorithm
    asserts = (
        pipeline.asserts if schedule is None else leading_asserts(_lowered(pipeline, schedule))
    )
    chosen = {size.name: draw(st.sampled_from(sizes)) for size in algorithm.sizes}
    chosen |= fixed_sizes(asserts)
    seed = draw(st.integers(0, 2**16))
    extremes = special and draw(st.booleans())
    rng = np.random.default_rng(seed)
    arrays = tuple(
        random_array(
            rng, a.dtype, tuple(int(evaluate(n, chosen)) for n in a.shape), special=extremes
        )
        for a in algorithm.inputs
    )
    params: dict[str, int | float] = {
        p.name: draw(st.integers(-4, 4) if p.dtype.is_integer else st.floats(-4, 4, width=16))
        for p in algorithm.params
    }
    names = {**chosen, **params}
    if not all(evaluate(a.condition, names) for a in asserts):
        reject()  # such as a max over no point
    return Case(arrays, _unsolved(algorithm, chosen), params)


def _unsolved(algorithm: Algorithm, chosen: dict[str, int]) -> dict[str, int]:
    """The Sizes that are no extent of an Input, which a call has to be given."""
    plain = {n.name for a in algorithm.inputs for n in a.shape if isinstance(n, Size)}
    return {name: value for name, value in chosen.items() if name not in plain}
