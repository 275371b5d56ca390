"""Trials of an operator: a schedule and a call of it, drawn together, and checked as one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target
from tensorlang.testing.oracle import Report, assert_equivalent
from tensorlang.testing.strategies import Case, inputs, schedules

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """A Pipeline under a Schedule, with arrays to call it on."""

    pipeline: Pipeline
    schedule: Schedule
    case: Case

    def check(self, target: str | Target = "all") -> Report:
        """Raise AssertionError unless the schedule computes what the algorithm says.

        Args:
            target: where it runs; "all" is every target that works here, one after the other.
        """
        case = self.case
        return assert_equivalent(
            self.pipeline,
            self.schedule,
            target,
            case.arrays,
            sizes=case.sizes,
            params=case.params,
        )

    def __repr__(self) -> str:
        shapes = ", ".join(str(a.shape) for a in self.case.arrays)
        directives = str(self.schedule).replace("\n", "; ") or "no directive"
        return f"<{self.pipeline.name}: {directives}; inputs {shapes or 'none'}>"


@st.composite
def trials(
    draw: Draw,
    pipeline: Pipeline,
    *,
    most: int = 8,
    gpu: bool = True,
    special: bool = True,
) -> Trial:
    """A legal Schedule of `pipeline` and inputs that it takes.

        @given(trials(softmax))
        def test_softmax(trial):
            trial.check("all")

    Args:
        most: directives of the schedule.
        gpu: with gpu_blocks among them, which run one after the other where there is no GPU.
        special: with NaN and infinities among the floats.
    """
    schedule = draw(schedules(pipeline, most=most, gpu=gpu))
    return Trial(pipeline, schedule, draw(inputs(pipeline, schedule, special=special)))
