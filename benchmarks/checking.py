"""Right answers first: a contender that is wrong is not timed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.case import Call

PIECE = 1 << 18
"""Elements that are compared at a time."""


def error_of(call: Call, reference: Sequence[Any]) -> float:
    """The relative error of what `call` returns, inf where a value is missing or not finite.

    It runs twice: what the first run returned is overwritten (with NaN) before the second, so that
    memory which a contender does not write (its own, or what the allocator gives it again) shows.
    """
    for output in listed(call()):
        _poison(output)
    outputs = listed(call())
    if len(outputs) != len(reference):
        return float("inf")
    return max(relative_error(o, r) for o, r in zip(outputs, reference, strict=True))


def _poison(array: Any) -> None:
    """Every element NaN, or the largest integer."""
    if not hasattr(array, "ctypes"):
        import torch

        floats = array.is_floating_point()
        array.fill_(float("nan") if floats else torch.iinfo(array.dtype).max)
    elif array.dtype.kind == "f":
        array.fill(float("nan"))
    else:
        array.fill(np.iinfo(array.dtype).max)


def relative_error(output: Any, reference: Any) -> float:
    """|output - reference| / |reference|, both as one long vector in f64.

    A piece at a time: whole images in f64 are new memory each, which takes longer than the sums.
    """
    if tuple(output.shape) != tuple(reference.shape):
        return float("inf")
    output, reference = output.reshape(-1), reference.reshape(-1)
    scale = error = 0.0
    for start in range(0, len(output), PIECE):
        expected = _double(reference[start : start + PIECE])
        difference = _double(output[start : start + PIECE]) - expected
        scale += float((expected * expected).sum())
        error += float((difference * difference).sum())
    relative = (error / (scale or 1.0)) ** 0.5
    return relative if relative == relative else float("inf")


def listed(outputs: Any) -> list[Any]:
    """One output or several, as a list."""
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def _double(array: Any) -> Any:
    return array.astype("float64") if hasattr(array, "astype") else array.double()
