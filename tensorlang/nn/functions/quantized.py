"""Quantisation to 8 bits, and matmuls of 8 and 4 bits.  Nothing of it has a gradient but what is
linear in a float: the input and the scale of a weight-only matmul.
"""

from typing import Any

from tensorlang import arrays
from tensorlang.nn import quantized as _quantized
from tensorlang.nn.functions.arguments import as_matrix, refused
from tensorlang.nn.quantized import in_one_read, tiles_of_groups
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_EPS: dict[str, type] = {"eps": float}


def _operator(name: str, what: Any, **how: Any) -> Any:
    return custom_op(f"tensorlang::{name}", what, outputs=2, schedules=in_one_read, **how)


_quantize = _operator("quantize", _quantized.quantize)
_silu_mul = _operator("silu_mul_quantized", _quantized.silu_mul)
_rms_norm = _operator("rms_norm_quantized", _quantized.rms_norm, params=_EPS)
_layer_norm = _operator("layer_norm_quantized", _quantized.layer_norm, params=_EPS)
_scaled_mm = custom_op("tensorlang::scaled_mm", _quantized.scaled_mm)
_block_scaled = custom_op(
    "tensorlang::block_scaled_mm", _quantized.block_scaled_mm, schedules=tiles_of_groups
)
_weight_only = custom_op(
    "tensorlang::weight_only", _quantized.weight_only, schedules=tiles_of_groups
)
Quantized = tuple[Tensor, Tensor]


def quantize(x: Tensor, *, dtype: Any = None, block: int = 0) -> Quantized:
    """x as 8 bits, and the scales that bring it back: x is about q * scale

    Args:
        dtype: torch.float8_e4m3fn (the default), float8_e5m2 or int8.
        block: how many values of a row share a scale; 0: a row has one.
    """
    return _apart(x, (_in_blocks(x, block),), _quantize, dtype)


def silu_mul_quantized(x: Tensor, gate: Tensor, *, dtype: Any = None, block: int = 0) -> Quantized:
    """silu(x) * gate as `quantize` gives it, in one kernel"""
    return _apart(x, (_in_blocks(x, block), _in_blocks(gate, block)), _silu_mul, dtype)


def rms_norm_quantized(
    x: Tensor,
    weight: Tensor,
    eps: float = 1e-6,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
    block: int = 0,
) -> Quantized:
    """rms_norm(x + residual) over the last dimension as `quantize` gives it, in one kernel"""
    rows = _in_blocks(x, block)
    more = None if residual is None else _in_blocks(residual, block)
    return _apart(x, (rows, weight.reshape(rows.shape[1:]), more), _rms_norm, dtype, float(eps))


def layer_norm_quantized(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float = 1e-5,
    *,
    residual: Tensor | None = None,
    dtype: Any = None,
    block: int = 0,
) -> Quantized:
    """layer_norm(x + residual) over the last dimension as `quantize` gives it, in one kernel"""
    rows = _in_blocks(x, block)
    more = None if residual is None else _in_blocks(residual, block)
    given = (rows, weight.reshape(rows.shape[1:]), bias.reshape(rows.shape[1:]), more)
    return _apart(x, given, _layer_norm, dtype, float(eps))


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


def _apart(x: Tensor, given: tuple[Any, ...], op: Any, dtype: Any, *rest: Any) -> Quantized:
    q, scale = op(*given, _name(dtype or torch.float8_e4m3fn), *rest)
    return q.reshape(x.shape), scale.reshape(*x.shape[:-1], scale.shape[1])


def _name(dtype: Any) -> str:
    return getattr(arrays.dtype_of_torch(dtype), "name", "")
