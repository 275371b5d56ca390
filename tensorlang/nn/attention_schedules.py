"""How attention runs: tiles of queries for many of them, parts of the keys for few."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal, cast

from tensorlang.algorithm import FuncRecord
from tensorlang.ir.expr import Const, Size
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute
from tensorlang.nn.attention_backward_schedule import backward
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule

# Of few queries: the programs that fill a GPU (two on a multiprocessor of an H200, a power of two),
# and the least keys that are worth one: the more parts there are, the longer merging them takes.
PROGRAMS, SHORTEST_PART = 256, 512


# Up to so many queries each has programs of its own, which share out the keys.
FEW_QUERIES = 3


def attend(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """The schedule for as many queries as there are, or of a gradient."""
    if pipeline.algorithm.name == "attention_gradients":
        return backward(pipeline, target)
    if 0 < sizes.get("M", 0) <= FEW_QUERIES and len(pipeline.algorithm.outputs) == 1:
        return decode(pipeline, target, part=part_of(sizes))
    return flash(pipeline, target)


def part_of(sizes: Mapping[str, int]) -> int:
    """How many keys one program reads, so that there are as many programs as run at once."""
    rows = prod(sizes.get(name, 1) for name in ("B", "G", "M"))
    keys = rows * sizes.get("N", 1 << 13) // PROGRAMS
    return max(SHORTEST_PART, 1 << max(keys - 1, 0).bit_length())


def flash(
    pipeline: Pipeline,
    target: str,
    *,
    queries: int = 0,
    slices: int = 0,
    warps: int = 0,
    stages: int = 0,
    descriptors: bool = True,
) -> Schedule | None:
    """Every program a tile of queries; top, total and the sum roll over slices of the keys.

    blocks of (h, b, io) { for slices of keys { dot; score; top; weight; repair; total; sum }; out }

    On Triton queries that see all keys have two variants, unless `lse` is an output too: where
    slices divide the keys nothing is masked.  Under other masks the engine splits the loop.  The
    tile of Q is a copy of its own, read once; in the loop a descriptor would read it again.

    Args:
        queries, slices, warps, stages: of a tile; 0: what was best on an H200.
        descriptors: whether tensor memory access reads and writes the tiles, where arrays fit.
    """
    if pipeline.algorithm.name != "attention" or target not in ("c", "triton"):
        return None
    tiled = target == "triton"
    usual = _tile_of(pipeline) if tiled else (16, 32, 0, 0)
    queries, slices, warps, stages = (
        a or b for a, b in zip((queries, slices, warps, stages), usual, strict=True)
    )
    schedule = Schedule(pipeline)
    between = _between(pipeline, "score", "weight")
    out = schedule["out"].split("i", "io", "ii", queries).reorder("h", "b", "io", "ii", "d")
    if tiled:
        out.gpu_blocks("h", "b", "io").vectorize("ii").vectorize("d").gpu_warps(warps)
    else:
        out.parallel("h").vectorize("d")
    if len(pipeline.algorithm.outputs) > 1:
        _rows_beside(schedule, queries, tiled)
    summed = schedule["out_sum"].compute_at("out", "io")
    step = summed.update(0).split("r2", "ro", "ri", slices)
    step.reorder("ro", "b", "h", "i", *(("d", "ri") if tiled else ("ri", "d")))
    schedule["top"].rolling_update("out_sum", "ro")
    for name in ("dot", *between):
        schedule[name].compute_at("out_sum", "ro")
    if tiled:
        _tiles(schedule, ("top", "total", "out_sum"), ("r0", "r1", "ri"), between, "i")
        step.pipeline("ro", stages)
        _stage_queries(schedule, "out", "io")
        if descriptors:
            for name in ("q", "k", "v"):
                schedule[name].load_with("descriptor")
            schedule["out"].store_with("descriptor")
        if _sees_all(pipeline) and len(pipeline.algorithm.outputs) == 1:
            out.specialize(Size("N") % slices == 0)
        return schedule
    for stage in (summed, step):
        stage.vectorize("d")
    for name in ("dot", *between):
        schedule[name].vectorize("j")
    schedule["dot"].update(0).reorder("b", "h", "i", "e", "j").vectorize("j")
    return schedule


def _rows_beside(schedule: Schedule, queries: int, tiled: bool) -> None:
    """What the gradient keeps of a query, from the sums that its program has."""
    rows = schedule["lse"].split("i", "io", "ii", queries).reorder("h", "b", "io", "ii")
    if tiled:
        rows.gpu_blocks("h", "b", "io").vectorize("ii")
    else:
        rows.parallel("h")
    rows.compute_with("out", "io")


def decode(
    pipeline: Pipeline,
    target: str,
    *,
    part: int = 512,
    slices: int = 0,
    warps: int = 4,
    stages: int = 3,
    merge: Literal["kernel", "last"] = "last",
    merged: int = 16,
) -> Schedule | None:
    """Every program some keys, for the heads of Q that share them; the last one merges the parts.

    These heads are the rows of a tile, so that the matrix unit multiplies it.

    blocks of (b, g, i, u) { for slices of part u { dot; ...; sum_u }; (top_u, total_u, sum_u) }
    the last of (b, g, i)  { top; total; sum over parts; out }

    How many parts there are follows from how many keys a call has.

    Args:
        part, slices: the keys of a program, and those that it takes at a time.
        warps, stages: of a program, and of its loop.
        merge: whether the last program to arrive merges, or a kernel of its own.
        merged: how many parts are merged at one time.
    """
    if target != "triton" or pipeline.algorithm.name != "attention":
        return flash(pipeline, target)
    schedule = Schedule(pipeline)
    schedule["out_sum"].update(0).split("r2", "part", "rp", part)
    schedule["top"].rolling_update("out_sum", "part")
    partial = schedule["out_sum"].update(0).rfactor("part", "u", merge=merge)
    whole = schedule["out_sum_u_all"].compute_root().split("h", "g", "hi", _groups(pipeline))
    whole.reorder("b", "g", "i", "u", "hi", "d").gpu_blocks("b", "g", "i", "u").gpu_warps(warps)
    whole.vectorize("hi").vectorize("d")
    step = schedule[partial].compute_at("out_sum_u_all", "u").update(0)
    step.split("rp", "ro", "ri", slices or _slices(pipeline))
    step.reorder("ro", "u", "b", "h", "i", "d", "ri").pipeline("ro", stages)
    schedule["top_u"].rolling_update(partial, "ro")
    between = _between(pipeline, "score", "weight_u")
    for name in ("dot", *between):
        schedule[name].compute_at(partial, "ro")
    _tiles(schedule, ("top_u", "total_u", "out_sum_u"), ("rp", "rp", "ri"), between, "h")
    _stage_queries(schedule, "out_sum_u_all", "u")
    out = schedule["out"].split("h", "g", "hi", _groups(pipeline)).reorder("b", "g", "i", "hi", "d")
    out.gpu_blocks("b", "g", "i").vectorize("hi").vectorize("d").gpu_warps(warps)
    for name in ("top", "total"):
        schedule[name].compute_at("out", "i").vectorize("h")
        schedule[name].update(0).vectorize("h").vectorize("part")
    summed = schedule["out_sum"].compute_at("out", "i").vectorize("h").vectorize("d").update(0)
    summed.split("part", "po", "pi", merged).reorder("po", "b", "h", "i", "d", "pi")
    summed.vectorize("h").vectorize("d").vectorize("pi")
    return schedule


def _tile_of(pipeline: Pipeline) -> tuple[int, int, int, int]:
    """Queries, slices of keys, warps and stages.

    64 queries are the rows that one group of four warps multiplies: two programs on a
    multiprocessor hide each other's softmax, which one of 128 queries cannot.
    """
    features = pipeline.algorithm.inputs[0].shape[-1]
    width = int(features.value) if isinstance(features, Const) else 128
    if width > 128:
        return 128, _slices(pipeline), 8, 3
    if width <= 64 and _sees_all(pipeline):
        return 64, 128, 4, 2
    return 64, _slices(pipeline), 4, 3


def _slices(pipeline: Pipeline) -> int:
    """How many keys are taken at a time: fewer where a key has many features."""
    features = pipeline.algorithm.inputs[0].shape[-1]
    return 32 if isinstance(features, Const) and int(features.value) > 128 else 64


def _sees_all(pipeline: Pipeline) -> bool:
    """Whether the domain of the keys is all of the N."""
    domain = pipeline.algorithm.func("top").definitions[1].domain
    return domain is not None and domain.where is None and domain.dims[0][2] is Size("N")


def _groups(pipeline: Pipeline) -> int:
    """How many heads of Q share one of K and V: Q is [B, G*groups, M, features]."""
    heads = substitute(pipeline.algorithm.inputs[0].shape[1], {"G": Const(1, index)})
    return int(cast("Const", simplify(heads)).value)


def _between(pipeline: Pipeline, score: str, weight: str) -> tuple[str, ...]:
    """The pure Funcs between the product and the sums."""
    has_score = any(f.name == score for f in pipeline.algorithm.funcs)
    return (score, weight) if has_score else (weight,)


def _stage_queries(schedule: Schedule, func: str, loop: str) -> None:
    """The queries of a program as a tile outside its loop over keys."""
    tile = schedule[schedule["q"].in_("dot")].compute_at(func, loop)
    for dim in ("_1", "_2", "_3"):
        tile.vectorize(dim)


def _tiles(
    schedule: Schedule,
    members: Sequence[str],
    reduced: Sequence[str],
    between: Sequence[str],
    row: str,
) -> None:
    """Every stage at the loop as one tile of rows by keys, or rows by features."""
    for name, keys in zip(members, reduced, strict=True):
        last = name == members[-1]
        for stage in (schedule[name], schedule[name].update(0)):
            stage.vectorize(row)
            if last:
                stage.vectorize("d")
        schedule[name].update(0).vectorize(keys)
    schedule["dot"].vectorize(row).vectorize("j")
    schedule["dot"].update(0).vectorize(row).vectorize("j").vectorize("e")
    for name in between:
        schedule[name].vectorize(row).vectorize("j")
    for f in schedule.algorithm.funcs:
        if f.home == "score" and not f.is_pure:
            _tile_of_reduction(schedule, f, (row, "j"))


def _tile_of_reduction(schedule: Schedule, f: FuncRecord, lanes: Sequence[str]) -> None:
    """A tile over those of the lanes that the Func has, and the points that it reduces."""
    own = [lane for lane in lanes if lane in f.dims]
    domain = f.definitions[1].domain
    reduced = () if domain is None else domain.names
    for lane in own:
        schedule[f.name].vectorize(lane)
    for lane in (*own, *reduced):
        schedule[f.name].update(0).vectorize(lane)
