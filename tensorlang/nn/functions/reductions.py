"""Reductions, scans and topk with torch's arguments."""

from collections.abc import Sequence
from math import prod as _product
from typing import Any

from tensorlang import arrays
from tensorlang.nn import reductions as _reductions
from tensorlang.nn import selection as _selection
from tensorlang.nn.functions.arguments import refused
from tensorlang.nn.schedules import columns
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_reduce_op = custom_op("tensorlang::reduce", _reductions.reduce, schedules=columns)
_logsumexp_op = custom_op("tensorlang::logsumexp", _reductions.logsumexp)
_scan_op = custom_op("tensorlang::scan", _reductions.scan)
_topk_op = custom_op("tensorlang::topk", _selection.topk, schedules=_selection.rows_of_topk)
Dims = int | Sequence[int] | None


def sum(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The sum over some dimensions, by default all; of integers in i64"""
    return _reduced("sum", input, dim, keepdim, _dtype_of_sum(input, dtype))


def mean(input: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean over some dimensions, by default all"""
    made = dtype or input.dtype
    if not made.is_floating_point:
        raise refused("mean", f"a tensor of {made}", "give dtype=torch.float32")
    return _reduced("mean", input, dim, keepdim, made)


def prod(
    input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """The product over one dimension, by default all; of integers in i64"""
    return _reduced("prod", input, dim, keepdim, _dtype_of_sum(input, dtype))


def amax(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The largest over some dimensions, by default all; NaN where any is; equal ones share grads"""
    return _reduced("amax", _some(input, dim, "amax"), dim, keepdim, input.dtype)


def amin(input: Tensor, dim: Dims = (), keepdim: bool = False) -> Tensor:
    """The smallest over some dimensions, by default all; NaN where any is"""
    return _reduced("amin", _some(input, dim, "amin"), dim, keepdim, input.dtype)


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the first of the largest stands; NaN is largest"""
    return _reduced("argmax", _some(input, dim, "argmax"), dim, keepdim, torch.int64)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the first of the smallest stands; NaN is smallest"""
    return _reduced("argmin", _some(input, dim, "argmin"), dim, keepdim, torch.int64)


def any(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether one is not 0"""
    return _reduced("any", input, dim, keepdim, torch.bool)


def all(input: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether none is 0"""
    return _reduced("all", input, dim, keepdim, torch.bool)


def logsumexp(input: Tensor, dim: Dims, keepdim: bool = False) -> Tensor:
    """log(sum(exp(x))) over some dimensions"""
    if not input.is_floating_point():
        input = input.to(torch.get_default_dtype())
    flat, shape = _flattened(input, dim, keepdim)
    return _logsumexp_op(flat).reshape(shape)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The sums of all up to each one; of integers in i64"""
    return _scanned("cumsum", input, dim, dtype)


def cumprod(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """The products of all up to each one; of integers in i64"""
    return _scanned("cumprod", input, dim, dtype)


def topk(
    input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The k largest (or smallest) along a dimension in order, and where they stand

    Of equal ones the first comes first; NaN is largest.
    """
    if input.ndim == 0:
        values, at = topk(input.reshape(1), k, 0, largest, sorted)
        return values.reshape(()), at.reshape(())
    if not 0 <= k <= input.shape[dim]:
        raise refused("topk", f"k={k} of {input.shape[dim]}", "at most as many as there are")
    flat, _ = _flattened(input, dim, True)
    shape = list(input.shape)
    shape[dim] = k
    if k == 0:
        at = input.new_empty(shape, dtype=torch.int64)
    else:
        apart = input.is_cuda and k <= _selection.MOST_APART
        at = _topk_op(flat.detach(), k, largest, apart).reshape(shape)
    return input.gather(dim, at), at


def _some(x: Tensor, dim: Dims, name: str) -> Tensor:
    """The tensor, which has an element in what is reduced.  Raises: DefinitionError."""
    taken = _dims(x, dim)
    if _product(x.shape[d] for d in taken) == 0:
        raise refused(name, "no element", "what is reduced must have one")
    return x


def _dtype_of_sum(x: Tensor, dtype: Any) -> Any:
    return dtype or (x.dtype if x.is_floating_point() else torch.int64)


def _dims(x: Tensor, dim: Dims) -> list[int]:
    """The dimensions that are reduced, ascending; none named is all."""
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return list(range(x.ndim))
    named = (dim,) if isinstance(dim, int) else tuple(dim)
    rank = max(x.ndim, 1)
    found = sorted({d % rank for d in named})
    if len(found) < len(named) or not all_within(named, rank):
        raise refused("a reduction", f"dim={dim} of {x.ndim} dimensions", "each once, in range")
    return found if x.ndim else []


def all_within(dims: Sequence[int], rank: int) -> bool:
    """Whether each is a dimension, counted from either end."""
    return not [d for d in dims if not -rank <= d < rank]


def _flattened(x: Tensor, dim: Dims, keepdim: bool) -> tuple[Tensor, list[int]]:
    """x as (outer, reduced, inner), and the shape of the result."""
    taken = _dims(x, dim)
    kept = [d for d in range(x.ndim) if d not in taken]
    if keepdim:
        shape = [1 if d in taken else n for d, n in enumerate(x.shape)]
    else:
        shape = [x.shape[d] for d in kept]
    count = _product(x.shape[d] for d in taken)
    if taken and taken[-1] - taken[0] + 1 != len(taken):
        moved = x.permute(*kept, *taken)
        return moved.reshape(_product(shape), count, 1), shape
    first = taken[0] if taken else x.ndim
    outer, inner = x.shape[:first], x.shape[first + len(taken) :]
    return x.reshape(_product(outer), count, _product(inner)), shape


def _reduced(kind: str, x: Tensor, dim: Dims, keepdim: bool, dtype: Any) -> Tensor:
    flat, shape = _flattened(x, dim, keepdim)
    made = getattr(arrays.dtype_of_torch(dtype), "name", "")
    return _reduce_op(flat, kind, made).reshape(shape)


def _scanned(kind: str, x: Tensor, dim: int, dtype: Any) -> Tensor:
    flat, _ = _flattened(x, dim, True)
    made = getattr(arrays.dtype_of_torch(_dtype_of_sum(x, dtype)), "name", "")
    return _scan_op(flat, kind, made).reshape(x.shape)
