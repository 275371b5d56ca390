"""Norms with torch's arguments: along rows, over batches, groups and instances."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorlang.nn import normalization as _norms
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.channelwise import channelwise as _channelwise
from tensorlang.nn.functions.arguments import (
    as_rows,
    have_gradient,
    in_autocast,
    is_channels_last,
    refused,
)
from tensorlang.nn.norm_gradients import norm_gradients
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch


def _norm(name: str, what: Any, **how: Any) -> Any:
    return custom_op(f"tensorlang::{name}", what, params={"eps": float}, outputs="list", **how)


_ROWS: dict[str, Any] = {"schedules": norm_rows, "derivative": norm_gradients}
layer_norm_op = _norm("layer_norm", _norms.layer_norm, **_ROWS)
rms_norm_op = _norm("rms_norm", _norms.rms_norm, **_ROWS)
batch_norm_op = _norm("batch_norm", _norms.batch_norm, schedules=norm_rows)
group_norm_op = _norm("group_norm", _norms.group_norm, schedules=norm_rows)
channelwise = custom_op("tensorlang::channelwise", _channelwise)
# Of a norm with a residual: what is normalised, and x + residual.
Normed = Tensor | tuple[Tensor, Tensor]


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
) -> Normed:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions

    With a residual of x + residual, and that sum is returned as well.
    """
    input = in_autocast(input, torch.float32)
    given = as_rows("layer_norm", input, normalized_shape, weight, bias)
    rows = like(residual, input, given[0].shape)
    made = layer_norm_op(*given, rows, _keeps(*given, rows), "", float(eps))
    return _with_sum(made, input, residual)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    residual: Tensor | None = None,
) -> Normed:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps: by default the dtype's

    With a residual of x + residual, and that sum is returned as well.
    """
    given = as_rows("rms_norm", input, normalized_shape, weight)
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    least = torch.finfo(wide).eps if eps is None else float(eps)
    rows = like(residual, input, given[0].shape)
    made = rms_norm_op(*given, rows, _keeps(*given, rows), "", least)
    return _with_sum(made, input, residual)


def like(residual: Tensor | None, x: Tensor, shape: Sequence[int]) -> Tensor | None:
    """What is added to x, in its shape and dtype, as rows of another shape."""
    return None if residual is None else residual.to(x.dtype).expand(x.shape).reshape(shape)


def _with_sum(made: Sequence[Tensor], x: Tensor, residual: Tensor | None) -> Normed:
    """The result in the shape of x, and the sum where there is one."""
    out = made[0].reshape(x.shape)
    return out if residual is None else (out, made[1].reshape(x.shape))


def _keeps(x: Tensor, *rest: Tensor | None) -> bool:
    """Whether a gradient on a GPU will want the statistics of the rows."""
    return bool(x.is_cuda and have_gradient(x, *rest))


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
) -> Normed:
    """(x - mean) / sqrt(var + eps) * weight + bias, of each channel

    In training mean and var are those of the batch, and the running ones move towards them by
    `momentum` (var by that of a sample: n/(n - 1) times); else they are the running ones.  With a
    residual of x + residual, and that sum is returned as well.
    """
    given = running_mean, running_var, weight, bias, training, momentum, eps
    (out, *rest), last = batch_normed(input, residual, *given, "")
    made = as_before(out, input, last)
    return made if residual is None else (made, as_before(rest[0], input, last))


def batch_normed(
    input: Tensor,
    residual: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    out_dtype: str,
) -> tuple[list[Tensor], bool]:
    """The outputs by channel, and whether channels were innermost; running statistics move."""
    if input.ndim < 2:
        raise refused("batch_norm", f"{input.ndim} dimensions", "batch, channels and space")
    last = is_channels_last(input)
    x = by_channel(input, last)
    more = None if residual is None else by_channel(like(residual, input, input.shape), last)
    if not training:
        if running_mean is None or running_var is None:
            raise refused("batch_norm", "no running statistics", "give them, or training=True")
        known = running_mean, running_var
        return batch_norm_op(x, weight, bias, more, *known, out_dtype, float(eps)), last
    count = x.shape[0] * x.shape[2]
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel, got input {tuple(input.shape)}")
    *made, mean, var = batch_norm_op(x, weight, bias, more, None, None, out_dtype, float(eps))
    if running_mean is not None:
        _move(running_mean, mean, momentum)
    if running_var is not None:
        _move(running_var, var * (count / max(count - 1, 1)), momentum)
    return made, last


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
) -> Normed:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each group of channels

    With a residual of x + residual, and that sum is returned as well.
    """
    input = in_autocast(input, torch.float32)
    given = by_group(input, num_groups, weight, bias, residual)
    return _with_sum(group_norm_op(*given, "", float(eps)), input, residual)


def by_group(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None,
    bias: Tensor | None,
    residual: Tensor | None,
) -> tuple[Tensor | None, ...]:
    """The tensors as (batch, group, channel of the group, space)."""
    batch, channels = input.shape[:2]
    if channels % num_groups:
        raise refused("group_norm", f"{channels} channels in {num_groups} groups", "a divisor")
    shape = (batch, num_groups, channels // num_groups, prod(input.shape[2:]))
    given = (None if t is None else t.reshape(num_groups, -1) for t in (weight, bias))
    return input.reshape(shape), *given, like(residual, input, shape)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each channel of each instance

    Running statistics, where given, move towards the means over the batch.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    count = prod(input.shape[2:])
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element, got input {tuple(input.shape)}")
    if running_mean is not None or running_var is not None:
        seen = input.detach().reshape(*input.shape[:2], count).float()
        var, mean = torch.var_mean(seen, dim=-1)
        if running_mean is not None:
            _move(running_mean, mean.mean(0), momentum)
        if running_var is not None:
            _move(running_var, var.mean(0), momentum)
    made: Tensor = group_norm(input, input.shape[1], weight, bias, eps)
    return made


def affine_of(
    mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """scale and shift of a norm: (x - mean) / sqrt(var + eps) * weight + bias = x*scale + shift"""
    scale = torch.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def by_channel(x: Any, channels_last: bool) -> Tensor:
    """(B, C, ...) as (B, C, space); with its channels innermost as (B * space, C, 1)."""
    if channels_last:
        return x.movedim(1, -1).reshape(-1, x.shape[1], 1)
    return x.reshape(*x.shape[:2], prod(x.shape[2:]))


def as_before(made: Tensor, x: Tensor, channels_last: bool) -> Tensor:
    """The inverse of `by_channel` of a tensor like x."""
    if channels_last:
        return made.reshape(x.shape[0], *x.shape[2:], x.shape[1]).movedim(-1, 1)
    return made.reshape(x.shape)


def _move(running: Tensor, new: Tensor, momentum: float) -> None:
    """running <- (1 - momentum) * running + momentum * new"""
    with torch.no_grad():
        running.mul_(1 - momentum).add_(new.detach().to(running.dtype), alpha=momentum)
