"""Schedules of convolutions, of their transposes and of their gradients."""

from collections.abc import Mapping

from tensorlang.autoschedule.default import default_schedule
from tensorlang.ir.expr import Const
from tensorlang.ir.types import f64
from tensorlang.nn.conv_channels import by_channel
from tensorlang.nn.conv_pixels import is_of_pixels, tiles_of_pixels
from tensorlang.nn.schedules import domain_of, tiles_of_dots
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule
from tensorlang.target import Target


def conv_tiles(pipeline: Pipeline, target: str, sizes: Mapping[str, int]) -> Schedule | None:
    """On Triton tiles of pixels by channels, or of one row of an image; or of points."""
    if is_of_pixels(pipeline):
        return tiles_of_pixels(pipeline, target, sizes)
    return by_channel(pipeline, target, sizes) or implicit_matmul(pipeline, target, sizes)


def in_whole_rows(pipeline: Pipeline, target: str) -> Schedule | None:
    """A volume transposed on C: every Func for itself, its innermost dimension in lanes.

    The tiles of the formula, shifted inwards in a shape that is itself a difference, are more than
    the inference of bounds can prove.
    """
    rank = len(pipeline.algorithm.outputs[0][1]) - 3
    if target != "c" or rank < _VOLUME or pipeline.name != "conv_transpose":
        return None
    return default_schedule(pipeline.algorithm, Target.of("c"))


_VOLUME = 3
# The most pixels and channels of a tile, and reduced values of one step; a matrix unit's least.
_PIXELS, _CHANNELS, _DEPTH, _LEAST = 64, 128, 64, 16
# What is a sum of products, forward and in the gradients.
_SUMS = ("acc", "grad_padded", "grad_weight_sum")


def implicit_matmul(
    pipeline: Pipeline, target: str, sizes: Mapping[str, int] | None = None
) -> Schedule | None:
    """On Triton every sum is tiles of a matmul, forward and backward; taps are serial loops.

    forward, x: pixels of one row of an image by channels, a dot for each tap and slice of channels
    weight:     output channels by input channels, a dot for each row of pixels

    None where it is not that: on C, in f64, and for the gradient of an epilogue.
    """
    funcs = {f.name: f for f in pipeline.algorithm.funcs}
    if target != "triton" or any(not f.is_pure and f.name not in _SUMS for f in funcs.values()):
        return None
    if any(a.dtype is f64 for a in pipeline.algorithm.inputs) or {"acc", "out"} & {*funcs} == {
        "acc"
    }:
        return None
    schedule, known = Schedule(pipeline), sizes or {}
    for out, acc, channel in (("out", "acc", "o"), ("grad_x", "grad_padded", "c")):
        if out in funcs and acc in funcs:
            pixel = [v for v in funcs[acc].dims if v.startswith("p")][-1]
            (depth,) = (n for n, _, e in domain_of(funcs[acc]) if not isinstance(e, Const))
            lanes = {pixel: _fit(known, f"H{pixel[1:]}", _PIXELS)}
            lanes[channel] = _fit(known, channel.upper(), _CHANNELS)
            reduced = _fit(known, "C" if channel == "o" else "O", _DEPTH)
            tiles_of_dots(schedule, (out, acc), lanes, (depth, reduced))
    if "grad_weight_sum" in funcs:
        func = funcs["grad_weight_sum"]
        lanes = {"o": _fit(known, "O", _PIXELS), func.dims[2]: _fit(known, "C", _CHANNELS)}
        last = len(func.dims) - 4
        depth = domain_of(func)[-1][0], _fit(known, f"H{last}", _DEPTH)
        tiles_of_dots(schedule, ("grad_weight", "grad_weight_sum"), lanes, depth)
    return schedule


def _fit(sizes: Mapping[str, int], name: str, most: int) -> int:
    """A power of two that holds a Size, as far as a tile is as large."""
    return max(_LEAST, min(most, 1 << max(sizes.get(name, most) - 1, 0).bit_length()))
