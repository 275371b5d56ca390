"""Convolutions of any rank with an epilogue, and their transposes.

    padded[b, t, g, c] = x[b, t, g, c] inside, 0 around
    acc[b, p, g, o]    = sum(padded[b, p*stride + r*dilation - before, g, c] * weight[g, o, c, r])
    out                = activation((acc + bias) * scale + shift) + residual

Channels are (group, channel of the group); they may come before or after the spatial dimensions.
Every index is affine in p and r, so the gradients are gathered: that of x is again a convolution.
Schedules are in `conv_schedules`.
"""

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import select
from tensorlang.ir.types import DType
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.conv_pixels import sum_of_pixels
from tensorlang.nn.numbers import wide
from tensorlang.nn.windows import Ints, Windows, arranged, spatial, spatial_sizes, within
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum

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
    pixels: bool = False,
) -> Pipeline:
    """out = activation((conv(x, weight) + bias) * scale + shift) + residual

    Args:
        x: [B, G, C, ...space], or with the channels last.
        weight: [G, O, C, ...extent].
        bias, scale, shift: [G, O]; scale and shift are a batch norm of the past.
        residual: as large as the result.
        pixels: whether `acc` has the pixels of all images in one dimension, as in `conv_pixels`.
    """
    windows = Windows(extent, stride, dilation, before, after)
    shape, w = spatial_sizes(windows.rank), wide(x)
    X = Input("x", x, arranged(B, [G, C], shape, channels_last))
    W = Input("weight", weight, [G, O, C, *extent])
    sum_of = sum_of_pixels if pixels else _sum_of_places
    out, at = Func("out"), spatial(windows.rank, "p")
    point = arranged(b, [g, o], at, channels_last)
    size = arranged(B, [G, O], windows.counts(shape), channels_last)
    acc = sum_of(X, W, windows, channels_last=channels_last)
    inputs, value = epilogue([X, W], acc, w, (bias, scale, shift), activation)
    if residual is not None:
        inputs.append(Input("residual", residual, size))
        value = value + w(inputs[-1][point])
    out[point] = x(value)
    return Pipeline("conv", inputs=inputs, outputs={out: size})


def _sum_of_places(x: Input, weight: Input, windows: Windows, *, channels_last: bool) -> Expr:
    """acc[b, p, g, o] above"""
    w, padded, acc = wide(x.dtype), Func("padded"), Func("acc")
    at, r = spatial(windows.rank, "p"), RDom("r", *windows.extent, C)
    inside, channel = list(r)[:-1], list(r)[-1]
    read = arranged(b, [g, c], at, channels_last)
    padded[read] = select(within(at, spatial_sizes(windows.rank)), x[read], 0)
    point = arranged(b, [g, o], at, channels_last)
    source = arranged(b, [g, channel], windows.points(at, inside), channels_last)
    acc[point] = sum(w(padded[source]) * w(weight[(g, o, channel, *inside)]), over=r)
    return acc[point]


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
