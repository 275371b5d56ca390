"""Schedules as named data: saved, read, compared, pickled, and applied to what has changed."""

import copy
import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensorlang as tl
from tensorlang import ParseError, Pipeline, Schedule, ScheduleError
from tensorlang.testing.families import pipelines
from tensorlang.testing.strategies import schedules

BLUR = """
algorithm blur(a: f32[H + 2, W + 2]) -> rows[H, W] {
  columns[y, x] = a[y, x] + a[y, x + 1] + a[y, x + 2]
  rows[y, x] = columns[y, x] + columns[y + 1, x] + columns[y + 2, x]
}
"""
SCHEDULE = """\
s[rows].split(y, yo, yi, 8).parallel(yo).vectorize(x)
s[columns].compute_at(rows, yo).vectorize(x)"""


def blur(text: str = BLUR) -> Pipeline:
    return tl.parse(text).pipelines["blur"]


@settings(suppress_health_check=list(HealthCheck), max_examples=25)
@given(st.data())
def test_a_schedule_is_equal_to_what_its_text_and_its_pickle_give(data: st.DataObject) -> None:
    pipeline = data.draw(pipelines())
    schedule = data.draw(schedules(pipeline, gpu=True))
    read = Schedule.parse(str(schedule), pipeline)
    for other in (read, pickle.loads(pickle.dumps(schedule)), copy.deepcopy(schedule)):
        assert other == schedule
        assert hash(other) == hash(schedule)
        assert str(other) == str(schedule)


def test_an_unpickled_schedule_fits_the_pipeline_it_was_of() -> None:
    pipeline = blur()
    schedule = pickle.loads(pickle.dumps(Schedule.parse(SCHEDULE, pipeline)))
    assert "parallel" in str(pipeline.lower(schedule))
    assert str(pickle.loads(pickle.dumps(pipeline))) == str(pipeline)


def test_deep_algorithms_pickle() -> None:
    chain = " + ".join(["a[i]"] * 3000)
    pipeline = tl.parse(f"algorithm p(a: f32[N]) -> f[N] {{ f[i] = {chain} }}").pipelines["p"]
    assert pickle.loads(pickle.dumps(pipeline.algorithm)) == pipeline.algorithm


def test_algorithms_differ_by_what_they_compute_and_not_by_where_they_stand() -> None:
    assert blur("\n\n\n" + BLUR).algorithm == blur().algorithm
    assert blur(BLUR.replace("x + 2", "x + 1", 1)).algorithm != blur().algorithm
    assert blur(BLUR.replace("f32", "f64")).algorithm != blur().algorithm


def test_a_saved_schedule_names_its_version(tmp_path: Path) -> None:
    file = tmp_path / "fast.schedule"
    schedule = Schedule.parse(SCHEDULE, blur())
    schedule.save(file)
    assert file.read_text() == f"# tensorlang schedule 1\n{SCHEDULE}\n"
    assert Schedule.load(file, blur()) == schedule


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ParseError) as caught:
        Schedule.parse(f"# tensorlang schedule 2\n{SCHEDULE}", blur())
    assert caught.value.code == "unknown-version"


def test_a_schedule_applies_by_name_to_an_algorithm_that_kept_its_names() -> None:
    changed = blur(BLUR.replace("a[y, x] +", "a[y, x]*2 +"))
    moved = Schedule.parse(SCHEDULE, blur()).on(changed)
    assert str(moved) == SCHEDULE
    assert moved.algorithm is changed.algorithm


def test_a_schedule_of_another_algorithm_is_not_taken_silently() -> None:
    changed = blur(BLUR.replace("a[y, x] +", "a[y, x]*2 +"))
    with pytest.raises(ScheduleError) as caught:
        changed.lower(Schedule.parse(SCHEDULE, blur()))
    assert caught.value.code == "other-pipeline"


CHANGED = """
algorithm blur(a: f32[H + 2, W + 2]) -> rows[H, W] {
  sums[y, x] = a[y, x] + a[y, x + 1] + a[y, x + 2]
  rows[i, x] = sums[i, x] + sums[i + 1, x] + sums[i + 2, x]
}
"""


def test_all_that_a_changed_algorithm_lacks_is_said_at_once() -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(SCHEDULE, blur()).on(blur(CHANGED))
    error = caught.value
    assert error.code == "algorithm-changed"
    assert error.what == "'blur' lacks 2 of the names that this schedule uses"
    assert error.why == (
        "- cannot split 'y' of 'rows': it has no such loop\n"
        "- Pipeline 'blur' has no Func 'columns' to schedule"
    )
    assert error.fix == "it has sums(y, x), rows(i, x)"


def test_one_missing_name_is_said_as_its_directive_says_it() -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(SCHEDULE, blur()).on(blur(CHANGED.replace("[i", "[y")))
    assert caught.value.code == "unknown-func"
    assert "'columns'" in caught.value.what


def test_a_schedule_that_is_not_legal_after_a_change_fails_as_it_does_in_python() -> None:
    scanned = blur(
        """
algorithm blur(a: f32[H + 2, W + 2]) -> rows[H, W] {
  columns[y, x] = a[y, x]
  rows[y, x] = columns[y, x]
}
"""
    )
    s = Schedule(scanned)
    s["columns"].compute_inline()
    with pytest.raises(ScheduleError) as caught:
        s.on(
            tl.parse(
                """
algorithm blur(a: f32[H + 2, W + 2]) -> rows[H, W] {
  columns[y, x] = a[y, x]
  columns[0, x] = 1
  rows[y, x] = columns[y, x]
}
"""
            ).pipelines["blur"]
        )
    assert caught.value.code == "inline-with-update"
