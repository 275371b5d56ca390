"""What a user's own test of an operator does: it passes, or shrinks to a program that fails."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, Schedule, ScheduleError, Size, Var, bf16, f32, lower
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Const
from tensorlang.ir.stmt import For, LoopKind, Program, Stmt, map_children
from tensorlang.ir.types import DType
from tensorlang.target import Target, available
from tensorlang.testing import assert_equivalent
from tensorlang.testing.trials import Trial, trials

N = Size("N")
i, j = Var("i"), Var("j")
quick = settings(
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate, Phase.shrink],
)


def doubled(dtype: DType = f32) -> Pipeline:
    a, f, out = Input("a", dtype, [4, N]), Func("f"), Func("out")
    f[i, j] = f32(a[i, j]) * 2
    out[i, j] = f[i, j] + 1
    return Pipeline("doubled", inputs=[a], outputs={out: [4, N]})


def forget_the_last(program: Program) -> Program:
    """A fault: an unrolled loop loses its last iteration."""

    def cut(stmt: Stmt) -> Stmt:
        stmt = map_children(stmt, cut)
        match stmt:
            case For(kind=LoopKind.UNROLLED, extent=Const() as extent) if extent.value > 1:
                return replace(stmt, extent=Const(extent.value - 1, extent.dtype))
            case _:
                return stmt

    return replace(program, body=cut(program.body))


@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    at = [step.name for step in lower.PASSES].index("unroll_loops")
    passes = (*lower.PASSES[:at], lower.Pass(forget_the_last), *lower.PASSES[at:])
    monkeypatch.setattr(lower, "PASSES", passes)


def program_in(error: BaseException) -> str:
    (note,) = (n for n in error.__notes__ if n.startswith("A program that reproduces this"))
    return note.partition("\n\n")[2]


def test_three_lines_test_an_operator() -> None:
    @settings(quick, max_examples=10)
    @given(trials(doubled()))
    def test_doubled(trial: Trial) -> None:
        assert trial.check("interpreter").exact == 4 * trial.case.arrays[0].shape[1]

    test_doubled()


@pytest.mark.usefixtures("faulty")
def test_a_failure_shrinks_to_the_fewest_directives() -> None:
    seen: list[Trial] = []

    @seed(2)
    @settings(quick, max_examples=500, report_multiple_bugs=False)
    @given(trials(doubled(), most=3))
    def test_doubled(trial: Trial) -> None:
        seen.append(trial)
        trial.check("interpreter")

    with pytest.raises(InternalError):
        test_doubled()
    trial = seen[-1]
    applied = trial.schedule.applied
    assert "unroll" in str(trial.schedule)
    assert len(applied) < max(len(t.schedule.applied) for t in seen)
    # Without any one of them nothing fails.
    for left_out in range(len(applied)):
        fewer = Schedule(trial.pipeline)
        for a in applied[:left_out] + applied[left_out + 1 :]:
            with suppress(ScheduleError):
                fewer.apply(a.func, a.number, a.directive, a.path)
        Trial(trial.pipeline, fewer, trial.case).check("interpreter")


def test_the_program_of_a_failure_fails_as_long_as_the_fault_is_there(
    request: pytest.FixtureRequest,
) -> None:
    request.getfixturevalue("faulty")
    pipeline = doubled()
    schedule = Schedule(pipeline)
    schedule["out"].unroll(i)
    with pytest.raises(InternalError) as caught:
        assert_equivalent(pipeline, schedule, "interpreter")
    program = program_in(caught.value)
    assert "s[out].unroll(i)" in program
    with pytest.raises(InternalError, match="never written"):
        exec(program, {})
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.undo()
    exec(program, {})


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("dtype", [f32, bf16, tl.u8, tl.bool], ids=str)
def test_the_program_has_arrays_of_any_dtype(dtype: DType) -> None:
    pipeline = doubled(dtype)
    schedule = Schedule(pipeline)
    schedule["out"].unroll(i)
    with pytest.raises(InternalError) as caught:
        assert_equivalent(pipeline, schedule, "interpreter")
    with pytest.raises(InternalError) as again:
        exec(program_in(caught.value), {})
    assert str(again.value) == str(caught.value)


@pytest.mark.usefixtures("faulty")
def test_arrays_that_nobody_reads_are_not_printed() -> None:
    import numpy as np

    pipeline = doubled()
    schedule = Schedule(pipeline)
    schedule["out"].unroll(i)
    with pytest.raises(InternalError) as caught:
        assert_equivalent(pipeline, schedule, "interpreter", [np.zeros((4, 2000), np.float32)])
    assert program_in(caught.value).startswith("# The inputs have 8000 elements")


@pytest.mark.cc
def test_all_targets_are_those_that_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    compile_for = Pipeline.compile

    def noting(self: Pipeline, schedule: Schedule | None, target: Target) -> object:
        ran.append(target.name)
        return compile_for(self, schedule, target)

    monkeypatch.setattr(Pipeline, "compile", noting)
    report = assert_equivalent(doubled(), None, "all")
    here = [n for n, found in available().items() if found.works and n != "reference"]
    assert ran == here
    assert report.elements == len(here) * 4 * 13
