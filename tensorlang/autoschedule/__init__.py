"""Schedules from formulas: what a Pipeline that is called without a schedule runs under.

The scheduler of a target is loaded when it is first asked for: `import tensorlang` stays cheap.
"""

from collections.abc import Mapping

from tensorlang.algorithm import Algorithm
from tensorlang.schedule import HasAlgorithm, Schedule
from tensorlang.target import Target

__all__ = ["autoschedule"]


def autoschedule(
    pipeline: HasAlgorithm, target: str | Target = "c", sizes: Mapping[str, int] | None = None
) -> Schedule:
    """A good schedule of the whole pipeline for `target`, without search.

    It prints, so that it can be a start for one's own.

    Args:
        sizes: the Sizes that are known; those that are not are taken for large.
    """
    algorithm: Algorithm = pipeline.algorithm
    where = Target.of(target)
    if where.name == "triton":
        from tensorlang.autoschedule.triton import schedule_triton

        return schedule_triton(algorithm, where, sizes or {})
    if where.name == "c":
        from tensorlang.autoschedule.c import schedule_c

        return schedule_c(algorithm, where, sizes or {})
    from tensorlang.autoschedule.default import default_schedule

    return default_schedule(algorithm, where)
