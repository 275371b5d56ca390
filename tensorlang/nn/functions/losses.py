"""Losses with torch's arguments."""

from typing import Any

from tensorlang.nn import softmax as _softmax
from tensorlang.nn.functions.arguments import as_matrix, in_autocast, refused
from tensorlang.nn.schedules import soft_rows
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

# Nothing depends on the largest of a row, which is subtracted and added again.
_cross_entropy = custom_op(
    "tensorlang::cross_entropy", _softmax.cross_entropy, schedules=soft_rows, constant=["top"]
)
_with_gradient = custom_op(
    "tensorlang::cross_entropy_with_gradient",
    _softmax.cross_entropy_with_gradient,
    schedules=soft_rows,
    outputs=2,
)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: None = None,
    ignore_index: int = -100,
    reduce: None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-weight[t] * log_softmax(x)[t] for the class t of each row, averaged over weights"""
    if target.is_floating_point() or size_average is not None or reduce is not None:
        raise refused(
            "cross_entropy",
            "probabilities as targets, size_average and reduce",
            "give class numbers, and reduction=",
        )
    flat, at = _rows_of(input, target)
    loss = _cross_entropy(flat, at, weight, int(ignore_index), float(label_smoothing))
    if reduction == "none":
        return loss.reshape(target.shape)
    total = loss.sum()
    return total if reduction == "sum" else total / _divisor(at, weight, ignore_index)


def cross_entropy_with_gradient(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`cross_entropy` in f32, reduced; the forward pass forms the gradient of `input` as well.

    The scores are read once for both, and need not be kept.  `weight` gets no gradient.
    """
    if reduction not in ("mean", "sum"):
        raise refused(
            "cross_entropy_with_gradient",
            f"reduction={reduction!r}",
            'use "mean" or "sum": what a row counts for is known beforehand',
        )
    flat, at = _rows_of(input, target)
    divisor = _divisor(at, weight, ignore_index) if reduction == "mean" else 1
    counts = torch.ones(at.shape, dtype=torch.float32, device=at.device) / divisor
    counts = counts.to(torch.float64) if flat.dtype == torch.float64 else counts
    return _WithGradient.apply(flat, at, weight, counts, int(ignore_index), float(label_smoothing))


class _WithGradient(torch.autograd.Function):
    """sum(counts * loss), whose gradient is there when it is."""

    @staticmethod
    def forward(ctx: Any, flat: Tensor, *rest: Any) -> Tensor:
        losses, gradient = _with_gradient(flat, *rest)
        ctx.save_for_backward(gradient)
        return (losses * rest[2]).sum()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        # Where the loss is what is differentiated, nothing is left to do; a graph cannot ask.
        captured = slope.is_cuda and torch.cuda.is_current_stream_capturing()
        if captured or slope.item() != 1:
            gradient = gradient * slope
        return gradient, *[None] * 5


def _rows_of(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """The scores of each class number, and these, in one dimension."""
    input = in_autocast(input, torch.float32)
    classes = 0 if input.ndim == 1 else 1
    return as_matrix(input.movedim(classes, -1)), target.reshape(-1)


def _divisor(at: Tensor, weight: Tensor | None, ignore_index: int) -> Tensor:
    """The weights of all rows that count."""
    valid = at != ignore_index
    if weight is None:
        return valid.sum()
    return torch.where(valid, weight[torch.where(valid, at, 0)], 0).sum()
