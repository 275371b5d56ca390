"""Quantisation to 8 bits, and matmuls of 8 and 4 bits.  Nothing of it has a gradient but what is
linear in a float: the input and the scale of a weight-only matmul.
"""

from collections.abc import Sequence
from typing import Any

from tensorlang import arrays
from tensorlang.nn import quantized as _quantized
from tensorlang.nn.functions.arguments import as_matrix, in_autocast, refused
from tensorlang.nn.functions.normalization import (
    as_before,
    batch_normed,
    by_group,
    group_norm_op,
    layer_norm_op,
    like,
    rms_norm_op,
)
from tensorlang.nn.functions.softmax import softmax_op
from tensorlang.nn.quantized import tiles_of_groups
from tensorlang.nn.quantized_rows import in_one_read
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_quantize = custom_op("tensorlang::quantize", _quantized.quantize, outputs=2, schedules=in_one_read)
_silu_mul = custom_op(
    "tensorlang::silu_mul_quantized", _quantized.silu_mul, outputs=2, schedules=in_one_read
)
_scaled_mm = custom_op("tensorlang::scaled_mm", _quantized.scaled_mm)
_block_scaled = custom_op(
    "tensorlang::block_scaled_mm", _quantized.block_scaled_mm, schedules=tiles_of_groups
)
_weight_only = custom_op(
    "tensorlang::weight_only", _quantized.weight_only, schedules=tiles_of_groups
)
# Values of 8 bits and their scales; of a norm with a residual also x + residual.
Quantized = tuple[Tensor, ...]


def quantize(x: Tensor, *, dtype: Any = None, block: int = 0) -> Quantized:
    """x as 8 bits, and the scales that bring it back: x is about q * scale

    Args:
        dtype: torch.float8_e4m3fn (the default), float8_e5m2 or int8.
        block: how many values of a row share a scale; 0: a row has one.
    """
    return _apart(x, _quantize(_in_blocks(x, block), _made(dtype)))


def silu_mul_quantized(x: Tensor, gate: Tensor, *, dtype: Any = None, block: int = 0) -> Quantized:
    """silu(x) * gate as `quantize` gives it, in one kernel"""
    return _apart(x, _silu_mul(_in_blocks(x, block), _in_blocks(gate, block), _made(dtype)))


def softmax_quantized(
    x: Tensor,
    dim: int = -1,
    *,
    logarithm: bool = False,
    residual: Tensor | None = None,
    dtype: Any = None,
    block: int = 0,
) -> Quantized:
    """softmax(x + residual), or its logarithm, as `quantize` gives it along `dim`, in one kernel"""
    last = x.movedim(dim, -1)
    rows = _in_blocks(last, block)
    more = like(residual, x, x.shape)
    more = None if more is None else more.movedim(dim, -1).reshape(rows.shape).detach()
    made = _apart(last, softmax_op(rows, more, logarithm, _made(dtype)))
    return tuple(t.movedim(-1, dim) for t in made)


def rms_norm_quantized(
    x: Tensor,
    weight: Tensor | None,
    eps: float = 1e-6,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
    block: int = 0,
) -> Quantized:
    """rms_norm(x + residual) over the last dimension as `quantize` gives it, in one kernel"""
    return _rows(rms_norm_op, x, (weight,), residual, dtype, block, eps)


def layer_norm_quantized(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
    block: int = 0,
) -> Quantized:
    """layer_norm(x + residual) over the last dimension as `quantize` gives it, in one kernel"""
    return _rows(layer_norm_op, x, (weight, bias), residual, dtype, block, eps)


def group_norm_quantized(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
) -> Quantized:
    """group_norm(x + residual) as 8 bits, with a scale for each group: (batch, groups)"""
    x = in_autocast(x, torch.float32)
    given = (
        None if t is None else t.detach() for t in by_group(x, num_groups, weight, bias, residual)
    )
    q, scale, *rest = group_norm_op(*given, _made(dtype), float(eps))
    return q.reshape(x.shape), scale, *(t.reshape(x.shape) for t in rest)


def batch_norm_quantized(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
) -> Quantized:
    """batch_norm(x + residual) as 8 bits, with a scale for each channel: (channels,)"""
    how = training, momentum, eps, _made(dtype)
    with torch.no_grad():
        given = running_mean, running_var, weight, bias
        (q, scale, *rest), last = batch_normed(x, residual, *given, *how)
        return as_before(q, x, last), scale, *(as_before(t, x, last) for t in rest)


def _rows(
    op: Any,
    x: Tensor,
    weights: Sequence[Tensor | None],
    residual: Tensor | None,
    dtype: Any,
    block: int,
    eps: float,
) -> Quantized:
    """A norm of the last dimension."""
    rows = _in_blocks(x, block)
    given = (None if w is None else w.detach().reshape(rows.shape[1:]) for w in weights)
    more = like(residual, x, rows.shape)
    more = None if more is None else more.detach()
    return _apart(x, op(rows, *given, more, False, _made(dtype), float(eps)))


