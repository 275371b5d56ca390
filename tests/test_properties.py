"""The promise of the whole project: a schedule never changes the numbers.

A pipeline of a small family, a legal schedule and odd sizes are drawn, and every target is
compared with what the algorithm says.  The schedule is what its text gives, too.  C runs between
memory that it may not touch, and what it touches there ends the process.  The end of a run prints
how often each directive and each form of algorithm was among the examples.
TENSORLANG_EXAMPLES=10000 asks for more examples on each target than CI has time for.
"""

import os
import zlib
from collections.abc import Callable, Sequence

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from tensorlang import Pipeline, Schedule
from tensorlang.calling.evaluate import evaluate
from tensorlang.directives import DIRECTIVES
from tensorlang.errors import TargetError
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
from tensorlang.testing.coverage import FORMS, Coverage, forms_of
from tensorlang.testing.families import FAMILIES, chain, matmul, pipelines, reduction, stencil
from tensorlang.testing.strategies import Case, inputs, schedules
from tensorlang.testing.trials import Trial
from tensorlang.testing.update_families import (
    UPDATE_FAMILIES,
    Family,
    histogram,
    lower_half,
    maps,
    moments,
    quantifiers,
    recurrence,
    softmax,
    totals,
)
from tests.walls import put_walls

MOST_PROGRAMS = 64
BLOCKS = (LoopKind.GPU_BLOCK, LoopKind.PARALLEL)


# Examples of all tests of a target together.
EXAMPLES = {"interpreter": 1000, "c": 300, "triton": 200}
GROUPS = [tuple(DIRECTIVES)[k::10] for k in range(10)]
PARTS = {"interpreter": len(DIRECTIVES), "c": len(GROUPS), "triton": len(GROUPS)}

# Where a directive has something to do.
FITTING: dict[str, Sequence[Family]] = {
    "rolling_update": (softmax,),
    "atomic": (histogram, reduction, matmul, totals),
    "rfactor": (reduction, matmul, totals, quantifiers, moments, maps),
    "compute_with": (reduction, matmul, recurrence, moments, lower_half),
    "store_at": (stencil, chain),
    "store_root": (stencil, chain, softmax),
    "fold_storage": (stencil, chain),
    "clone_in": (stencil, chain),
    "compute_inline": (stencil, chain, softmax),
}


def run_examples(
    target: str, focuses: Sequence[str], record: Callable[[str, object], None]
) -> Coverage:
    """Compare drawn schedules on a target; what they reached is counted for the summary."""
    coverage = Coverage()
    number = -(-int(os.environ.get("TENSORLANG_EXAMPLES", EXAMPLES[target])) // PARTS[target])

    @settings(max_examples=number, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def every(data: st.DataObject) -> None:
        compare(data, target, data.draw(st.sampled_from(focuses), label="focus"), coverage)

    # In CI the same examples each time, but others for each focus.
    (seed(zlib.crc32(" ".join(focuses).encode()))(every) if os.environ.get("CI") else every)()
    counts = (coverage.examples, dict(coverage.directives), dict(coverage.forms))
    record("coverage", (target, *counts))
    return coverage


def compare(
    data: st.DataObject, target: str, focus: str | None = None, coverage: Coverage | None = None
) -> None:
    pipeline = data.draw(pipelines(FITTING.get(focus or "")), label="pipeline")
    drawn = schedules(pipeline, gpu=target != "c", focus=focus)
    trial = Trial(pipeline, schedule := data.draw(drawn), data.draw(inputs(pipeline, schedule)))
    assert Schedule.parse(str(schedule), pipeline) == schedule
    if target == "triton":
        assume(programs_of(pipeline, schedule, trial.case) <= MOST_PROGRAMS)
    try:
        trial.check(target)
    except TargetError as error:
        assume(error.code != "no-atomic")  # which the manual says
        raise
    if coverage is not None:
        coverage.note(pipeline.algorithm, schedule)


@pytest.mark.parametrize("directive", DIRECTIVES)
def test_schedules_about_a_directive_keep_the_numbers_in_the_interpreter(
    directive: str, record_property: Callable[[str, object], None]
) -> None:
    coverage = run_examples("interpreter", [directive], record_property)
    assert coverage.directives[directive], f"{directive} is never drawn"


@pytest.mark.cc
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_any_schedule_keeps_the_numbers_in_c(
    group: Sequence[str],
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = put_walls(monkeypatch)
    run_examples("c", group, record_property)
    assert ran, "nothing ran between the walls"


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group[0])
def test_any_schedule_keeps_the_numbers_in_triton(
    group: Sequence[str], record_property: Callable[[str, object], None]
) -> None:
    run_examples("triton", group, record_property)


def test_every_form_of_algorithm_is_drawn() -> None:
    reached = set[str]()
    for family in FAMILIES + UPDATE_FAMILIES:

        @settings(max_examples=30, phases=[Phase.generate], database=None)
        @given(pipelines([family]))
        def draw(pipeline: Pipeline) -> None:
            reached.update(forms_of(pipeline.algorithm))

        draw()
    assert set(FORMS) - reached == set()


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
