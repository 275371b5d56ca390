"""How convolutions of one channel a group, depthwise ones, run on a GPU, and their gradients.

There is nothing to multiply as matrices: a tile of points is summed over the taps in registers.
"""

from collections.abc import Mapping
from math import prod

from tensorlang.ir.expr import Const
from tensorlang.nn.schedules import domain_of
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule

# Points of a tile and the most along its last dimension; groups that merge their sums at a time.
_POINTS, _LINE, _MERGED = 512, 64, 32
# Taps that are written out.
_UNROLLED = 64


def by_channel(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """blocks of points { acc = 0; for taps, unrolled: acc += x * weight; out }

    And for the weights: blocks (image, group, tap) { the sum over an image }, then over images.
    None for another target, and where groups have several channels.
    """
    if target != "triton" or sizes.get("C") != 1:
        return None
    funcs, schedule = {f.name: f for f in pipeline.algorithm.funcs}, Schedule(pipeline)
    for out, acc in (("out", "acc"), ("grad_x", "grad_padded")):
        if out in funcs and acc in funcs:
            _points(schedule, out, acc, sizes)
    weights = [f for f in ("grad_weight_sum", "grad_weight") if f in funcs]
    if weights:
        _weights(schedule, weights[0], sizes)
    return schedule


def _points(schedule: Schedule, out: str, acc: str, sizes: Mapping[str, int]) -> None:
    """Tiles of the last two dimensions of the array that are long."""
    func = schedule.state.funcs[acc]
    own = dict(zip(func.dims, schedule.state.funcs[out].dims, strict=True))
    tile = _tile(func.dims, sizes)
    rest = [v for v in func.dims if v not in tile]
    stage, blocks = schedule[out], [own[v] for v in rest]
    for v, extent in tile.items():
        stage.split(own[v], f"{own[v]}_out", f"{own[v]}_in", extent)
    blocks += [f"{own[v]}_out" for v in tile]
    inner = [f"{own[v]}_in" for v in tile]
    stage.reorder(*blocks, *inner).gpu_blocks(*blocks).gpu_warps(4)
    made = schedule[acc].compute_at(out, blocks[-1]).reorder(*rest, *tile)
    domain = domain_of(func)
    taps = {name: int(e.value) for name, _, e in domain if isinstance(e, Const)}
    others = [name for name, _, _ in domain if name not in taps]
    update = made.update(0).reorder(*rest, *others, *taps, *tile)
    for tap in taps if prod(taps.values()) <= _UNROLLED else ():
        update.unroll(tap)
    for one, loops in ((stage, inner), (made, tile), (update, tile)):
        for loop in loops:
            one.vectorize(loop)


def _tile(dims: tuple[str, ...], sizes: Mapping[str, int]) -> dict[str, int]:
    """How many points along each of its dimensions: places, and groups where they are innermost."""
    innermost = dims.index("g") > 1
    long = [v for v in dims if v.startswith("p") or (innermost and v == "g")][-2:]
    names = {v: "G" if v == "g" else f"H{v[1:]}" for v in long}
    tile: dict[str, int] = {}
    left, most = _POINTS, _LINE
    for v in reversed(long):
        extent = min(most, 1 << max(sizes.get(names[v], most) - 1, 0).bit_length())
        tile[v], left = extent, left // extent
        most = left
    return dict(reversed(tile.items()))


def _weights(schedule: Schedule, total: str, sizes: Mapping[str, int]) -> None:
    """Sums over one image each, lanes along its points as they lie in memory, then over all."""
    funcs = schedule.state.funcs
    batch, *places = (name for name, _, _ in domain_of(funcs[total]))
    rest, out = funcs[total].dims[1:], total.removesuffix("_sum")
    innermost = funcs["padded"].dims.index("g") > 1
    tile = _tile((batch, *places, "g") if innermost else (batch, "g", *places), sizes)
    of_groups = tile.pop("g", 1)
    partial = schedule[total].update(0).rfactor(batch, "u")
    stored = schedule[partial].in_(total)
    copy = schedule[stored].compute_root().split("g", "g_out", "g_in", of_groups)
    copy.reorder("u", "g_out", *rest, "g_in").gpu_blocks("u", "g_out", *rest).vectorize("g_in")
    copy.gpu_warps(4)
    schedule[partial].compute_at(stored, rest[-1]).reorder("u", *rest, "g").vectorize("g")
    update = schedule[partial].update(0)
    for v, extent in tile.items():
        update.split(v, f"{v}_out", f"{v}_in", extent)
    serial = [v for v in places if v not in tile] + [f"{v}_out" for v in tile]
    lanes = [f"{v}_in" for v in tile] + ["g"]
    update.reorder("u", *rest, *serial, *lanes)
    for lane in lanes:
        update.vectorize(lane)
    _merge(schedule, total, out, rest, batch)


def _merge(schedule: Schedule, total: str, out: str, rest: tuple[str, ...], batch: str) -> None:
    """The sums over images, where the result is rounded those of its own tile."""
    stages = [schedule[out]] if out != total else [schedule[out], schedule[out].update(0)]
    for stage in stages:
        stage.split("g", "g_out", "g_in", _MERGED)
    stages[0].reorder("g_out", *rest, "g_in").gpu_blocks("g_out", *rest).vectorize("g_in")
    if out == total:
        stages[1].reorder("g_out", *rest, batch, "g_in").gpu_blocks("g_out", *rest)
        stages[1].vectorize("g_in")
        return
    schedule[total].compute_at(out, rest[-1]).reorder(*rest, "g").vectorize("g")
    schedule[total].update(0).reorder(*rest, batch, "g").vectorize("g")
