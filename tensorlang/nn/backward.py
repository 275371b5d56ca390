"""How the gradients of norms of rows run on a GPU: each row is read once, for all of them.

    blocks of rows p {
        partial[p, j] = 0                                   one for each of weight and bias
        for steps of a few rows { statistics; grad_x; partial[p, j] += ... }
    }
    blocks of columns { grad_weight = sum(partial, over=p); grad_bias = ... }

The partial sums stay in registers while their block runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorlang.algorithm import FuncRecord, reads_of
from tensorlang.nn.quantized_rows import in_one_read
from tensorlang.nn.schedules import rows
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

# The longest row that a program holds, and beside the partial sums of weight and bias.
_LONGEST_ROW, _LONGEST_PAIR = 16384, 8192
# Of the kernel that sums the partial sums: columns of a tile, the most parts, and its warps.
_COLUMNS, _LOTS, _MERGING_WARPS = 32, 256, 8
# Of a program that sums rows alone: how many, and columns at 16 bytes a thread.
_ROWS, _WIDE = 64, 1024


@dataclass(frozen=True)
class Runs:
    """How rows are dealt out.

    Args:
        rows: of a program.
        together: rows of one step, whose loads are in flight at once.
        warps: of a program.
        stages: steps whose loads are in flight.
        lots: partial sums that are read at once where they are summed.
    """

    rows: int
    together: int
    warps: int
    stages: int = 1
    lots: int = 256


def norm_rows(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """Of a norm, `rows`, or `in_one_read` of 8 bits, and with several outputs one kernel; of its
    gradient on Triton, rows and partial sums in one kernel.

    None where a formula is as good.
    """
    outputs = [name for name, _ in pipeline.algorithm.outputs]
    if outputs[0] == "q":
        return in_one_read(pipeline, target, sizes)
    if target != "triton":
        return rows(pipeline, target)
    if pipeline.algorithm.func(outputs[0]).dims != ("i", "j"):
        return None
    if outputs[0] == "out" and 0 < sizes.get("N", 1) <= _LONGEST_ROW:
        return in_one_kernel(pipeline, sizes.get("N", 1)) if len(outputs) > 1 else None
    if "grad_x" not in outputs or not 0 < sizes.get("N", 1) <= _LONGEST_ROW:
        return None
    if any(f.dims not in (("i",), ("j",), ("i", "j")) for f in pipeline.algorithm.funcs):
        return None
    if len(outputs) > 2 and sizes.get("N", 1) > _LONGEST_PAIR and _reads_inputs(pipeline):
        return in_two_reads(pipeline, 16)
    return in_runs(pipeline, runs_for(sizes.get("M", 1), sizes.get("N", 1)))


def _reads_inputs(pipeline: Pipeline) -> bool:
    """Whether no sum over rows reads a statistic that is computed."""
    funcs = {f.name: f for f in pipeline.algorithm.funcs}
    sums = [f for f in funcs.values() if f.dims == ("j",) and not f.is_pure]
    return all(reads_of(f) & funcs.keys() <= {f.name} for f in sums)


def in_one_kernel(pipeline: Pipeline, length: int) -> Schedule:
    """blocks of i { statistics; out[i, :]; the sum with a residual; what is kept of i }"""
    schedule, funcs = Schedule(pipeline), {f.name: f for f in pipeline.algorithm.funcs}
    out, *kept = (name for name, _ in pipeline.algorithm.outputs)
    schedule[out].gpu_blocks("i").vectorize("j").gpu_warps(_warps_for(length))
    one = Runs(1, 1, 0)
    for name, func in funcs.items():
        if not func.is_pure:
            _statistic(schedule, name, out, one, "i")
    for name in kept:
        stage = schedule[name].gpu_blocks("i")
        if "j" in funcs[name].dims:
            stage.vectorize("j")
        _cloned(schedule, name, funcs[name], one, "i")
        schedule[name].compute_with(out, "i")
    return schedule


def _warps_for(length: int) -> int:
    return 2 if length <= 1024 else 4 if length <= 4096 else 8


def runs_for(count: int, length: int) -> Runs:
    """For so many rows of that length: two programs of a multiprocessor, and of long rows one."""
    longest = length > _LONGEST_PAIR
    least, programs = (32, 128) if longest else (16, 256)
    rows = 1 << max(count // programs, least).bit_length() - 1
    if length <= 2048:
        return Runs(rows, 4, 4, 3)
    return Runs(rows, 1, 16, lots=128) if longest else Runs(rows, 1, 8, 3)


def in_runs(pipeline: Pipeline, runs: Runs) -> Schedule:
    """The schedule above, for the gradient of a norm."""
    schedule = Schedule(pipeline)
    funcs = {f.name: f for f in pipeline.algorithm.funcs}
    stage = _dealt(schedule["grad_x"], "p", runs).gpu_blocks("p").gpu_warps(runs.warps)
    _lanes(stage, runs, "row", "j").gpu_dependent_launch()
    if runs.stages > 1:
        stage.pipeline("step", runs.stages)
    for name, func in funcs.items():
        if not func.is_pure and func.dims == ("i",):
            _statistic(schedule, name, "grad_x", runs)
    others = [name for name, _ in pipeline.algorithm.outputs if name != "grad_x"]
    for out in others:
        _beside(schedule, out, runs)
    _merge_together(schedule, others)
    return schedule


def in_two_reads(pipeline: Pipeline, warps: int) -> Schedule:
    """blocks of i: grad_x[i, :]; then blocks of (p, columns) { for rows: partial[p, j] += ... }

    For rows of which a program cannot hold the partial sums beside the row itself.
    """
    schedule, funcs = Schedule(pipeline), {f.name: f for f in pipeline.algorithm.funcs}
    schedule["grad_x"].gpu_blocks("i").vectorize("j").gpu_warps(warps)
    for name, func in funcs.items():
        if not func.is_pure and func.dims == ("i",):
            _statistic(schedule, name, "grad_x", Runs(1, 1, warps), "i")
    first: tuple[str, str] | None = None
    for out in (name for name, _ in pipeline.algorithm.outputs if name != "grad_x"):
        total = f"{out}_sum" if f"{out}_sum" in funcs else out
        step = schedule[total].update(0).split("i", "part", "row", _ROWS)
        partial = step.rfactor("part", "p").name
        stored = schedule[partial].in_(total).name
        _merge(schedule, out, total, _LOTS)
        copy = schedule[stored].compute_root().split("j", "block", "lane", _WIDE)
        copy.gpu_blocks("p", "block").vectorize("lane").gpu_warps(4)
        schedule[partial].compute_at(stored, "block").vectorize("j")
        update = schedule[partial].update(0).reorder("p", "row", "j").vectorize("j")
        if first is None:
            update.pipeline("row", 4)
            first = stored, partial
        else:
            copy.compute_with(first[0], "block")
            update.compute_with(first[1], "row")
    _merge_together(schedule, [name for name, _ in pipeline.algorithm.outputs if name != "grad_x"])
    return schedule


def _dealt(stage: Stage, outer: str, runs: Runs) -> Stage:
    """for i   ->   for outer { for step { for row } }     a step of one row has no loop of rows"""
    if runs.together == 1:
        return stage.split("i", outer, "step", runs.rows)
    return stage.split("i", outer, "run", runs.rows).split("run", "step", "row", runs.together)


def _lanes(stage: Stage, runs: Runs, rows: str, *loops: str) -> Stage:
    """The rows of a step, where there are several, and other loops in lanes."""
    for loop in (rows, *loops) if runs.together > 1 else loops:
        stage.vectorize(loop)
    return stage


def _merge_together(schedule: Schedule, outs: Sequence[str]) -> None:
    """The sums of outputs that are rounded, in one kernel whose reads are in flight together."""
    funcs = {f.name for f in schedule.algorithm.funcs}
    first, *others = [out for out in outs if f"{out}_sum" in funcs] or [""]
    for out in others:
        schedule[out].compute_with(first, "columns")
        schedule[f"{out}_sum"].update(0).compute_with(f"{first}_sum", "turn")


def _statistic(schedule: Schedule, name: str, at: str, runs: Runs, loop: str = "step") -> None:
    """A reduction of each row of a step."""
    made = _lanes(schedule[name].compute_at(at, loop), runs, "i")
    for number, definition in enumerate(schedule.state.funcs[name].definitions[1:]):
        domain = definition.domain
        _lanes(made.update(number), runs, "i", *(domain.names if domain else ()))


def _beside(schedule: Schedule, out: str, runs: Runs) -> None:
    """out[j], a sum over rows: its partial sums in the loops of grad_x, and their sum."""
    funcs = {f.name: f for f in schedule.algorithm.funcs}
    total = f"{out}_sum" if f"{out}_sum" in funcs else out
    partial = _dealt(schedule[total].update(0), "part", runs).rfactor("part", "p").name
    stored = schedule[partial].in_(total).name
    _merge(schedule, out, total, runs.lots)
    schedule[stored].compute_root().gpu_blocks("p").vectorize("j")
    schedule[partial].compute_at(stored, "p").vectorize("j")
    rows = ("row",) if runs.together > 1 else ()
    _lanes(schedule[partial].update(0).reorder("p", "step", *rows, "j"), runs, "row", "j")
    _cloned(schedule, partial, funcs[total], runs)
    schedule[stored].compute_with("grad_x", "p")
    schedule[partial].update(0).compute_with("grad_x", "step")


def _cloned(
    schedule: Schedule, reader: str, func: FuncRecord, runs: Runs, loop: str = "step"
) -> None:
    """What `reader` needs of a row it names again: a Func inside a loop has one home."""
    funcs = {f.name: f for f in schedule.algorithm.funcs}
    waiting = [(name, reader) for name in sorted(reads_of(func) & funcs.keys() - {func.name})]
    while waiting:
        name, consumer = waiting.pop()
        clone = schedule[name].clone_in(consumer).name
        if not funcs[name].is_pure:
            _statistic(schedule, clone, reader, runs, loop)
        waiting += [(n, clone) for n in sorted(reads_of(funcs[name]) & funcs.keys() - {name})]


def _merge(schedule: Schedule, out: str, total: str, lots: int) -> None:
    """The sum of the partial sums, in tiles of so many parts and some columns."""
    update = schedule[total].update(0).split("part", "turn", "lot", lots)
    if total == out:
        start = schedule[out].split("j", "columns", "lane", _COLUMNS).gpu_blocks("columns")
        start.vectorize("lane").gpu_warps(_MERGING_WARPS).gpu_dependent_launch()
        update.split("j", "columns", "lane", _COLUMNS).reorder("columns", "turn", "lot", "lane")
        update.gpu_blocks("columns").vectorize("lot").vectorize("lane")
        update.compute_with(out, "columns")
        return
    stage = schedule[out].split("j", "columns", "lane", _COLUMNS).gpu_blocks("columns")
    stage.vectorize("lane").gpu_warps(_MERGING_WARPS).gpu_dependent_launch()
    schedule[total].compute_at(out, "columns").vectorize("j")
    update.reorder("turn", "lot", "j").vectorize("lot").vectorize("j")
