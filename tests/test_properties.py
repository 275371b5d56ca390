"""The promise of the whole project: a schedule never changes the numbers.

A pipeline of a small family, a legal schedule and odd sizes are drawn, and every target is
compared with what the algorithm says.  TENSORLANG_EXAMPLES=10000 asks for more examples than CI
has time for.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tensorlang import Pipeline, Schedule
from tensorlang.calling.evaluate import evaluate
from tensorlang.directives import DIRECTIVES
from tensorlang.ir.expr import Size
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    walk,
)
from tensorlang.testing import assert_equivalent
from tensorlang.testing.families import pipelines
from tensorlang.testing.moves import MOVES, ON_CPU, ON_GPU
from tensorlang.testing.strategies import Case, inputs, schedules

MOST_PROGRAMS = 64
# How often each directive stood in a schedule that was compared.
drawn: Counter[str] = Counter()
BLOCKS = (LoopKind.GPU_BLOCK, LoopKind.PARALLEL)


def examples(number: int) -> settings:
    """So many examples, or as many as the environment asks for."""
    number = int(os.environ.get("TENSORLANG_EXAMPLES", number))
    return settings(max_examples=number, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module", autouse=True)
def coverage(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tell at the end how often each directive was drawn."""
    yield
    reporter = request.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and drawn:
        counts = ", ".join(f"{keyword} {drawn[keyword]}" for keyword in sorted(DIRECTIVES))
        reporter.write_line(f"\ndirectives drawn: {counts}")


def test_every_directive_can_be_drawn() -> None:
    assert set(MOVES) == set(DIRECTIVES)
    assert set(ON_CPU) | set(ON_GPU) == set(DIRECTIVES)


def compare(data: st.DataObject, target: str) -> None:
    pipeline = data.draw(pipelines(), label="pipeline")
    schedule = data.draw(schedules(pipeline, gpu=target == "triton"), label="schedule")
    case = data.draw(inputs(pipeline, schedule), label="inputs")
    if target == "triton":
        assume(programs_of(pipeline, schedule, case) <= MOST_PROGRAMS)
    assert_equivalent(pipeline, schedule, target, case.arrays, sizes=case.sizes, params=case.params)
    drawn.update(a.directive.keyword for a in schedule.applied)


@examples(500)
@given(st.data())
def test_any_schedule_keeps_the_numbers_in_the_interpreter(data: st.DataObject) -> None:
    compare(data, "interpreter")


@pytest.mark.cc
@examples(150)
@given(st.data())
def test_any_schedule_keeps_the_numbers_in_c(data: st.DataObject) -> None:
    compare(data, "c")


@examples(100)
@given(st.data())
def test_any_schedule_keeps_the_numbers_in_triton(data: st.DataObject) -> None:
    compare(data, "triton")


# Triton's interpreter runs programs one after the other, each at the cost of a whole tile.


def programs_of(pipeline: Pipeline, schedule: Schedule, case: Case) -> int:
    """How many programs a call launches."""
    program = pipeline.lower(schedule)
    names: dict[str, int] = dict(case.sizes)
    for buffer, array in zip(program.inputs, case.arrays, strict=True):
        for dim, extent in zip(buffer.dims, array.shape, strict=True):
            if isinstance(dim.extent, Size):
                names[dim.extent.name] = extent
    return launched(program.body, {**names, **case.params})


def launched(stmt: Stmt, names: dict[str, int | float]) -> int:
    """How many programs a statement launches: 1 where it is (a part of) a single one."""
    match stmt:
        case Block():
            return sum(launched(s, names) for s in stmt.statements if not isinstance(s, Assert))
        case Let() if not stmt.value.reads:
            return launched(stmt.body, {**names, stmt.var: evaluate(stmt.value, names)})
        case For() if any(isinstance(s, For) and s.kind in BLOCKS for s in walk(stmt)):
            first, extent = evaluate(stmt.min, names), evaluate(stmt.extent, names)
            return int(extent) * launched(stmt.body, {**names, stmt.var: first})
        case Stage() | Allocate() | If():
            return launched(stmt.body, names)
        case _:
            return 1
