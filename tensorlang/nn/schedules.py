"""Schedules that several operators share."""

from collections.abc import Mapping

from tensorlang.algorithm import FuncRecord, reads_of
from tensorlang.ir.expr import Expr, Size
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

_LANES = 16
# A row of more elements is taken in slices, each by so many warps.
_LONGEST_ROW, _SLICE, _WARPS_OF_SLICE = 1 << 15, 1 << 12, 4


def rows(pipeline: Pipeline, target: str) -> Schedule | None:
    """On C: for each row in parallel, its reductions and then its elements, while it is in cache.

    parallel i { for each reduction f[i] { for k by lanes: f.update }; for j by lanes: out[i, j] }

    Outputs beside the first, of Inputs alone, have their elements in the same loop over rows.  None
    where another formula is as good: on Triton, and where not every reduction is of a row.
    """
    algorithm = pipeline.algorithm
    (name, shape), *others = algorithm.outputs
    out = algorithm.func(name)
    reductions = [f for f in algorithm.funcs if not f.is_pure]
    if target != "c" or len(shape) != 2 or not out.is_pure:
        return None
    beside = [algorithm.func(other) for other, _ in others]
    funcs = {f.name for f in algorithm.funcs}
    if any(f.dims != out.dims or reads_of(f) & funcs for f in beside):
        return None
    if not all(_is_of_row(f) for f in reductions):
        return None
    schedule = Schedule(pipeline)
    row, column = out.dims
    for f in (out, *beside):
        _lanes(schedule, schedule[f.name].parallel(row), f.name, 0, column)
    for f in beside:
        schedule[f.name].compute_with(name, row)
    for f in reversed(reductions):
        schedule[f.name].compute_at(name, row)
        domain = f.definitions[1].domain
        if domain is not None:
            update = schedule[f.name].update(0)
            _lanes(schedule, update, f.name, 1, domain.names[0])
    return schedule


