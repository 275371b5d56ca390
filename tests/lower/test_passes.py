"""The engine as a list: what passes need and give, and that none of them changes a value."""

import os

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang import lower
from tensorlang.lower.check_schedule import check_schedule
from tensorlang.testing.families import pipelines
from tensorlang.testing.strategies import inputs, schedules
from tests.lower.between import programs, run

# What build_nests ensures.
AT_FIRST = frozenset({"all-at-root"})


def test_every_pass_finds_what_it_requires() -> None:
    known = AT_FIRST
    for step in lower.PASSES:
        assert step.requires <= known, f"{step.name} needs {step.requires - known} before it"
        known |= step.ensures


def test_every_pass_ensures_something_of_its_own() -> None:
    ensured = [fact for step in lower.PASSES for fact in step.ensures]
    assert len(ensured) == len(set(ensured))
    assert all(step.ensures for step in lower.PASSES)


def test_every_pass_says_what_it_does_and_is_named_after_its_file() -> None:
    for step in lower.PASSES:
        run = getattr(step.run, "__wrapped__", step.run)
        assert run.__doc__, f"{step.name} has no docstring"
        file = run.__module__.rpartition(".")[2]
        if not step.name.startswith("check_"):
            assert file == step.name
    assert check_schedule.__doc__


@settings(
    max_examples=int(os.environ.get("TENSORLANG_EXAMPLES", "60")),
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_no_pass_changes_a_value(data: st.DataObject) -> None:
    pipeline = data.draw(pipelines(), label="pipeline")
    schedule = data.draw(schedules(pipeline), label="schedule")
    case = data.draw(inputs(pipeline, schedule), label="inputs")
    found = programs(pipeline, schedule)
    expected = None
    for name, program in found.items():
        made = run(pipeline, program, *case.arrays, sizes=case.sizes, **case.params)
        expected = made if expected is None else expected
        for a, b in zip(expected, made, strict=True):
            if name == "roll_updates":
                # A sum that was mended on the way is rounded otherwise than one that was not.
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(a, b, err_msg=f"after {name}")
        expected = made


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_pass_with_nothing_left_to_do_gives_the_same_program(data: st.DataObject) -> None:
    pipeline = data.draw(pipelines(), label="pipeline")
    schedule = data.draw(schedules(pipeline), label="schedule")
    found = programs(pipeline, schedule)
    for step in lower.PASSES:
        if isinstance(step, lower.Pass):
            assert step.run(found[step.name]) is found[step.name], step.name
