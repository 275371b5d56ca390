"""Norms with torch's arguments: along rows, over batches, groups and instances."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorlang.nn import batch_norm as _batch
from tensorlang.nn import normalization as _rows
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.functions.arguments import as_rows, in_autocast, is_channels_last, refused
from tensorlang.nn.norm_gradients import norm_gradients
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_EPS = {"eps": float}


def _norm(name: str, what: Any, outputs: int = 1) -> Any:
    return custom_op(
        f"tensorlang::{name}",
        what,
        params=_EPS,
        outputs=outputs,
        schedules=norm_rows,
        derivative=norm_gradients,
    )


_layer_norm, _rms_norm = _norm("layer_norm", _rows.layer_norm), _norm("rms_norm", _rows.rms_norm)
_layer_norm_kept = _norm("layer_norm_kept", _rows.layer_norm_kept, 3)
_rms_norm_kept = _norm("rms_norm_kept", _rows.rms_norm_kept, 2)
_batch_norm = custom_op("tensorlang::batch_norm", _batch.batch_norm, params=_EPS, outputs=3)
_group_norm = custom_op("tensorlang::group_norm", _batch.group_norm, params=_EPS)
channelwise = custom_op("tensorlang::channelwise", _batch.channelwise)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"""
    input = in_autocast(input, torch.float32)
    given = as_rows("layer_norm", input, normalized_shape, weight, bias)
    if _keeps(*given):
        return _layer_norm_kept(*given, float(eps))[0].reshape(input.shape)
    return _layer_norm(*given, float(eps)).reshape(input.shape)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps: by default the dtype's"""
    given = as_rows("rms_norm", input, normalized_shape, weight)
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    least = torch.finfo(wide).eps if eps is None else float(eps)
    if _keeps(*given):
        return _rms_norm_kept(*given, least)[0].reshape(input.shape)
    return _rms_norm(*given, least).reshape(input.shape)


def _keeps(*tensors: Tensor | None) -> bool:
    """Whether a gradient on a GPU will want the statistics of the rows."""
    given = [t for t in tensors if t is not None]
    wanted = torch.is_grad_enabled() and any(t.requires_grad for t in given)
    return wanted and given[0].is_cuda


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, of each channel

    In training mean and var are those of the batch, and the running ones move towards them by
    `momentum` (var by that of a sample: n/(n - 1) times); else they are the running ones.
    """
    last = is_channels_last(input)
    x = by_channel(input, last)
    if not training:
        if running_mean is None or running_var is None:
            raise refused("batch_norm", "no running statistics", "give them, or training=True")
        scale, shift = affine_of(running_mean, running_var, weight, bias, eps)
        made = channelwise(x, None, scale, shift, None, "none")
        return as_before(made, input, last)
    count = x.shape[0] * x.shape[2]
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel, got input {tuple(input.shape)}")
    made, mean, var = _batch_norm(x, weight, bias, float(eps))
    if running_mean is not None:
        _move(running_mean, mean, momentum)
    if running_var is not None:
        _move(running_var, var * (count / max(count - 1, 1)), momentum)
    return as_before(made, input, last)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias, mean and var of each group of channels"""
    batch, channels = input.shape[:2]
    if channels % num_groups:
        raise refused("group_norm", f"{channels} channels in {num_groups} groups", "a divisor")
    input = in_autocast(input, torch.float32)
    x = input.reshape(batch, num_groups, channels // num_groups, prod(input.shape[2:]))
    given = (None if t is None else t.reshape(num_groups, -1) for t in (weight, bias))
    return _group_norm(x, *given, float(eps)).reshape(input.shape)


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
    return group_norm(input, input.shape[1], weight, bias, eps)


def affine_of(
    mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor]:
    """scale and shift of a norm: (x - mean) / sqrt(var + eps) * weight + bias = x*scale + shift"""
    scale = torch.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale
    return scale, shift if bias is None else shift + bias


def by_channel(x: Tensor, channels_last: bool) -> Tensor:
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
