"""conv1d to conv_transpose3d, with torch's arguments and an epilogue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.nn import conv as _conv
from tensorlang.nn.conv_pixels import takes
from tensorlang.nn.conv_schedules import conv_tiles, in_whole_rows
from tensorlang.nn.functions.arguments import (
    as_batch,
    each,
    have_gradient,
    in_autocast,
    is_channels_last,
    refused,
)
from tensorlang.nn.functions.normalization import affine_of, as_before, by_channel, channelwise
from tensorlang.nn.windows import Windows
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor

# Indices of places are affine, and so the gradients gathered; those of pixels are not.
_conv_op = custom_op(
    "tensorlang::conv", _conv.conv, schedules=conv_tiles, derived_as={"pixels": False}
)
_transpose_op = custom_op(
    "tensorlang::conv_transpose", _conv.conv_transpose, schedules=in_whole_rows
)
Numbers = int | Sequence[int]


@dataclass(frozen=True, slots=True)
class BatchNorm:
    """A batch norm with the statistics of the past, as an epilogue: x * scale + shift.

    Args: mean, var, weight, bias: one number a channel.
    """

    mean: Tensor
    var: Tensor
    weight: Tensor | None = None
    bias: Tensor | None = None
    eps: float = 1e-5

    def factors(self) -> tuple[Tensor, Tensor]:
        """scale and shift."""
        return affine_of(self.mean, self.var, self.weight, self.bias, self.eps)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    norm: BatchNorm | None = None,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(norm(conv(x, weight) + bias)) + residual over one spatial dimension"""
    how = _How("conv1d", 1, stride, padding, dilation, groups, activation)
    return _convolved(how, input, weight, bias, norm, residual)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    norm: BatchNorm | None = None,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(norm(conv(x, weight) + bias)) + residual of images; channels_last is kept"""
    how = _How("conv2d", 2, stride, padding, dilation, groups, activation)
    return _convolved(how, input, weight, bias, norm, residual)


def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
    *,
    norm: BatchNorm | None = None,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(norm(conv(x, weight) + bias)) + residual of volumes; channels_last is kept"""
    how = _How("conv3d", 3, stride, padding, dilation, groups, activation)
    return _convolved(how, input, weight, bias, norm, residual)


def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    activation: str = "none",
) -> Tensor:
    """activation(conv_transpose(x, weight) + bias) over one spatial dimension"""
    how = _How("conv_transpose1d", 1, stride, padding, dilation, groups, activation)
    return _transposed(how, input, weight, bias, output_padding)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    activation: str = "none",
) -> Tensor:
    """activation(conv_transpose(x, weight) + bias) of images; channels_last is kept"""
    how = _How("conv_transpose2d", 2, stride, padding, dilation, groups, activation)
    return _transposed(how, input, weight, bias, output_padding)


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
    *,
    activation: str = "none",
) -> Tensor:
    """activation(conv_transpose(x, weight) + bias) of volumes; channels_last is kept"""
    how = _How("conv_transpose3d", 3, stride, padding, dilation, groups, activation)
    return _transposed(how, input, weight, bias, output_padding)


