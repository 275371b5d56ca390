"""Schedules in Python: what they print, that they run as what they print, and what equals what."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tensorlang import Schedule, ScheduleError, Var
from tensorlang.errors import ParseError
from tensorlang.testing.families import pipelines
from tensorlang.testing.strategies import schedules
from tests.lower.algorithms import i, j, matmul, rows


@settings(suppress_health_check=list(HealthCheck), max_examples=40)
@given(st.data())
def test_the_python_that_it_prints_makes_it_again(data: st.DataObject) -> None:
    pipeline = data.draw(pipelines(), label="pipeline")
    schedule = data.draw(schedules(pipeline, gpu=data.draw(st.booleans())), label="schedule")
    names = {f.name: f.name for f in pipeline.algorithm.funcs}
    names |= {a.name: a.name for a in pipeline.algorithm.inputs}
    names |= {x.name: x for x in (*pipeline.algorithm.sizes, *pipeline.algorithm.params)}
    scope = {"Schedule": Schedule, "Var": Var, pipeline.name: pipeline, **names}
    exec(schedule.to_python(), scope)
    assert scope["s"] == schedule


def test_one_chain_a_line_over_bare_names() -> None:
    s = Schedule(matmul())
    k, io, ii = Var("k"), Var("io"), Var("ii")
    s["C"].split(i, io, ii, 8, tail="guard").vectorize(j)
    s["C"].update(0).reorder(k, i, j)
    s["C"].parallel(io)
    assert str(s).splitlines()[-3:] == [
        's[C].split(i, io, ii, 8, tail="guard").vectorize(j)',
        "s[C].update(0).reorder(k, i, j)",
        "s[C].parallel(io)",
    ]


def test_names_and_objects_are_the_same() -> None:
    pipeline = rows()
    a, b = Schedule(pipeline), Schedule(pipeline)
    a["g"].split("i", "io", "ii", 4)
    b["g"].split(i, Var("io"), Var("ii"), 4)
    assert a == b
    assert hash(a) == hash(b)


def test_a_copy_goes_its_own_way() -> None:
    s = Schedule(rows())
    s["g"].split(i, "io", "ii", 4)
    other = s.copy()
    assert other == s
    other["g"].vectorize("ii")
    assert other != s
    assert "vectorize" not in str(s)


def test_order_is_part_of_a_schedule() -> None:
    pipeline = rows()
    a, b = Schedule(pipeline), Schedule(pipeline)
    a["g"].vectorize(j).parallel(i)
    b["g"].parallel(i).vectorize(j)
    assert a != b


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("s[g].splt(i, io, ii, 4)", "unknown-directive", "splt"),
        ("s[g].split(i, io, ii)", "bad-arguments", "split(i, io, ii)"),
        ("s[g].split(i, io, ii, four)", "bad-arguments", "four"),
        ("s[g].parallel(i", "unexpected-text", "s[g].parallel(i"),
    ],
)
def test_what_is_no_schedule_is_shown_with_a_caret(text: str, code: str, shown: str) -> None:
    with pytest.raises(ParseError) as caught:
        Schedule.parse(text, rows(), path="blur.sched")
    assert caught.value.code == code
    message = str(caught.value)
    assert "blur.sched:1:" in message
    assert shown in message
    assert "^" in message


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("s[g].split(k, ko, ki, 4)", "unknown-loop"),
        ("s[q].parallel(i)", "unknown-func"),
        ("s[g].update(0).parallel(i)", "unknown-update"),
    ],
)
def test_a_directive_that_is_refused_points_into_the_text(line: str, code: str) -> None:
    with pytest.raises(ScheduleError, match=code) as caught:
        Schedule.parse(f"s[g].parallel(i)\n{line}", rows(), path="my.sched")
    assert caught.value.span is not None
    assert (caught.value.span.path, caught.value.span.line) == ("my.sched", 2)


def test_every_directive_is_a_method_with_a_page() -> None:
    from tensorlang.directives import DIRECTIVES
    from tensorlang.schedule import Stage

    for keyword, directive in DIRECTIVES.items():
        assert getattr(Stage, keyword).__doc__ == directive.__doc__
        assert directive.__doc__


def test_the_loops_of_a_schedule_print() -> None:
    s = Schedule(rows())
    s["g"].split(i, "io", "ii", 4).parallel("io")
    text = s.loop_nest()
    assert "parallel" in text
    assert "io" in text
