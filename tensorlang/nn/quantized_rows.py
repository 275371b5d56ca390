"""How rows whose values leave as 8 bits are read on a GPU: once."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tensorlang.algorithm import reads_of
from tensorlang.nn.rows import BLOCKS, GROUPS, Rows
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage


@dataclass(frozen=True)
class Reading:
    """How rows are read.

    Args:
        rows: of a program.
        warps: of a program.
        stages: rows whose loads are in flight.
        blocks: of a row that a program takes; 0: all.
    """

    rows: int
    warps: int
    stages: int = 1
    blocks: int = 0


def in_one_read(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton each value is read once, by a program that makes its scale and its 8 bits.

    Where nothing is summed over rows a program takes some blocks of one, else rows.  None where a
    formula is as good: on C, and for rows that one program cannot hold.
    """
    rows = _rows_of(pipeline)
    if target != "triton" or rows is None:
        return None
    inside = [size.name for v, size in rows.shape.items() if v not in rows.row]
    row, block = prod(sizes.get(name, 1) for name in inside), sizes.get("T", 1)
    if not 0 < row <= _LONGEST_ROW:
        return None
    names = tuple(v.name for v in rows.row)
    whole = any(
        f.dims == names for f in pipeline.algorithm.funcs if f.name not in ("peak", "scale")
    )
    if rows is BLOCKS and not whole and row > 2 * _TILE_OF_BLOCKS and 0 < block <= _TILE_OF_BLOCKS:
        return read_by(pipeline, Reading(1, 4, blocks=_TILE_OF_BLOCKS // block))
    return read_by(pipeline, Reading(1, _warps_for(row)))


def _rows_of(pipeline: Pipeline) -> Rows | None:
    """Where its rows lie; None where they are no values that follow one another in memory."""
    dims = pipeline.algorithm.func("q").dims
    return next((r for r in (BLOCKS, GROUPS) if dims == tuple(v.name for v in r.point)), None)


def read_by(pipeline: Pipeline, reading: Reading) -> Schedule:
    """blocks p of rows { for rows { statistics; scales; values } }

    Two outputs share no Func that is computed inside a loop, so what `scale` needs is a clone; the
    backend finds that both compute the same.
    """
    schedule, funcs = Schedule(pipeline), {f.name: f for f in pipeline.algorithm.funcs}
    rows = _rows_of(pipeline)
    assert rows is not None
    row = tuple(v.name for v in rows.row)
    outputs = [name for name, _ in pipeline.algorithm.outputs]
    at = ""
    for name in outputs:
        at = _read(schedule[name], funcs[name].dims, row, reading)
    schedule["q"].gpu_warps(reading.warps)
    if reading.stages > 1:
        schedule["q"].pipeline(at, reading.stages)
    inside = [(name, "q") for name, f in funcs.items() if not f.is_pure]
    waiting = [(read, "scale") for read in reads_of(funcs["scale"]) & funcs.keys()]
    while waiting:
        name, consumer = waiting.pop()
        clone = schedule[name].clone_in(consumer).name
        if not funcs[name].is_pure:
            inside.append((clone, "scale"))
        reads = sorted(reads_of(funcs[name]) & funcs.keys() - {name})
        waiting += [(read, clone) for read in reads]
    for name, output in inside:
        func = schedule.state.funcs[name]
        made = schedule[name].compute_at(output, at)
        domain, update = func.definitions[1].domain, made.update(0)
        for loop in (v for v in func.dims if v not in row):
            made.vectorize(loop)
            update.vectorize(loop)
        for loop in () if domain is None else domain.names:
            update.vectorize(loop)
    for name in outputs[1:]:
        schedule[name].compute_with("q", at)
    return schedule


def _read(stage: Stage, dims: tuple[str, ...], row: tuple[str, ...], reading: Reading) -> str:
    """The loops over rows and blocks, and the name of the one in which a tile is made."""
    lanes, at = [v for v in dims if v not in row], row[-1]
    if reading.blocks:
        at = "tile"
        stage.split("c", at, "block", reading.blocks).gpu_blocks(*row, at)
        lanes[lanes.index("c")] = "block"
    elif reading.rows > 1:
        at = "row"
        stage.split(row[-1], "p", at, reading.rows).gpu_blocks(*row[:-1], "p")
    else:
        stage.gpu_blocks(*row)
    for lane in lanes:
        stage.vectorize(lane)
    return at


# The longest row that a program holds; values of a tile of blocks.
_LONGEST_ROW, _TILE_OF_BLOCKS = 32768, 2048


def _warps_for(row: int) -> int:
    return 4 if row <= 4096 else 8 if row <= 8192 else 16
