"""Convolutions of any rank with an epilogue, and their transposes; then schedules.

    padded[b, t, g, c] = x[b, t, g, c] inside, 0 around
    acc[b, p, g, o]    = sum(padded[b, p*stride + r*dilation - before, g, c] * weight[g, o, c, r])
    out                = activation((acc + bias) * scale + shift) + residual

Channels are (group, channel of the group); they may come before or after the spatial dimensions.
Every index is affine in p and r, so the gradients are gathered: that of x is again a convolution.
"""

from collections.abc import Mapping

from tensorlang.algorithm import FuncRecord
from tensorlang.autoschedule.default import default_schedule
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Const, Expr, Operand, Size, Var
from tensorlang.ir.functions import select
from tensorlang.ir.types import DType, f64
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import wide
from tensorlang.nn.windows import Ints, Windows, arranged, spatial, spatial_sizes, within
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum
from tensorlang.schedule import Schedule
from tensorlang.target import Target

B, G, C, O = (Size(name) for name in "BGCO")  # noqa: E741 - outputs
b, g, c, o = (Var(name) for name in "bgco")


def conv(
    x: DType,
    weight: DType,
    bias: DType | None,
    scale: DType | None,
    shift: DType | None,
    residual: DType | None,
    *,
    extent: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    before: tuple[int, ...],
    after: tuple[int, ...],
    channels_last: bool,
    activation: str,
) -> Pipeline:
    """out = activation((conv(x, weight) + bias) * scale + shift) + residual

    Args:
        x: [B, G, C, ...space], or with the channels last.
        weight: [G, O, C, ...extent].
        bias, scale, shift: [G, O]; scale and shift are a batch norm of the past.
        residual: as large as the result.
    """
    windows = Windows(extent, stride, dilation, before, after)
    shape, w = spatial_sizes(windows.rank), wide(x)
    X = Input("x", x, arranged(B, [G, C], shape, channels_last))
    W = Input("weight", weight, [G, O, C, *extent])
    padded, acc, out = Func("padded"), Func("acc"), Func("out")
    at, r = spatial(windows.rank, "p"), RDom("r", *extent, C)
    inside, channel = list(r)[:-1], list(r)[-1]
    read = arranged(b, [g, c], at, channels_last)
    padded[read] = select(within(at, shape), X[read], 0)
    point = arranged(b, [g, o], at, channels_last)
    source = arranged(b, [g, channel], windows.points(at, inside), channels_last)
    acc[point] = sum(w(padded[source]) * w(W[(g, o, channel, *inside)]), over=r)
    size = arranged(B, [G, O], windows.counts(shape), channels_last)
    inputs, value = epilogue([X, W], acc[point], w, (bias, scale, shift), activation)
    if residual is not None:
        inputs.append(Input("residual", residual, size))
        value = value + w(inputs[-1][point])
    out[point] = x(value)
    return Pipeline("conv", inputs=inputs, outputs={out: size})


def conv_transpose(
    x: DType,
    weight: DType,
    bias: DType | None,
    *,
    extent: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    output_padding: tuple[int, ...],
    channels_last: bool,
    activation: str,
) -> Pipeline:
    """out[t] = activation(sum(x[(t + padding - r*dilation) / stride] * weight[r]) + bias)

    A convolution of x with stride - 1 zeros between its points, so that what is read is affine:

        spread[z] = x[z / stride] where stride divides z
    """
    rank, w = len(extent), wide(x)
    shape = spatial_sizes(rank)
    X = Input("x", x, arranged(B, [G, C], shape, channels_last))
    W = Input("weight", weight, [G, C, O, *extent])
    spread, acc, out = Func("spread"), Func("acc"), Func("out")
    at, r = spatial(rank, "p"), RDom("r", *extent, C)
    inside, channel = list(r)[:-1], list(r)[-1]
    spread[arranged(b, [g, c], at, channels_last)] = _between(X, at, shape, stride, channels_last)
    point = arranged(b, [g, o], at, channels_last)
    source = [t - q * d + p for t, q, d, p in zip(at, inside, dilation, padding, strict=True)]
    read = spread[arranged(b, [g, channel], source, channels_last)]
    acc[point] = sum(w(read) * w(W[(g, channel, o, *inside)]), over=r)
    lengths = zip(shape, stride, padding, dilation, extent, output_padding, strict=True)
    size: list[Operand] = [
        (n - 1) * s - 2 * p + d * (k - 1) + extra + 1 for n, s, p, d, k, extra in lengths
    ]
    inputs, value = epilogue([X, W], acc[point], w, (bias, None, None), activation)
    out[point] = x(value)
    shape_of_out = arranged(B, [G, O], size, channels_last)
    return Pipeline("conv_transpose", inputs=inputs, outputs={out: shape_of_out})