def soft_rows(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """What takes the largest of a row, `top`, and a sum of exponentials below it, `total`; or sums.

    On Triton a row that registers do not hold is taken in slices; else as `rows`.
    """
    if target == "triton" and sizes.get("N", 0) > _LONGEST_ROW:
        return in_slices(pipeline)
    return rows(pipeline, target)


def in_slices(
    pipeline: Pipeline,
    length: int = _SLICE,
    *,
    warps: int = _WARPS_OF_SLICE,
    stages: int = 0,
    programs: int = 0,
) -> Schedule:
    """blocks of i { for slices { top; repair total; total }; for slices of j: out[i, j] }

    A row is read once for both reductions, and from the cache for what comes after them.

    Args:
        length: of a slice.
        warps, stages: of a program, and of its loop over slices; 0: Triton's own choice.
        programs: how many there are, which take turns at the rows, so that the rows of all of them
            fit the cache; 0: one for each row.
    """
    schedule = Schedule(pipeline)
    # Outputs without columns are computed with those that have some.
    *others, name = sorted(
        (name for name, _ in pipeline.algorithm.outputs),
        key=lambda name: len(schedule.state.funcs[name].dims),
    )
    row, *columns = schedule.state.funcs[name].dims
    inner = "turn" if programs else row
    for output in (name, *others):
        stage = schedule[output]
        if programs:
            stage.split(row, "turn", "program", programs).reorder("program", "turn")
        stage.gpu_blocks("program" if programs else row)
    schedule[name].gpu_warps(warps)
    for other in others:
        schedule[other].compute_with(name, inner)
    for column in columns:
        schedule[name].split(column, "slice", "lane", length).vectorize("lane")
        if stages:
            schedule[name].pipeline("slice", stages)
    for f in reversed(pipeline.algorithm.funcs):
        domain = None if f.is_pure else f.definitions[1].domain
        if domain is not None:
            _slices_of(schedule, f, domain.names[0], (name, inner), length, stages)
    if any(f.name == "top" for f in pipeline.algorithm.funcs):
        schedule["top"].rolling_update("total", "slice")
    if columns and programs:
        schedule["x"].cache("evict_last")
        schedule[name].cache("evict_first")
    return schedule


def _slices_of(
    schedule: Schedule, f: FuncRecord, r: str, at: tuple[str, str], length: int, stages: int
) -> None:
    """A reduction of a row, computed at `at`; `top` is to be rolled along the slices of another."""
    update = schedule[f.name].compute_at(*at).update(0)
    if f.name == "top":
        update.vectorize(r)
        return
    update.split(r, "slice", "lane", length).reorder("slice", *f.dims, "lane").vectorize("lane")
    if stages:
        update.pipeline("slice", stages)


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


def columns(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton: out[a, b] of a reduction over rows, its lanes along columns, where those are many.

    blocks of (part, a, columns) { for rows of the part: partial }    then the partial ones, merged

    None where a formula is as good: on C, and where the columns are few.
    """
    if target != "triton" or sizes.get("B", 0) < _WARP:
        return None
    schedule = Schedule(pipeline)
    ((out, _),) = pipeline.algorithm.outputs
    reductions = [f for f in pipeline.algorithm.funcs if not f.is_pure]
    if len(reductions) != 1:
        return None
    in_parts(schedule, out, reductions[0].name, sizes)
    return schedule


def in_parts(schedule: Schedule, out: str, total: str, sizes: Mapping[str, int]) -> None:
    """total[.., b], read by out at its own point, as partial sums that run at once.

    blocks (u, .., b_o) { for tiles of rows of part u: partial[u, .., b] }
    blocks (.., b_o) { merge, all parts in lanes; out }
    """
    func = schedule.state.funcs[total]
    domain = func.definitions[1].domain
    assert domain is not None
    row, *rest = domain.names
    count = sizes.get(_name_of(domain.dims[0][2]), 1 << 13)
    part = max(16, min(_LONGEST_PART, count // _PARTS))
    *outer, column = schedule.state.funcs[out].dims
    schedule[out].split(column, "columns", "lane", _WARP)
    schedule[out].gpu_blocks(*outer, "columns").vectorize("lane").gpu_warps(4)
    step = schedule[total].update(0).split(row, "part", "row_in", part)
    partial = step.rfactor("part", "u")
    stored = schedule[partial].in_(total)
    *inner, last = func.dims
    schedule[total].compute_at(out, "columns").vectorize(last)
    schedule[total].update(0).reorder(*inner, "part", last).vectorize("part").vectorize(last)
    copy = schedule[stored].compute_root().split(last, "columns", "lane", _LANES_OF_COLUMNS)
    copy.gpu_blocks("u", *inner, "columns").vectorize("lane").gpu_warps(1)
    schedule[partial].compute_at(stored, "columns").vectorize(last)
    update = schedule[partial].update(0).split("row_in", "tile", "row_lane", _ROWS)
    update.reorder("u", *inner, *rest, "tile", "row_lane", last)
    update.vectorize("row_lane").vectorize(last)


# Columns of one warp, 32 bytes a thread, and rows read at once; parts enough to fill a GPU, none of
# them long.
_WARP, _LANES_OF_COLUMNS, _ROWS, _PARTS, _LONGEST_PART = 32, 256, 8, 64, 128


def _name_of(e: Expr) -> str:
    return e.name if isinstance(e, Size) else ""


def domain_of(func: FuncRecord) -> tuple[tuple[str, Expr, Expr], ...]:
    """The variables that a reduction runs over, each with its first value and its extent."""
    domain = func.definitions[1].domain
    return () if domain is None else domain.dims


# Rows of a matrix unit.
_UNIT = 64


def tiles_of_dots(
    schedule: Schedule,
    names: tuple[str, str],
    tile: Mapping[str, int],
    depth: tuple[str, int],
    *,
    warps: int = 4,
) -> None:
    """blocks of tiles of out { acc = 0; for all but depth { for slices of it: acc += dot }; out }

    The rows of a matrix unit are 64: a dimension that is shorter becomes the columns.

    Args:
        names: of out, and of acc, which has the same dimensions.
        tile: the extents of the two dimensions that are a tile.
        depth: the reduced variable that is sliced, and how many of it a slice has; 0: all, and
            slices are of the last of the others.
        warps: of a program.
    """
    out, acc = names
    dims = schedule.state.funcs[acc].dims
    own = dict(zip(dims, schedule.state.funcs[out].dims, strict=True))
    lanes = sorted(tile, key=dims.index)
    if tile[lanes[0]] < _UNIT <= tile[lanes[1]]:
        lanes.reverse()
    stage, blocks = schedule[out], [own[v] for v in dims if v not in tile]
    for v in lanes:
        stage.split(own[v], f"{own[v]}_out", f"{own[v]}_in", tile[v])
    inner = [f"{own[v]}_in" for v in lanes]
    blocks += [f"{own[v]}_out" for v in sorted(lanes, key=dims.index)]
    stage.reorder(*blocks, *inner).gpu_blocks(*blocks).gpu_warps(warps)
    made = schedule[acc].compute_at(out, blocks[-1])
    made.reorder(*(v for v in dims if v not in tile), *lanes)
    name, size = depth
    update = made.update(0)
    others = [n for n, _, _ in domain_of(schedule.state.funcs[acc]) if n != name]
    if size:
        update.split(name, f"{name}_out", f"{name}_in", size)
        name, others = f"{name}_in", [*others, f"{name}_out"]
    update.reorder(*others, *lanes, name).pipeline(others[-1], 3)
    for one, loops in ((stage, inner), (made, lanes), (update, [*lanes, name])):
        for loop in loops:
            one.vectorize(loop)