@dataclass(frozen=True, slots=True)
class _How:
    """What a call says besides its tensors."""

    name: str
    rank: int
    stride: Numbers
    padding: Numbers | str
    dilation: Numbers
    groups: int
    activation: str

    def batched(self, x: Tensor, channels: int) -> Tensor:
        """x with a batch.  Raises: DefinitionError: ranks and channels that do not fit."""
        batch = as_batch(self.name, x, self.rank)
        if batch.shape[1] != channels:
            raise refused(
                self.name,
                f"{batch.shape[1]} channels with a weight for {channels}",
                "as many channels as the weight has, times groups",
            )
        return batch

    def around(self, extent: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The zeros before and after each spatial dimension."""
        if self.padding == "valid":
            return (0,) * self.rank, (0,) * self.rank
        if self.padding == "same":
            if any(s != 1 for s in each(self.stride, self.rank)):
                raise refused(self.name, "padding='same' with a stride", "give numbers")
            pairs = zip(each(self.dilation, self.rank), extent, strict=True)
            total = [d * (k - 1) for d, k in pairs]
            return tuple(t // 2 for t in total), tuple(t - t // 2 for t in total)
        if isinstance(self.padding, str):
            raise refused(self.name, f"padding={self.padding!r}", "'same', 'valid' or numbers")
        numbers = each(self.padding, self.rank)
        return numbers, numbers


def _convolved(
    how: _How,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    norm: BatchNorm | None,
    residual: Tensor | None,
) -> Tensor:
    """One kernel; where gradients are asked for two, so that none is computed again for them."""
    x, weight, bias, residual = (in_autocast(t) for t in (x, weight, bias, residual))
    batched = how.batched(x, weight.shape[1] * how.groups)
    last = is_channels_last(x, weight)
    if residual is not None:
        residual = as_batch(how.name, residual, how.rank)
    extent = tuple(weight.shape[2:])
    before, after = how.around(extent)
    scale, shift = (None, None) if norm is None else norm.factors()
    given = (bias, scale, shift, residual)
    apart = have_gradient(x, weight, *given) and (
        how.activation != "none" or any(t is not None for t in given)
    )
    fused = (None,) * 4 if apart else given
    stride, dilation = each(how.stride, how.rank), each(how.dilation, how.rank)
    windows = Windows(extent, stride, dilation, before, after)
    made = _conv_op(
        _grouped(batched, how.groups, last),
        weight.reshape(how.groups, -1, *weight.shape[1:]),
        *(_by_group(t, how.groups) for t in fused[:3]),
        None if fused[3] is None else _grouped(fused[3], how.groups, last),
        *(extent, stride, dilation, before, after),
        *(last, "none" if apart else how.activation, x.is_cuda and takes(windows, weight)),
    )
    made = _ungrouped(made, how.rank, last, True)
    if apart:
        rest = None if residual is None else by_channel(residual, last)
        flat = channelwise(by_channel(made, last), bias, scale, shift, rest, how.activation)
        made = as_before(flat, made, last)
    return made if batched is x else made[0]


def _transposed(
    how: _How, x: Tensor, weight: Tensor, bias: Tensor | None, output_padding: Numbers
) -> Tensor:
    x, weight, bias = (in_autocast(t) for t in (x, weight, bias))
    batched, last = how.batched(x, weight.shape[0]), is_channels_last(x, weight)
    extent, (padding, _) = tuple(weight.shape[2:]), how.around(weight.shape[2:])
    made = _transpose_op(
        _grouped(batched, how.groups, last),
        weight.reshape(how.groups, -1, *weight.shape[1:]),
        _by_group(bias, how.groups),
        *(extent, each(how.stride, how.rank), each(how.dilation, how.rank), padding),
        *(each(output_padding, how.rank), last, how.activation),
    )
    return _ungrouped(made, how.rank, last, batched is x)


def _grouped(x: Tensor, groups: int, channels_last: bool) -> Tensor:
    """(B, C, ...) as (B, groups, C/groups, ...), or (B, ..., groups, C/groups)."""
    channels = x.shape[1] // groups
    if channels_last:
        moved = x.movedim(1, -1)
        return moved.reshape(*moved.shape[:-1], groups, channels)
    return x.reshape(x.shape[0], groups, channels, *x.shape[2:])


def _ungrouped(made: Tensor, rank: int, channels_last: bool, batched: bool) -> Tensor:
    if channels_last:
        result = made.reshape(*made.shape[: rank + 1], made.shape[-2] * made.shape[-1])
        result = result.movedim(-1, 1)
    else:
        result = made.reshape(made.shape[0], made.shape[1] * made.shape[2], *made.shape[3:])
    return result if batched else result[0]


def _by_group(x: Any, groups: int) -> Any:
    return None if x is None else x.reshape(groups, -1)