def _between(x: Input, at: list[Var], shape: list[Size], stride: Ints, channels_last: bool) -> Expr:
    """x at every stride-th point, 0 between and around."""
    places: list[Expr] = [t // s if s > 1 else t for t, s in zip(at, stride, strict=True)]
    present = within(places, shape)
    for t, s in zip(at, stride, strict=True):
        if s > 1:
            present = present & (t % s == 0)
    return select(present, x[arranged(b, [g, c], places, channels_last)], 0)


def epilogue(
    inputs: list[Input],
    value: Expr,
    w: DType,
    given: tuple[DType | None, DType | None, DType | None],
    activation: str,
) -> tuple[list[Input], Expr]:
    """activation((value + bias) * scale + shift), of a channel each."""
    for name, dtype in zip(("bias", "scale", "shift"), given, strict=True):
        if dtype is not None:
            inputs.append(Input(name, dtype, [G, O]))
            factor = w(inputs[-1][g, o])
            value = value * factor if name == "scale" else value + factor
    return inputs, ACTIVATIONS[activation](value)


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
            (depth,) = (n for n, _, e in _domain(funcs[acc]) if not isinstance(e, Const))
            lanes = {pixel: _fit(known, f"H{pixel[1:]}", _PIXELS)}
            lanes[channel] = _fit(known, channel.upper(), _CHANNELS)
            reduced = _fit(known, "C" if channel == "o" else "O", _DEPTH)
            _tiles(schedule, (out, acc), lanes, (depth, reduced))
    if "grad_weight_sum" in funcs:
        func = funcs["grad_weight_sum"]
        lanes = {"o": _fit(known, "O", _PIXELS), func.dims[2]: _fit(known, "C", _CHANNELS)}
        last = len(func.dims) - 4
        depth = _domain(func)[-1][0], _fit(known, f"H{last}", _DEPTH)
        _tiles(schedule, ("grad_weight", "grad_weight_sum"), lanes, depth)
    return schedule


def _fit(sizes: Mapping[str, int], name: str, most: int) -> int:
    """A power of two that holds a Size, as far as a tile is as large."""
    return max(_LEAST, min(most, 1 << max(sizes.get(name, most) - 1, 0).bit_length()))


def _domain(func: FuncRecord) -> tuple[tuple[str, Expr, Expr], ...]:
    domain = func.definitions[1].domain
    return () if domain is None else domain.dims


def _tiles(
    schedule: Schedule, names: tuple[str, str], tile: Mapping[str, int], depth: tuple[str, int]
) -> None:
    """blocks of tiles of out { acc = 0; for all but depth { for slices of it: acc += dot }; out }

    The rows of a matrix unit are 64: a dimension that is shorter becomes the columns.

    Args:
        names: of out, and of acc, which has the same dimensions.
        tile: the extents of the two dimensions that are a tile.
        depth: the reduced variable that is sliced, and how many of it a slice has.
    """
    out, acc = names
    dims = schedule.state.funcs[acc].dims
    own = dict(zip(dims, schedule.state.funcs[out].dims, strict=True))
    lanes = sorted(tile, key=dims.index)
    if tile[lanes[0]] < _PIXELS <= tile[lanes[1]]:
        lanes.reverse()
    stage, blocks = schedule[out], [own[v] for v in dims if v not in tile]
    for v in lanes:
        stage.split(own[v], f"{own[v]}_out", f"{own[v]}_in", tile[v])
    inner = [f"{own[v]}_in" for v in lanes]
    blocks += [f"{own[v]}_out" for v in sorted(lanes, key=dims.index)]
    stage.reorder(*blocks, *inner).gpu_blocks(*blocks).gpu_warps(4)
    made = schedule[acc].compute_at(out, blocks[-1])
    made.reorder(*(v for v in dims if v not in tile), *lanes)
    name, size = depth
    update = made.update(0).split(name, f"{name}_out", f"{name}_in", size)
    others = [n for n, _, _ in _domain(schedule.state.funcs[acc]) if n != name]
    update.reorder(*others, f"{name}_out", *lanes, f"{name}_in").pipeline(f"{name}_out", 3)
    for one, loops in ((stage, inner), (made, lanes), (update, [*lanes, f"{name}_in"])):
        for loop in loops:
            one.vectorize(loop)
