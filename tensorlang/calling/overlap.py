"""Which arrays share memory, so that a call may refuse to write what it reads."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tensorlang.arrays import Array, ArrayInfo, Numpy, kind_of

# The exact answer is a Diophantine problem; layouts met in practice need a few steps.
_MAX_WORK: Any = 100_000


def _memory_of(value: Array) -> Numpy:
    """The bytes of a NumPy array or tensor as a NumPy array whose elements are never touched."""
    if kind_of(value) == "numpy":
        return value
    return np.asarray(_Memory(value))


def same_elements(a: Array, b: Array) -> bool:
    """Whether two arrays are one: the same memory, shape and strides."""
    first, second = _memory_of(a), _memory_of(b)
    return (
        first.__array_interface__["data"][0] == second.__array_interface__["data"][0]
        and (first.shape, first.strides) == (second.shape, second.strides)
        and first.itemsize == second.itemsize
    )


class _Memory:
    """A tensor's memory by address: of a GPU's too, since nobody reads it."""

    __slots__ = ("__array_interface__",)

    def __init__(self, tensor: Any) -> None:
        size = tensor.element_size()
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{size}",
            "shape": tuple(tensor.shape),
            "strides": tuple(s * size for s in tensor.stride()),
            "data": (tensor.data_ptr(), True),
        }


Span: TypeAlias = tuple[int, int]


def span_of(info: ArrayInfo) -> Span:
    """The bytes from an array's first element in which it lies: from the first to past the last."""
    if 0 in info.shape:
        return 0, 0
    ends = [step * (n - 1) for step, n in zip(info.steps, info.shape, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + info.itemsize


def are_apart(inputs: Sequence[Array], outputs: Sequence[Array], spans: Sequence[Span]) -> bool:
    """Whether the bytes around each output are apart from those around all other tensors."""
    addresses = [tensor.data_ptr() for tensor in (*inputs, *outputs)]
    places = [(at + low, at + high) for at, (low, high) in zip(addresses, spans, strict=True)]
    for k in range(len(inputs), len(places)):
        low, high = places[k]
        if any(low < end and start < high for start, end in places[:k]):
            return False
    return True


def are_apart_in_numpy(inputs: Sequence[Numpy], outputs: Sequence[Numpy]) -> bool:
    """Whether the bytes around each output are apart from those around all other arrays."""
    may_share = np.may_share_memory
    for k, out in enumerate(outputs):
        for other in (*inputs, *outputs[:k]) if k else inputs:
            if may_share(out, other):
                return False
    return True


def overlap(a: Array, b: Array) -> bool:
    """Whether two arrays on one device share an element (or it is too hard to tell)."""
    first, second = _memory_of(a), _memory_of(b)
    if not np.may_share_memory(first, second):
        return False
    try:
        return np.shares_memory(first, second, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True


def overlaps_itself(info: ArrayInfo) -> bool:
    """Whether two indices may reach one element: sorted by step, each passes all smaller ones."""
    reached = info.itemsize
    if 0 in info.shape:
        return False
    for step, extent in sorted(
        (abs(s), n) for s, n in zip(info.steps, info.shape, strict=True) if n > 1
    ):
        if step < reached:
            return True
        reached += step * (extent - 1)
    return False
