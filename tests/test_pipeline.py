"""Pipeline: the one place that joins what, how and where."""

import warnings

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, Schedule, ScheduleError, Size, Var, f32, pipeline
from tensorlang.target import Availability
from tests.lower.algorithms import matmul, two_stages

N = Size("N")
i = Var("i")


def test_calling_it_runs_a_default_schedule_and_compiles_once() -> None:
    p = two_stages()
    values = np.arange(5, dtype=np.int32)
    assert np.array_equal(p(values), 2 * (values[1:] + values[:-1]))
    kernels = dict(p._kernels)
    assert len(kernels) == 1
    p(values)
    assert p._kernels == kernels


def test_without_a_compiler_it_warns_and_interprets(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = {"c": Availability(False, "no C compiler is found")}
    monkeypatch.setattr(pipeline, "available", lambda: missing)
    p = two_stages()
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        out = p(np.array([1, 2, 3], np.int32))
    assert out.tolist() == [6, 10]


@pytest.mark.parametrize("target", ["reference", "interpreter", "c", "triton"])
def test_a_kernel_knows_what_it_was_made_of(target: str) -> None:
    p = two_stages()
    s = Schedule(p)
    s["g"].split(i, "io", "ii", 4)
    kernel = p.compile(s, target=target)
    assert kernel.target.name == target
    assert kernel.schedule == s
    assert str(kernel.signature) == "two_stages(A: i32[N + 1]) -> g: i32[N]"
    assert kernel.loop_ir.name == "two_stages"


def test_a_kernel_keeps_its_schedule_when_that_goes_on() -> None:
    p = two_stages()
    s = Schedule(p)
    kernel = p.compile(s, target="interpreter")
    s["g"].split(i, "io", "ii", 4)
    assert kernel.schedule == Schedule(p)


def test_a_schedule_of_another_pipeline_is_refused() -> None:
    with pytest.raises(ScheduleError, match="other-pipeline") as caught:
        matmul().lower(Schedule(two_stages()))
    assert caught.value.span is not None
    assert caught.value.span.path == __file__


def test_lowering_shows_each_pass() -> None:
    names: list[str] = []
    two_stages().lower(trace=lambda name, program: names.append(name))
    assert names[0] == "build_nests"
    assert names[-1] == "unroll_loops"


@pytest.mark.parametrize("target", ["interpreter", "c", "triton"])
def test_the_default_schedule_is_legal_text(target: str) -> None:
    p = matmul()
    s = p.compile(target=target).schedule
    assert Schedule.parse(str(s), p) == s
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert np.array_equal(p.compile(s, target=target)(a, a.T.copy()), a @ a.T)


def test_several_outputs_come_back_in_their_order() -> None:
    a, f, g = Input("A", f32, [N]), Func("f"), Func("g")
    f[i] = a[i] + 1
    g[i] = f[i] * 2
    p = Pipeline("two", inputs=[a], outputs={g: [N], f: [N]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        double, plus = p(np.array([1, 2], np.float32))
    assert double.tolist() == [4, 6]
    assert plus.tolist() == [2, 3]


def test_it_prints_as_its_algorithm() -> None:
    assert "f[i] = A[i]*2" in str(two_stages())
    assert repr(two_stages()) == "<Pipeline 'two_stages': 2 Funcs>"
