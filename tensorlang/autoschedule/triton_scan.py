"""Scans for Triton: whole rows in lanes, or tiles one after the other that carry what came before.

rows        a row a program, all of it at once; a long one in tiles
columns     some columns a program, rows of them in tiles
inside      a scan that one Func reads at its own point, in that Func's rows
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tensorlang.algorithm import FuncRecord
from tensorlang.autoschedule.extents import Extents
from tensorlang.autoschedule.triton_matmul import power_of_two
from tensorlang.directives.order import scan_over
from tensorlang.schedule import Schedule

# The longest row that is scanned at once, and the points of a tile of a longer one.
LONGEST_ROW, _TILE = 16384, 8192
# Columns of a tile, and elements of it: narrow, so that every multiprocessor has programs, each
# with three tiles on their way.
_COLUMNS, _TILE_OF_COLUMNS, _STAGES = 32, 4096, 4


@dataclass(frozen=True, slots=True)
class ScanShape:
    """A Func that is one scan: the position of the dimension that it runs along, and its loop."""

    dim: int
    variable: str


def scan_shape(func: FuncRecord) -> ScanShape | None:
    """The scan that a Func is, where its points can be computed at once."""
    if len(func.definitions) != 2:
        return None
    update = func.definitions[1]
    names = () if update.domain is None else update.domain.names
    scanned = [k for k, v in enumerate(update.pure) if v is None]
    if len(names) != 1 or len(scanned) != 1 or scan_over(func.name, update, names[0]) is None:
        return None
    return ScanShape(scanned[0], names[0])


def schedule_scan(schedule: Schedule, extents: Extents, func: FuncRecord, scan: ScanShape) -> None:
    """The update of a scan at root."""
    update = schedule[func.name].update(0)
    pure = [v for v in func.definitions[1].pure if v is not None]
    shape = extents.shape(func)
    inner = pure[scan.dim :]
    if inner and shape[-1] > 1:
        width = min(_COLUMNS, power_of_two(shape[-1]))
        update.split(inner[-1], "columns", "column", width)
        update.split(scan.variable, "tile", "row", max(16, _TILE_OF_COLUMNS // width))
        blocks = [*pure[:-1], "columns"]
        update.reorder(*blocks, "tile", "row", "column").gpu_blocks(*blocks).gpu_warps(4)
        update.vectorize("row").vectorize("column").pipeline("tile", _STAGES)
        return
    length = shape[scan.dim]
    if length <= LONGEST_ROW:
        update.reorder(*pure, scan.variable).vectorize(scan.variable)
    else:
        update.split(scan.variable, "tile", "row", _TILE).reorder(*pure, "tile", "row")
        update.vectorize("row").pipeline("tile", _STAGES)
    if pure:
        update.gpu_blocks(*pure).gpu_warps(warps_of(min(length, _TILE)))


def warps_of(row: int) -> int:
    """So many that a thread has 32 elements of a row at most."""
    return max(1, min(16, power_of_two(row) // 1024))


def schedule_inside(
    schedule: Schedule,
    func: FuncRecord,
    scan: ScanShape,
    consumer: FuncRecord,
    home: Sequence[str],
    length: int,
) -> None:
    """A scan inside the rows of its consumer: both have the whole row in lanes.

    Args: home: the dimensions of the scan in the names of the consumer.
    """
    row = home[scan.dim]
    blocks = [v for v in consumer.dims if v != row]
    stage = schedule[consumer.name].reorder(*blocks, row)
    stage.gpu_blocks(*blocks).vectorize(row).gpu_warps(warps_of(length))
    made = schedule[func.name].compute_at(consumer.name, blocks[-1])
    made.vectorize(func.dims[scan.dim])
    made.update(0).vectorize(scan.variable)
