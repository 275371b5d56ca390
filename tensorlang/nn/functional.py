"""torch.nn.functional's names, signatures and meaning, from definitions.

Every function runs on the CPU as C and on a GPU as Triton, has gradients, and is one operator to
torch.compile.  What torch takes and these do not is refused by name.
"""

from typing import Any

from tensorlang.nn import dropout as _dropout
from tensorlang.nn import embedding as _embedding
from tensorlang.nn import rotary as _rotary
from tensorlang.nn.attention import kept_attention, masked_attention
from tensorlang.nn.attention_backward import attention_gradients
from tensorlang.nn.attention_schedules import attend
from tensorlang.nn.functions.activation import geglu, gelu, relu, silu, swiglu
from tensorlang.nn.functions.arguments import in_autocast, refused
from tensorlang.nn.functions.convolution import (
    BatchNorm,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from tensorlang.nn.functions.losses import cross_entropy, cross_entropy_with_gradient
from tensorlang.nn.functions.matmul import bmm, grouped_mm, linear
from tensorlang.nn.functions.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from tensorlang.nn.functions.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from tensorlang.nn.functions.quantized import (
    batch_norm_quantized,
    group_norm_quantized,
    layer_norm_quantized,
    pack_int4,
    quantize,
    rms_norm_quantized,
    scaled_mm,
    silu_mul_quantized,
    softmax_quantized,
    weight_only_linear,
)
from tensorlang.nn.functions.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    mean,
    prod,
    sum,
    topk,
)
from tensorlang.nn.functions.softmax import log_softmax, softmax
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

__all__ = [
    "BatchNorm",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "all",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "attention",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "batch_norm_quantized",
    "bmm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cross_entropy",
    "cross_entropy_with_gradient",
    "cumprod",
    "cumsum",
    "dropout",
    "embedding",
    "geglu",
    "gelu",
    "group_norm",
    "group_norm_quantized",
    "grouped_mm",
    "instance_norm",
    "layer_norm",
    "layer_norm_quantized",
    "linear",
    "log_softmax",
    "logsumexp",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mean",
    "pack_int4",
    "prod",
    "quantize",
    "relu",
    "rms_norm",
    "rms_norm_quantized",
    "rope",
    "scaled_dot_product_attention",
    "scaled_mm",
    "silu",
    "silu_mul_quantized",
    "softmax",
    "softmax_quantized",
    "sum",
    "swiglu",
    "topk",
    "weight_only_linear",
]

_embedding_op = custom_op("tensorlang::embedding", _embedding.embedding)
_dropout_op = custom_op("tensorlang::dropout", _dropout.dropout, params={"p": float})
_attention_op = custom_op("tensorlang::attention", masked_attention, schedules=attend)
# With what its gradient needs of each row: for calls whose gradient may be asked for.
_kept_attention_op = custom_op(
    "tensorlang::attention_kept",
    kept_attention,
    schedules=attend,
    outputs=2,
    derivative=attention_gradients,
)
_rope = custom_op("tensorlang::rope", _rotary.rope)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """weight[x]; the row `padding_idx` gets no gradient"""
    found = _embedding_op(input.reshape(-1), weight)
    if padding_idx is not None:
        padding = (input.reshape(-1) == padding_idx % weight.shape[0])[:, None]
        found = torch.where(padding, found.detach(), found)
    return found.reshape(*input.shape, weight.shape[1])


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, *, seed: Tensor | None = None
) -> Tensor:
    """x / (1 - p) where a random number is at least p, else 0

    Args: seed: an i64 tensor of one element; the same seed gives the same numbers on any device.
    """
    if not training or p == 0.0:
        return input
    if seed is None:
        seed = torch.randint(2**31, (1,), device=input.device)
    return _dropout_op(input.reshape(-1), seed, float(p)).reshape(input.shape)


def rope(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool = False) -> Tensor:
    """Pairs of features turned by the angles of their position.

    Args:
        x: (..., positions, features).
        cos, sin: (positions, features / 2).
        interleaved: whether pairs are neighbours, instead of half the features apart.
    """
    flat = x.reshape(-1, *x.shape[-2:])
    return _rope(flat, cos, sin, x.shape[-1], interleaved).reshape(x.shape)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(Q K^T * scale + mask) V; a query that sees no key gives 0"""
    if dropout_p:
        raise refused("scaled_dot_product_attention", "dropout_p", "drop in a layer of its own")
    if is_causal and attn_mask is not None:
        raise refused("scaled_dot_product_attention", "attn_mask and is_causal", "give one")
    causal = "top_left" if is_causal else ""
    if not enable_gqa and query.shape[:-2] != key.shape[:-2]:
        heads = torch.broadcast_shapes(*(t.shape[:-2] for t in (query, key, value)))
        query, key, value = (t.expand(*heads, *t.shape[-2:]) for t in (query, key, value))
    return attention(query, key, value, bias=attn_mask, scale=scale, causal=causal)


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    bias: Any = None,
    slopes: Tensor | None = None,
    documents: Tensor | None = None,
    first: Tensor | None = None,
    last: Tensor | None = None,
    sinks: Tensor | None = None,
    table: Tensor | None = None,
    key_scales: Tensor | None = None,
    value_scales: Tensor | None = None,
    scale: float | None = None,
    causal: str = "",
    window: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
) -> Tensor:
    """Attention of (..., heads, M, features) to (..., heads/groups, N, features), in one pass

    Args:
        bias: (..., heads, M, N), added to scores; a bool says which of them stay.
        slopes: (heads,), ALiBi: slope * (key - query) is added.
        documents: (batch, N); a query sees its own document.
        first, last: (batch, M); query i sees keys first[i], ..., last[i] - 1.  Of documents that
            lie one after the other this says more: what no query of a tile sees is skipped.
        sinks: (heads,), a score that takes weight and gives no value.
        table: (batch, pages); key and value are then pages, (pages, heads, page, features).
        key_scales, value_scales: (heads of key,); what they are multiplied by: both may be of 8
            bits.
        causal: "top_left", "bottom_right" or "".
        window: how many keys before and after a query it sees; -1: all.
        softcap: c * tanh(score / c), where not 0.
    """
    query, key, value = (
        t if t.dtype.itemsize == 1 else in_autocast(t) for t in (query, key, value)
    )
    q, k, v = (t.reshape(-1, *_as_heads(t).shape[-3:]) for t in (query, key, value))
    if bias is not None:
        bias = bias.expand(*query.shape[:-1], key.shape[-2])
        bias = bias.reshape(-1, *_as_heads(bias).shape[-3:])
    tensors = (
        *(q, k, v, bias, slopes, documents, first, last, sinks, table, key_scales, value_scales),
    )
    rest = (
        q.shape[-1],
        v.shape[-1],
        q.shape[1] // k.shape[1],
        q.shape[-1] ** -0.5 if scale is None else float(scale),
        causal,
        *window,
        float(softcap),
        0 if table is None else k.shape[2],
    )
    learning = [t for t in tensors if t is not None and t.requires_grad]
    if learning and torch.is_grad_enabled():
        made, _ = _kept_attention_op(*tensors, *rest)
    else:
        made = _attention_op(*tensors, *rest)
    return made.reshape(*query.shape[:-1], value.shape[-1])


def _as_heads(t: Tensor) -> Tensor:
    """At least a dimension of heads."""
    return t if t.ndim > 2 else t[None]
