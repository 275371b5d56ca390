"""Sums over rows for each column, for Triton: lanes along columns, rows in parts that run at once.

blocks (part, columns) { for rows of the part: partial }        blocks (columns) { merge; func }
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.algorithm import FuncRecord
from tensorlang.autoschedule.analysis import is_reduction
from tensorlang.autoschedule.extents import Extents
from tensorlang.ir.walk import loads_of
from tensorlang.schedule import Schedule

# 16 bytes a thread of one warp; parts enough to fill a GPU, none of them long.
_LANES, _PARTS, _SHORTEST_PART, _LONGEST_PART = 256, 128, 16, 128
# Columns that are worth it, and loads of a part that run ahead.
_FEWEST, _AHEAD = 64, 4


@dataclass(frozen=True, slots=True)
class Columns:
    """`func` is made at its own point of `total`, a sum over rows whose columns are side by side.

    Args: loops: those of the sum, the one over `rows` rows first.
    """

    schedule: Schedule
    func: FuncRecord
    total: FuncRecord
    loops: tuple[str, ...]
    rows: int

    @staticmethod
    def of(
        schedule: Schedule, extents: Extents, func: FuncRecord, members: Mapping[str, FuncRecord]
    ) -> "Columns | None":
        """None where rows are few, or it is another kind of reduction."""
        if len(members) != 1 or not func.is_pure or len(func.dims) != 1:
            return None
        (total,) = members.values()
        if len(total.definitions) != 2 or total.definitions[1].domain is None:
            return None
        update, domain = total.definitions[1], total.definitions[1].domain
        assert domain is not None
        lengths = {name: extents.of(n) for name, _, n in domain.dims}
        loops = sorted(lengths, key=lambda name: -lengths[name])
        rows = lengths[loops[0]]
        is_sum = is_reduction(total.name, update) and len(total.dtypes) == 1
        wide = extents.shape(func)[0] >= _FEWEST and rows >= 2 * _SHORTEST_PART
        if not is_sum or not wide or domain.where is not None or not _is_across(total):
            return None
        return Columns(schedule, func, total, tuple(loops), rows)

    def run(self) -> None:
        """Partial sums of parts of the rows, in memory; then their sum, and `func`."""
        schedule, total, (column,) = self.schedule, self.total.name, self.total.dims
        row, *rest = self.loops
        part = max(_SHORTEST_PART, min(_LONGEST_PART, self.rows // _PARTS))
        stage = schedule[self.func.name].split(self.func.dims[0], "columns", "lane", _LANES)
        stage.gpu_blocks("columns").vectorize("lane").gpu_warps(1)
        step = schedule[total].update(0).split(row, "part", "row_in", part)
        partial = step.rfactor("part", "u")
        stored = schedule[partial].in_(total)
        schedule[total].compute_at(self.func.name, "columns").vectorize(column)
        schedule[total].update(0).reorder("part", column).vectorize(column)
        copy = schedule[stored].compute_root().split(column, "columns", "lane", _LANES)
        copy.gpu_blocks("u", "columns").vectorize("lane").gpu_warps(1)
        schedule[partial].compute_at(stored, "columns").vectorize(column)
        update = schedule[partial].update(0).reorder("u", *rest, "row_in", column)
        update.vectorize(column).pipeline("row_in", _AHEAD)


def _is_across(total: FuncRecord) -> bool:
    """Whether what varies by column lies side by side along the columns."""
    update = total.definitions[1]
    pure = {v for v in update.pure if v is not None}
    loads = [x for x in loads_of(*update.values) if x.buffer != total.name and x.free & pure]
    return len(total.dims) == 1 and bool(loads) and all(x.indices[-1].free & pure for x in loads)
