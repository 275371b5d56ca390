"""Hypothesis strategies: pipelines, legal schedules of a pipeline, and inputs for it.

    @given(st.data())
    def test_my_operator(data):
        schedule = data.draw(schedules(my_pipeline))
        case = data.draw(inputs(my_pipeline))
        assert_equivalent(my_pipeline, schedule, inputs=case.arrays, sizes=case.sizes)

Every directive is reachable.  A failure shrinks to the fewest directives on the smallest sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from tensorlang.algorithm import Algorithm
from tensorlang.calling.evaluate import evaluate
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const, Size
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage
from tensorlang.testing.samples import random_array

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]

# 0 and 1, primes, powers of two and their neighbours: where tails go wrong.
SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17)
FACTORS = (1, 2, 3, 4, 5, 8, 16)


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
) -> Schedule:
    """A legal Schedule of `pipeline` with up to `most` directives.

    Args:
        gpu: also draw gpu_blocks.
        most_lanes: the largest product of the constant extents of a stage's vectorized loops.
    """
    schedule = Schedule(pipeline)
    for _ in range(draw(st.integers(0, most))):
        func = draw(st.sampled_from(schedule.state.algorithm.funcs))
        number = draw(st.integers(0, len(func.definitions) - 1))
        stage = schedule[func.name] if number == 0 else schedule[func.name].update(number - 1)
        keyword = draw(st.sampled_from(_GPU if gpu else _CPU))
        try:
            _DRAWERS[keyword](draw, schedule, stage, func.name, number)
        except ScheduleError:
            continue
    try:
        pipeline.lower(schedule)
    except ScheduleError:
        reject()
    if _lanes(schedule) > most_lanes:
        reject()
    return schedule


def _lanes(schedule: Schedule) -> int:
    most = 1
    for nest in schedule.state.nests.values():
        lanes = 1
        for loop in nest.loops:
            if loop.kind.value in ("vectorized", "unrolled"):
                lanes *= int(loop.extent.value) if isinstance(loop.extent, Const) else 16
        most = max(most, lanes)
    return most


def _loops(schedule: Schedule, func: str, number: int) -> list[str]:
    return list(schedule.state.nests[func, number].names())


def _loop(draw: Draw, schedule: Schedule, func: str, number: int) -> str:
    names = _loops(schedule, func, number)
    if not names:
        raise ScheduleError("no-loop", "a scalar has no loop", why="", fix="")
    return draw(st.sampled_from(names))


def _fresh(schedule: Schedule, func: str, base: str) -> str:
    """A name that no loop of any stage of the Func has had."""
    taken = {
        name
        for nest in schedule.state.stages(func)
        for name in (*nest.names(), *(b.name for b in nest.bindings))
    }
    while base in taken:
        base += "_"
    return base


def _split(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    loop = _loop(draw, s, func, number)
    outer, inner = _fresh(s, func, f"{loop}o"), _fresh(s, func, f"{loop}i")
    tail = draw(st.sampled_from(("auto", "guard", "predicate", "shift_inwards", "ragged")))
    stage.split(loop, outer, inner, draw(st.sampled_from(FACTORS)), tail=tail)


def _tile(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    x, y = _loop(draw, s, func, number), _loop(draw, s, func, number)
    xo, yo, xi, yi = (_fresh(s, func, f"{v}{part}") for part in ("o", "i") for v in (x, y))
    x_factor, y_factor = draw(st.sampled_from(FACTORS)), draw(st.sampled_from(FACTORS))
    stage.tile(x, y, xo, yo, xi, yi, x_factor, y_factor)


def _fuse(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = _loops(s, func, number)
    if len(names) < 2:
        return
    at: int = draw(st.integers(0, len(names) - 2))
    stage.fuse(names[at], names[at + 1], _fresh(s, func, "t"))


def _reorder(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    stage.reorder(*draw(st.permutations(_loops(s, func, number))))


def _rename(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    loop = _loop(draw, s, func, number)
    stage.rename(loop, _fresh(s, func, f"{loop}r"))


def _on_loop(name: str) -> Callable[[Draw, Schedule, Stage, str, int], None]:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        getattr(stage, name)(_loop(draw, s, func, number))

    return apply


def _gpu_blocks(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    names = _loops(s, func, number)
    stage.gpu_blocks(*names[: draw(st.integers(1, max(1, min(2, len(names)))))])


def _compute_at(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    _at(draw, s, "compute_at", func)


def _store_at(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    _at(draw, s, "store_at", func)


def _at(draw: Draw, s: Schedule, name: str, func: str) -> None:
    consumers = s.state.algorithm.consumers(func)
    if not consumers:
        return
    consumer = draw(st.sampled_from(consumers))
    number = draw(st.integers(0, len(s.state.funcs[consumer].definitions) - 1))
    getattr(s[func], name)(consumer, _loop(draw, s, consumer, number))


def _placement(name: str) -> Callable[[Draw, Schedule, Stage, str, int], None]:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        getattr(s[func], name)()

    return apply


def _pipeline(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    stage.pipeline(_loop(draw, s, func, number), draw(st.integers(1, 4)))


def _rfactor(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    stage.rfactor(_loop(draw, s, func, number), _fresh(s, func, "u"))


def _copies(name: str) -> Callable[[Draw, Schedule, Stage, str, int], None]:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        copied = draw(st.sampled_from((func, *(a.name for a in s.algorithm.inputs))))
        consumers = s.state.algorithm.consumers(copied)
        chosen = draw(st.lists(st.sampled_from(consumers), unique=True)) if consumers else []
        getattr(s[copied], name)(*chosen)

    return apply


def _compute_with(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    other = func if number else draw(st.sampled_from(s.state.algorithm.funcs)).name
    stage.compute_with(other, _loop(draw, s, func, number))


def _on_dim(name: str, counts: tuple[int, ...]) -> Callable[..., None]:
    def apply(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
        dims = s.state.funcs[func].dims
        if dims:
            getattr(s[func], name)(draw(st.sampled_from(dims)), draw(st.sampled_from(counts)))

    return apply


def _store_in(draw: Draw, s: Schedule, stage: Stage, func: str, number: int) -> None:
    s[func].store_in(draw(st.sampled_from(("auto", "heap", "stack", "register"))))


_DRAWERS: dict[str, Callable[[Draw, Schedule, Stage, str, int], None]] = {
    "split": _split,
    "tile": _tile,
    "fuse": _fuse,
    "reorder": _reorder,
    "rename": _rename,
    "serial": _on_loop("serial"),
    "unroll": _on_loop("unroll"),
    "vectorize": _on_loop("vectorize"),
    "parallel": _on_loop("parallel"),
    "compute_at": _compute_at,
    "store_at": _store_at,
    "compute_root": _placement("compute_root"),
    "store_root": _placement("store_root"),
    "compute_inline": _placement("compute_inline"),
    "compute_with": _compute_with,
    "rfactor": _rfactor,
    "in_": _copies("in_"),
    "clone_in": _copies("clone_in"),
    "fold_storage": _on_dim("fold_storage", (2, 3, 4, 8)),
    "align_storage": _on_dim("align_storage", (2, 8)),
    "store_in": _store_in,
    "pipeline": _pipeline,
    "gpu_blocks": _gpu_blocks,
}
_CPU = tuple(k for k in _DRAWERS if k not in ("gpu_blocks", "pipeline"))
_GPU = tuple(k for k in _DRAWERS if k != "parallel")


# --- inputs --------------------------------------------------------------------------------------


@st.composite
def inputs(
    draw: Draw, pipeline: Pipeline, *, sizes: tuple[int, ...] = SIZES, special: bool = True
) -> Case:
    """Sizes, arrays that fit them, and Params; `special`: with NaN and inf among the floats."""
    algorithm = pipeline.algorithm
    chosen = {size.name: draw(st.sampled_from(sizes)) for size in algorithm.sizes}
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
    if not all(evaluate(a.condition, names) for a in pipeline.asserts):
        reject()  # such as a max over no point
    return Case(arrays, _unsolved(algorithm, chosen), params)


def _unsolved(algorithm: Algorithm, chosen: dict[str, int]) -> dict[str, int]:
    """The Sizes that are no extent of an Input, which a call has to be given."""
    plain = {n.name for a in algorithm.inputs for n in a.shape if isinstance(n, Size)}
    return {name: value for name, value in chosen.items() if name not in plain}
