"""Arguments as torch takes them, brought to what the operators take."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorlang.errors import DefinitionError
from tensorlang.nn.windows import Ints
from tensorlang.torch.libraries import Tensor, torch


def as_matrix(x: Tensor) -> Tensor:
    """All dimensions but the last as one, which an extent of 0 does not tell."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def as_rows(
    name: str, x: Tensor, normalized_shape: Sequence[int], *rest: Tensor | None
) -> list[Any]:
    """The last dimensions as one, of x and of what is as large as they are."""
    last = tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(last) :]) != last:
        raise refused(name, f"normalized_shape={last}", f"the last extents of {tuple(x.shape)}")
    flat = [None if t is None else t.reshape(-1) for t in rest]
    return [x.reshape(prod(x.shape[: x.ndim - len(last)]), prod(last)), *flat]


def in_autocast(x: Any, dtype: Any = None) -> Any:
    """The tensor as torch.autocast wants it: in `dtype`, by default the low precision."""
    if x is None or not x.is_floating_point() or x.dtype == torch.float64:
        return x
    device = x.device.type
    if not torch.is_autocast_enabled(device):
        return x
    return x.to(torch.get_autocast_dtype(device) if dtype is None else dtype)


def have_gradient(*tensors: Tensor | None) -> bool:
    """Whether a gradient of one of them may be asked for."""
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def each(value: int | Sequence[int], rank: int) -> Ints:
    """One number a spatial dimension; a single one is for all."""
    numbers = (value,) if isinstance(value, int) else tuple(value)
    return numbers * rank if len(numbers) == 1 else numbers


def as_batch(name: str, x: Tensor, rank: int) -> Tensor:
    """x of batch, channels and `rank` spatial dimensions; torch lets the batch be left out.

    Raises: DefinitionError: not-supported.
    """
    if x.ndim not in (rank + 1, rank + 2):
        raise refused(name, f"an input of {x.ndim} dimensions", "batch, channels, space")
    return x if x.ndim == rank + 2 else x[None]


def is_channels_last(*tensors: Tensor) -> bool:
    """Whether an image or volume lies in memory with its channels innermost."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return any(
        t.ndim in formats
        and not t.is_contiguous()
        and t.is_contiguous(memory_format=formats[t.ndim])
        for t in tensors
    )


def refused(name: str, what: str, fix: str) -> DefinitionError:
    """What torch takes and we do not."""
    return DefinitionError(
        "not-supported",
        f"{name} does not take {what}",
        why="it has no definition here",
        fix=fix,
    )
