"""How the gradients of norms of rows run on a GPU: one pass for the rows, and their sums beside it.

    blocks of rows p {
        for the rows r: statistics; grad_x
        for the rows r: statistics; partial[p, j] += ...        one for each of weight and bias
    }
    blocks of columns { grad_weight = sum(partial, over=p) }

The rows of a block are few, so that their second reading meets a cache.
"""

from collections.abc import Mapping

from tensorlang.algorithm import reads_of
from tensorlang.nn.schedules import rows
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule

# The longest row that a program holds; lanes of a warp along columns; blocks of rows at most.
_LONGEST_ROW, _COLUMNS, _BLOCKS = 16384, 256, 512


def norm_rows(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """Of a norm, `rows`; of its gradient on Triton, rows and partial sums in one kernel.

    None where a formula is as good.
    """
    if target != "triton":
        return rows(pipeline, target)
    outputs = [name for name, _ in pipeline.algorithm.outputs]
    if "grad_x" not in outputs or not 0 < sizes.get("N", 1) <= _LONGEST_ROW:
        return None
    funcs = {f.name: f for f in pipeline.algorithm.funcs}
    if any(f.dims not in (("i",), ("j",), ("i", "j")) for f in funcs.values()):
        return None
    schedule = Schedule(pipeline)
    part = max(1, min(16, sizes.get("M", 1) // _BLOCKS))
    stage = schedule["grad_x"].split("i", "p", "r", part).gpu_blocks("p").vectorize("j")
    stage.gpu_warps(_warps_for(sizes.get("N", 1)))
    for name, func in funcs.items():
        if not func.is_pure and func.dims == ("i",):
            _in_lanes(schedule, name, "grad_x", "r")
    for out in outputs:
        if out != "grad_x":
            _beside(schedule, out, part)
    return schedule


def _in_lanes(schedule: Schedule, name: str, at: str, loop: str) -> None:
    """A reduction of a row inside a loop, its domain in lanes."""
    made = schedule[name].compute_at(at, loop)
    for number, definition in enumerate(schedule.state.funcs[name].definitions[1:]):
        for reduced in definition.domain.names if definition.domain else ():
            made.update(number).vectorize(reduced)


def _beside(schedule: Schedule, out: str, part: int) -> None:
    """out[j], a sum over rows: its partial sums in the blocks of grad_x, and their sum."""
    funcs = {f.name: f for f in schedule.algorithm.funcs}
    total = f"{out}_sum" if f"{out}_sum" in funcs else out
    step = schedule[total].update(0).split("i", "part", "r", part)
    partial = step.rfactor("part", "p").name
    stored = schedule[partial].in_(total).name
    if total == out:
        _columns(schedule, out, 0)
    else:
        stage = schedule[out].split("j", "columns", "lane", _COLUMNS)
        stage.gpu_blocks("columns").vectorize("lane").gpu_warps(1)
        schedule[total].compute_at(out, "columns").vectorize("j")
        schedule[total].update(0).reorder("part", "j").vectorize("j").pipeline("part", 4)
    schedule[stored].compute_root().gpu_blocks("p").vectorize("j")
    schedule[partial].compute_at(stored, "p").vectorize("j")
    schedule[partial].update(0).reorder("p", "r", "j").vectorize("j")
    # What the partial sums need of a row they compute again: a Func inside a loop has one home.
    waiting = [(name, partial) for name in sorted(reads_of(funcs[total]) & funcs.keys() - {total})]
    while waiting:
        name, consumer = waiting.pop()
        clone = schedule[name].clone_in(consumer).name
        if not funcs[name].is_pure:
            _in_lanes(schedule, clone, partial, "r")
        waiting += [(n, clone) for n in sorted(reads_of(funcs[name]) & funcs.keys() - {name})]
    schedule[stored].compute_with("grad_x", "p")


def _columns(schedule: Schedule, out: str, number: int) -> None:
    """An output that is itself the sum: start and merge in one kernel, columns in lanes."""
    start = schedule[out].split("j", "columns", "lane", _COLUMNS)
    start.gpu_blocks("columns").vectorize("lane").gpu_warps(1)
    merge = schedule[out].update(number).split("j", "columns", "lane", _COLUMNS)
    merge.reorder("columns", "part", "lane").gpu_blocks("columns").vectorize("lane")
    merge.compute_with(out, "columns")


def _warps_for(row: int) -> int:
    return 2 if row <= 1024 else 4 if row <= 2048 else 8 if row <= 8192 else 16
