"""A convolution as a matrix product of pixels by channels: one sum over taps and channels.

    acc[m, g, o]    = sum(x[b(m), p(m)*stride + r*dilation - before, g, c] * weight[g, o, c, r])
    out[b, p, g, o] = activation((acc[pixel(b, p), g, o] + bias) * scale + shift) + residual

Pixel m is point p of image b, all images one after the other, so that a tile of pixels is full
whatever the shape of an image.  The gradients are those of `conv`, whose indices are affine.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var, as_expr
from tensorlang.ir.functions import clamp, select
from tensorlang.nn.numbers import wide
from tensorlang.nn.windows import Windows, arranged, spatial, spatial_sizes, within
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule

B, C = Size("B"), Size("C")
b, g, m, o = (Var(name) for name in "bgmo")


def sum_of_pixels(x: Input, weight: Input, windows: Windows, *, channels_last: bool) -> Expr:
    """acc[pixel(b, p), g, o] above"""
    w, acc, shape = wide(x.dtype), Func("acc"), spatial_sizes(windows.rank)
    r = RDom("r", *windows.extent, C)
    inside, channel = list(r)[:-1], list(r)[-1]
    counts = windows.counts(shape)
    image, places = _apart_from(m, counts)
    taken = windows.points(places, inside)
    source = arranged(clamp(image, 0, B - 1), [g, channel], taken, channels_last)
    read = select(within(taken, shape), x[source], 0)
    acc[m, g, o] = sum(w(read) * w(weight[(g, o, channel, *inside)]), over=r)
    return acc[_pixel(b, spatial(windows.rank, "p"), counts), g, o]


def is_of_pixels(pipeline: Pipeline) -> bool:
    """Whether it has the pixels of all images in one dimension."""
    return any(f.name == "acc" and f.dims == ("m", "g", "o") for f in pipeline.algorithm.funcs)


def takes(windows: Windows, weight: Any) -> bool:
    """Whether it suits: more channels than a few, and windows that reach over the edges.

    How many pixels an image then has is plain to be positive, which the tiles need; f64 has no
    matrix unit.

    Args: weight: a tensor [all outputs, channels of a group, ...].
    """
    around = zip(windows.before, windows.after, windows.dilation, windows.extent, strict=True)
    whole = all(b + a >= d * (n - 1) for b, a, d, n in around)
    return whole and weight.shape[1] >= _FEW and weight.dtype.itemsize <= _WIDEST


def _pixel(image: Expr, places: Sequence[Var], counts: Sequence[Operand]) -> Expr:
    """The number of a pixel among all of all images."""
    number = image
    for place, count in zip(places, counts, strict=True):
        number = number * count + place
    return number


def _apart_from(pixel: Expr, counts: Sequence[Operand]) -> tuple[Expr, list[Expr]]:
    """The image and the places of a pixel: the reverse of `_pixel`."""
    places: list[Expr] = []
    whole: Operand = 1
    for count in reversed(counts):
        places.insert(0, pixel // whole % count if places else pixel % count)
        whole = as_expr(count) * whole
    return pixel // whole, places


# The most pixels and channels of a tile, and reduced values of one step; a matrix unit's least.
_PIXELS, _CHANNELS, _DEPTH, _LEAST = 128, 128, 64, 16
# Steps in flight: narrow tiles leave room for more programs instead.
_STAGES, _STAGES_OF_NARROW, _NARROW = 4, 3, 64
# Channels of a group from which a dot pays, and bytes of the widest number a dot takes.
_FEW, _WIDEST = 4, 4


def tiles_of_pixels(
    pipeline: Pipeline, target: str, sizes: Mapping[str, int] | None = None
) -> Schedule | None:
    """On Triton tiles of pixels by channels; one loop over taps and slices of channels.

    blocks of tiles { acc = 0; for taps and slices of channels, loads ahead: acc += dot; out }

    None for another target, and for what has no such sum.
    """
    if target != "triton" or not is_of_pixels(pipeline):
        return None
    known = sizes or {}
    schedule = Schedule(pipeline)
    dims = schedule.state.funcs["out"].dims
    fused, *places = (v for v in dims if v == "b" or v.startswith("p"))
    columns = max(_LEAST, min(_CHANNELS, _power_of_two(known.get("O", _CHANNELS))))
    depth = max(_LEAST, min(_DEPTH, _power_of_two(known.get("C", _DEPTH))))
    stage = schedule["out"].reorder(fused, *places, "g", "o")
    for k, place in enumerate(places):
        stage.fuse(fused, place, f"m{k}")
        fused = f"m{k}"
    stage.split(fused, "m_o", "m_i", _PIXELS).split("o", "o_o", "o_i", columns)
    stage.reorder("g", "m_o", "o_o", "m_i", "o_i").gpu_blocks("g", "m_o", "o_o").gpu_warps(4)
    stage.vectorize("m_i").vectorize("o_i")
    made = schedule["acc"].compute_at("out", "o_o").reorder("g", "m", "o")
    made.vectorize("m").vectorize("o")
    domain = schedule.state.funcs["acc"].definitions[1].domain
    taps = [] if domain is None else list(domain.names)
    update = made.update(0).split(taps[-1], "c_o", "c_i", depth)
    # Taps innermost: what they are is found by dividing by numbers.
    loop = "c_o"
    update.reorder("c_o", *taps[:-1])
    for k, tap in enumerate(taps[:-1]):
        update.fuse(loop, tap, f"k{k}")
        loop = f"k{k}"
    stages = _STAGES_OF_NARROW if columns <= _NARROW else _STAGES
    update.reorder("g", loop, "m", "o", "c_i").pipeline(loop, stages)
    for lane in ("m", "o", "c_i"):
        update.vectorize(lane)
    return schedule


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()
