"""Softmax along any dimension, with torch's arguments."""

from typing import Any

from tensorlang import arrays
from tensorlang.nn import softmax as _softmax
from tensorlang.nn.functions.arguments import as_matrix, in_autocast
from tensorlang.nn.softmax_backward import softmax_gradients, softmax_rows
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

softmax_op = custom_op(
    "tensorlang::softmax",
    _softmax.softmax,
    outputs="list",
    schedules=softmax_rows,
    derivative=softmax_gradients,
)


def softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: Any = None,
    *,
    residual: Tensor | None = None,
) -> Tensor:
    """exp(x) / sum(exp(x)) along a dimension; with a residual of x + residual"""
    return _normalized_exp(input, dim, dtype, residual, False)


def log_softmax(
    input: Tensor,
    dim: int | None = None,
    _stacklevel: int = 3,
    dtype: Any = None,
    *,
    residual: Tensor | None = None,
) -> Tensor:
    """x - log(sum(exp(x))) along a dimension; with a residual of x + residual"""
    return _normalized_exp(input, dim, dtype, residual, True)


def _normalized_exp(
    x: Tensor, dim: int | None, dtype: Any, residual: Tensor | None, logarithm: bool
) -> Tensor:
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1
    x = in_autocast(x, torch.float32)
    last, more = _with_last(x, dim), None
    if residual is not None:
        more = as_matrix(_with_last(residual.to(x.dtype).expand(x.shape), dim))
    known = "" if dtype is None else getattr(arrays.dtype_of_torch(dtype), "name", "")
    (made,) = softmax_op(as_matrix(last), more, logarithm, known)
    return made.reshape(last.shape).movedim(-1, dim).reshape(x.shape)


def _with_last(x: Tensor, dim: int) -> Tensor:
    """x with that dimension last; a number as one of a row."""
    return (x[None] if x.ndim == 0 else x).movedim(dim, -1)
