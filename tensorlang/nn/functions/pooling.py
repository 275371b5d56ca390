"""Max, average and adaptive pooling of one to three spatial dimensions, with torch's arguments."""

from collections.abc import Sequence
from typing import Any

from tensorlang.nn import pooling as _pooling
from tensorlang.nn.functions.arguments import as_batch, each, is_channels_last, refused
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor

_max_pool = custom_op("tensorlang::max_pool", _pooling.max_pool, outputs=2)
_avg_pool = custom_op("tensorlang::avg_pool", _pooling.avg_pool)
_adaptive_avg = custom_op("tensorlang::adaptive_avg_pool", _pooling.adaptive_avg_pool)
_adaptive_max = custom_op("tensorlang::adaptive_max_pool", _pooling.adaptive_max_pool, outputs=2)
Numbers = int | Sequence[int]


def max_pool1d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window; with `return_indices` also its place in the array"""
    return _largest(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window; with `return_indices` also its place in the image"""
    return _largest(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest of each window; with `return_indices` also its place in the volume"""
    return _largest(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window"""
    return _mean(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window"""
    how = (padding, ceil_mode, count_include_pad, divisor_override)
    return _mean(2, input, kernel_size, stride, *how)


def avg_pool3d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window"""
    how = (padding, ceil_mode, count_include_pad, divisor_override)
    return _mean(3, input, kernel_size, stride, *how)


def adaptive_avg_pool1d(input: Tensor, output_size: Numbers) -> Tensor:
    """The means of `output_size` windows that fill the array"""
    return _adaptive(1, input, output_size, largest=False)


def adaptive_avg_pool2d(input: Tensor, output_size: Numbers) -> Tensor:
    """The means of `output_size` windows that fill the image"""
    return _adaptive(2, input, output_size, largest=False)


def adaptive_avg_pool3d(input: Tensor, output_size: Numbers) -> Tensor:
    """The means of `output_size` windows that fill the volume"""
    return _adaptive(3, input, output_size, largest=False)


def adaptive_max_pool1d(input: Tensor, output_size: Numbers, return_indices: bool = False) -> Any:
    """The largest of `output_size` windows that fill the array"""
    made, at = _adaptive(1, input, output_size, largest=True)
    return (made, at) if return_indices else made


def adaptive_max_pool2d(input: Tensor, output_size: Numbers, return_indices: bool = False) -> Any:
    """The largest of `output_size` windows that fill the image"""
    made, at = _adaptive(2, input, output_size, largest=True)
    return (made, at) if return_indices else made


def adaptive_max_pool3d(input: Tensor, output_size: Numbers, return_indices: bool = False) -> Any:
    """The largest of `output_size` windows that fill the volume"""
    made, at = _adaptive(3, input, output_size, largest=True)
    return (made, at) if return_indices else made


def _largest(
    rank: int,
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    dilation: Numbers,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    name = f"max_pool{rank}d"
    batched, last = as_batch(name, x, rank), is_channels_last(x)
    extent, steps, zeros = _window(name, rank, kernel_size, stride, padding)
    given = batched.movedim(1, -1) if last else batched
    made = _max_pool(given, extent, steps, each(dilation, rank), zeros, ceil_mode, last)
    made, at = (_as_before(t, x, rank, last) for t in made)
    return (made, at) if return_indices else made


def _mean(
    rank: int,
    x: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> Tensor:
    name = f"avg_pool{rank}d"
    batched, last = as_batch(name, x, rank), is_channels_last(x)
    extent, steps, zeros = _window(name, rank, kernel_size, stride, padding)
    if divisor == 0:
        raise refused(name, "divisor_override=0", "a number that is not 0")
    given = batched.movedim(1, -1) if last else batched
    how = (ceil_mode, count_include_pad, divisor or 0, last)
    return _as_before(_avg_pool(given, extent, steps, zeros, *how), x, rank, last)


def _adaptive(rank: int, x: Tensor, output_size: Any, *, largest: bool) -> Any:
    name = f"adaptive_{'max' if largest else 'avg'}_pool{rank}d"
    batched = as_batch(name, x, rank)
    space = tuple(x.shape[-rank:])
    wanted: Any = output_size
    if wanted is None or isinstance(wanted, int):
        wanted = (wanted,) * rank
    outputs = tuple(n if p is None else p for n, p in zip(space, wanted, strict=True))
    if largest:
        return tuple(_as_before(t, x, rank, False) for t in _adaptive_max(batched, space, outputs))
    return _as_before(_adaptive_avg(batched, space, outputs), x, rank, False)


def _window(
    name: str,
    rank: int,
    kernel_size: Numbers,
    stride: Numbers | None,
    padding: Numbers,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Extent, stride (by default the extent) and padding.  Raises: DefinitionError."""
    extent, zeros = each(kernel_size, rank), each(padding, rank)
    steps = each(stride, rank) if stride else extent
    if any(2 * p > k for p, k in zip(zeros, extent, strict=True)):
        raise refused(name, f"padding={padding} of windows of {kernel_size}", "at most half of it")
    return extent, steps, zeros


def _as_before(made: Tensor, x: Tensor, rank: int, channels_last: bool) -> Tensor:
    made = made.movedim(-1, 1) if channels_last else made
    return made if x.ndim == rank + 2 else made[0]
