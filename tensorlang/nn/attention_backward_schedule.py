"""How attention's gradient runs: one kernel for keys and values, one for queries."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tensorlang.errors import InternalError
from tensorlang.ir.expr import Const, Select
from tensorlang.ir.walk import postorder
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule, Stage

_GRADIENTS = ("grad_q", "grad_k", "grad_v")
# Queries of which one program has the sums.
_ROWS = 32


@dataclass(frozen=True, slots=True)
class Tile:
    """Rows of a gradient that one program has, and those of the other sequence that it takes."""

    rows: int
    step: int
    warps: int
    stages: int


def backward(
    pipeline: Pipeline,
    target: str,
    *,
    keys: Tile | None = None,
    queries: Tile | None = None,
    descriptors: bool = True,
) -> Schedule | None:
    """The gradients of keys and values in one kernel, that of queries in another.

    blocks of (h, b, io) { grad_total }
    blocks of (b, h, io) { for slices of keys { dot; weight; grad_weight; grad_dot; grad_q_sum } }
    blocks of (b, g, jo) { for slices of queries { dot; weight; grad_v_sum; grad_weight; grad_dot;
                                                   grad_k_sum }; grad_v; grad_k }

    There the tiles of scores have the keys as rows, as the sums have, so that the matrix unit takes
    weights from registers.  None for f32 and f64, and where a mask that is data, but no range of
    keys, stands in the products, which no matrix unit takes: a formula does as well.

    Args:
        keys, queries: the tiles of the two kernels; None: what was best on an H200.
        descriptors: whether tensor memory access reads and writes the tiles, where arrays fit.
    """
    funcs = {f.name for f in pipeline.algorithm.funcs}
    names = [name for name, _ in pipeline.algorithm.outputs if name in _GRADIENTS]
    if target != "triton" or any(f"{name}_sum" not in funcs for name in names):
        return None
    if "grad_weight" in funcs and not _is_product(pipeline, "grad_weight"):
        return None
    schedule = Schedule(pipeline)
    if descriptors:
        for record in pipeline.algorithm.inputs:
            if record.name in ("q", "k", "v", "grad_out"):
                schedule[record.name].load_with("descriptor")
    if "grad_total" in funcs:
        _row_sums(schedule)
    for group in _kernels(pipeline, names):
        by_keys = group[0] != "grad_q"
        tile = keys if by_keys else queries
        _kernel(schedule, group, tile or _tile_of(pipeline, by_keys), descriptors)
    return schedule


def _is_product(pipeline: Pipeline, name: str) -> bool:
    """Whether a sum is one of products under no condition of their own."""
    values = pipeline.algorithm.func(name).definitions[1].values
    return not any(isinstance(e, Select) for e in postorder(*values))


def _tile_of(pipeline: Pipeline, by_keys: bool) -> Tile:
    """64 rows are what one group of four warps multiplies, two of which fit a multiprocessor."""
    features = pipeline.algorithm.inputs[0].shape[-1]
    width = int(features.value) if isinstance(features, Const) else 128
    if width > 128:
        return Tile(64, 32, 8, 2)
    if width <= 64:
        return Tile(64, 64, 4, 3) if by_keys else Tile(128, 64, 8, 3)
    return Tile(64, 64, 4, 2)


def _kernels(pipeline: Pipeline, names: Sequence[str]) -> list[list[str]]:
    """Which gradients have a kernel together: sums over one domain."""
    found: dict[tuple[object, ...], list[str]] = {}
    for name in sorted(names, reverse=True):
        domain = pipeline.algorithm.func(f"{name}_sum").definitions[1].domain
        if domain is None:
            raise InternalError(f"{name}_sum is no sum")
        key = tuple(part for _, low, extent in domain.dims for part in (id(low), id(extent)))
        found.setdefault((name == "grad_q", *key), []).append(name)
    return list(found.values())


def _row_sums(schedule: Schedule) -> None:
    """What the weights of a query have in common, by rows."""
    func = "grad_whole" if "grad_whole" in schedule.state.funcs else "grad_total"
    rows = schedule[func].compute_root().split("i", "io", "ii", _ROWS)
    rows.reorder("h", "b", "io", "ii").gpu_blocks("h", "b", "io").vectorize("ii")
    update = schedule[func].update(0).split("i", "io", "ii", _ROWS)
    update.reorder("h", "b", "io", "ii", "d").gpu_blocks("h", "b", "io")
    _vectorized(update, "ii", "d").compute_with(func, "io")


def _kernel(schedule: Schedule, names: Sequence[str], tile: Tile, descriptors: bool) -> None:
    """Gradients of which a program has a tile each: one loop over slices of the other sequence."""
    first, summed = names[0], f"{names[0]}_sum"
    for name in names:
        batch, head, row, feature = schedule.state.funcs[name].dims
        out = schedule[name].split(row, "to", "ti", tile.rows)
        out.reorder(head, batch, "to", "ti", feature).gpu_blocks(head, batch, "to")
        _vectorized(out, "ti", feature).gpu_warps(tile.warps)
        if descriptors:
            out.store_with("descriptor")
    for name in names:
        own = f"{name}_sum"
        *pure, row, feature = schedule.state.funcs[own].dims
        _vectorized(schedule[own].compute_at(first, "to"), row, feature)
        domain = schedule.state.funcs[own].definitions[1].domain
        if domain is None:
            raise InternalError(f"{own} is no sum")
        *heads, last = domain.names
        update = schedule[own].update(0).split(last, "so", "si", tile.step)
        update.reorder(*heads, "so", *pure, row, feature, "si").pipeline("so", tile.stages)
        _vectorized(update, row, feature, "si")
        if name != first:
            schedule[name].compute_with(first, "to")
            update.compute_with(summed, "so")
    by_keys = first != "grad_q"
    sums = [f"{name}_sum" for name in names]
    pairs = _own_pairs(schedule, sums)
    for func in pairs:
        stage = schedule[func].compute_at(summed, "so")
        batch, head, query, key = schedule.state.funcs[func].dims
        axes = (key, query) if by_keys else (query, key)
        _vectorized(stage.reorder(batch, head, *axes), *axes)
        if not schedule.state.funcs[func].is_pure:
            inner = schedule.state.funcs[func].definitions[1].domain
            names_ = () if inner is None else inner.names
            update = schedule[func].update(0).reorder(batch, head, *axes, *names_)
            _vectorized(update, *axes, *names_)
    held, passing = (("k", "v"), ("q", "grad_out_sum"))[:: 1 if by_keys else -1]
    for arrays, level in ((held, (first, "to")), (passing, (summed, "so"))):
        for array in arrays:
            copy = _copied(schedule, array, {*sums, *pairs})
            if copy is not None:
                _vectorized(schedule[copy].compute_at(*level), *schedule.state.funcs[copy].dims[2:])


def _copied(schedule: Schedule, array: str, readers: Collection[str]) -> str | None:
    """A tile of an Input, or of what is read like one, for these readers alone."""
    algorithm = schedule.state.algorithm
    users = algorithm.consumers(array)
    mine = [name for name in users if name in readers]
    if not mine:
        return None
    if array not in schedule.state.funcs:
        return schedule[array].in_(*mine).name
    return schedule[array].clone_in(*mine).name if len(mine) < len(users) else array


def _own_pairs(schedule: Schedule, readers: Sequence[str]) -> list[str]:
    """The Funcs of pairs of a query and a key that sums need, as copies that no other reads."""
    pairs = {"dot", "score", "weight"}
    pairs |= {f"grad_{name}" for name in pairs}
    mine, found = set(readers), list[str]()
    for func in reversed(schedule.state.algorithm.funcs):
        users = schedule.state.algorithm.consumers(func.name)
        used = [name for name in users if name in mine]
        if func.name in pairs and used:
            is_shared = len(used) < len(users)
            own = schedule[func.name].clone_in(*used).name if is_shared else func.name
            mine.add(own)
            found.append(own)
    return found


def _vectorized(stage: Stage, *loops: str) -> Stage:
    for loop in loops:
        stage.vectorize(loop)
    return stage
