"""Schedules that several operators share."""

from tensorlang.algorithm import FuncRecord
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

_LANES = 16


def rows(pipeline: Pipeline, target: str) -> Schedule | None:
    """On C: for each row in parallel, its reductions and then its elements, while it is in cache.

    parallel i { for each reduction f[i] { for k by lanes: f.update }; for j by lanes: out[i, j] }

    None where another formula is as good: on Triton, and where not every reduction is of a row.
    """
    algorithm = pipeline.algorithm
    if target != "c" or len(algorithm.outputs) != 1:
        return None
    ((name, shape),) = algorithm.outputs
    out = algorithm.func(name)
    reductions = [f for f in algorithm.funcs if not f.is_pure]
    if len(shape) != 2 or not out.is_pure or not all(_is_of_row(f) for f in reductions):
        return None
    schedule = Schedule(pipeline)
    row, column = out.dims
    _lanes(schedule, schedule[name].parallel(row), name, 0, column)
    for f in reversed(reductions):
        schedule[f.name].compute_at(name, row)
        domain = f.definitions[1].domain
        if domain is not None:
            update = schedule[f.name].update(0)
            _lanes(schedule, update, f.name, 1, domain.names[0])
    return schedule


def _is_of_row(f: FuncRecord) -> bool:
    domain = f.definitions[1].domain
    one_update = len(f.definitions) == 2 and domain is not None and len(domain.dims) == 1
    return len(f.dims) == 1 and one_update


def _lanes(schedule: Schedule, stage: Stage, func: str, number: int, loop: str) -> None:
    """for loop   ->   for outer { vectorized inner }"""
    taken = {*schedule.state.nests[func, number].names()}
    outer, inner = (_fresh(f"{loop}_{part}", taken) for part in "oi")
    stage.split(loop, outer, inner, _LANES).vectorize(inner)


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name