def scaled_mm(
    x: Tensor,
    weight: Tensor,
    scale_x: Tensor,
    scale_w: Tensor,
    bias: Tensor | None = None,
    *,
    out_dtype: Any = None,
) -> Tensor:
    """(x * scale_x) @ (weight * scale_w).T + bias of f8 or int8, the sum in f32 or i32

    Args:
        x: (..., K).
        weight: (N, K).
        scale_x, scale_w: of one element each; or one a row; or one a block of 128 along K, which
            for the weight is also one a block of 128 rows: (rows, K/128), (N/128, K/128).
        out_dtype: by default torch.bfloat16.
    """
    flat, made = as_matrix(x), _name(out_dtype or torch.bfloat16)
    n, k = weight.shape
    shape = (*x.shape[:-1], n)
    if scale_x.numel() == scale_w.numel() == 1:
        scales = (scale_x.reshape(1), scale_w.reshape(1))
        return _scaled_mm(flat, weight, *scales, bias, made, False).reshape(shape)
    if scale_x.numel() == flat.shape[0] and scale_w.numel() == n:
        scales = (scale_x.reshape(-1), scale_w.reshape(-1))
        return _scaled_mm(flat, weight, *scales, bias, made, True).reshape(shape)
    blocks = k // _BLOCK
    if k % _BLOCK or scale_w.shape != ((n + _BLOCK - 1) // _BLOCK, blocks) or bias is not None:
        raise refused(
            "scaled_mm",
            f"scales of {tuple(scale_x.shape)} and {tuple(scale_w.shape)}",
            "one each, one a row, or (without bias) one a block of 128",
        )
    rows = scale_x.reshape(flat.shape[0], blocks)
    return _block_scaled(flat, weight, rows, scale_w, made, _BLOCK).reshape(shape)


_BLOCK = 128


def weight_only_linear(
    x: Tensor, weight: Tensor, scale: Tensor, bias: Tensor | None = None, *, bits: int = 8
) -> Tensor:
    """x @ (w * scale).T + bias, the weights of 8 or 4 bits

    Args:
        weight: (N, K) of int8; or (N, K/2) of uint8 from `pack_int4`.
        scale: (N, groups), groups a divisor of K; or (N,).
    """
    if bits not in (4, 8):
        raise refused("weight_only_linear", f"bits={bits}", "4 or 8")
    flat, scales = as_matrix(x), scale.reshape(weight.shape[0], -1)
    count = flat.shape[1]
    group = 0 if scales.shape[1] == 1 else count // scales.shape[1]
    if weight.shape[1] * (8 // bits) != count or (group and group * scales.shape[1] != count):
        raise refused("weight_only_linear", f"{tuple(weight.shape)} weights of {count}", "(N, K)")
    if bits == 4 and group % 2:
        raise refused("weight_only_linear", f"groups of {group}", "an even number, whole bytes")
    made = _weight_only(flat, weight, scales, bias, bits, group)
    return made.reshape(*x.shape[:-1], weight.shape[0])


def pack_int4(weight: Tensor) -> Tensor:
    """Numbers from -8 to 7 of shape (N, K) as (N, K/2) bytes, the even ones in the low half"""
    high = weight.to(torch.int32) + 8
    return (high[:, ::2] | (high[:, 1::2] << 4)).to(torch.uint8)


def _in_blocks(x: Tensor, block: int) -> Tensor:
    """(..., N) as (rows, blocks, block)."""
    flat = as_matrix(x.detach())
    size = block or flat.shape[1]
    if flat.shape[1] % max(size, 1):
        raise refused("quantize", f"blocks of {block} in rows of {flat.shape[1]}", "a divisor")
    return flat.reshape(flat.shape[0], flat.shape[1] // max(size, 1), size)


def _apart(x: Tensor, made: Sequence[Tensor]) -> Quantized:
    """q, scale, and what else there is, in the shape of x."""
    q, scale, *rest = made
    shapes = (t.reshape(x.shape) for t in rest)
    return q.reshape(x.shape), scale.reshape(*x.shape[:-1], scale.shape[1]), *shapes


def _made(dtype: Any) -> str:
    """The name of the dtype that values leave in.  Raises: DefinitionError: not-supported."""
    given = dtype or torch.float8_e4m3fn
    if given not in (torch.float8_e4m3fn, torch.float8_e5m2, torch.int8):
        raise refused("quantisation", f"dtype={given}", "float8_e4m3fn, float8_e5m2 or int8")
    return _name(given)


def _name(dtype: Any) -> str:
    return getattr(arrays.dtype_of_torch(dtype), "name", "")
