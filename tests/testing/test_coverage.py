"""The count of what drawn examples reached."""

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32
from tensorlang.directives import DIRECTIVES
from tensorlang.testing.coverage import FORMS, Coverage, forms_of

N = Size("N")
i = Var("i")


def doubled() -> Pipeline:
    a, f = Input("a", f32, [N]), Func("f")
    f[i] = a[i] * 2
    return Pipeline("doubled", inputs=[a], outputs={f: [N]})


def test_a_directive_counts_once_an_example() -> None:
    pipeline, coverage = doubled(), Coverage()
    schedule = Schedule(pipeline)
    schedule["f"].split(i, "io", "ii", 4).split("ii", "x", "y", 2)
    coverage.note(pipeline.algorithm, schedule)
    coverage.note(pipeline.algorithm, Schedule(pipeline))
    assert coverage.examples == 2
    assert coverage.directives == {"split": 1}
    assert (coverage + coverage).directives == {"split": 2}


def test_what_was_never_drawn_is_named() -> None:
    coverage = Coverage()
    assert coverage.never() == [*DIRECTIVES, *FORMS]
    assert "split 0" in str(coverage)


def test_a_pointwise_algorithm_has_no_form_to_speak_of() -> None:
    assert forms_of(doubled().algorithm) == set()
