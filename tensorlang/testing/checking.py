"""check_schedule: one schedule against the algorithm, on inputs that are drawn."""

from hypothesis import HealthCheck, Phase, given, settings

from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target
from tensorlang.testing.oracle import Report, assert_equivalent
from tensorlang.testing.strategies import Case, inputs


def check_schedule(
    pipeline: Pipeline,
    schedule: Schedule | None = None,
    target: str | Target = "c",
    *,
    examples: int = 50,
) -> Report:
    """Raise AssertionError unless the schedule computes what the algorithm says, on drawn inputs.

    The sizes are small, with 0, 1 and those around powers of two among them, and the floats have
    NaN and infinities; a failure is shown on the smallest inputs that still fail.

    Args:
        examples: how many inputs are drawn; the same ones each time.
    """
    reports: list[Report] = []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        print_blob=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    @given(inputs(pipeline, schedule))
    def compare(case: Case) -> None:
        reports.append(
            assert_equivalent(
                pipeline, schedule, target, case.arrays, sizes=case.sizes, params=case.params
            )
        )

    compare()
    return sum(reports, Report())
