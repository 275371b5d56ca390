"""torch.nn.functional's names, signatures and meaning, from definitions.

Every function runs on the CPU as C and on a GPU as Triton, has gradients, and is one operator to
torch.compile.  What torch takes and these do not is refused by name.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from tensorlang import arrays
from tensorlang.errors import DefinitionError
from tensorlang.nn import activation as _activation
from tensorlang.nn import dropout as _dropout
from tensorlang.nn import embedding as _embedding
from tensorlang.nn import linear as _linear
from tensorlang.nn import normalization as _normalization
from tensorlang.nn import rotary as _rotary
from tensorlang.nn import softmax as _softmax
from tensorlang.nn.attention import flash, masked_attention
from tensorlang.nn.schedules import rows
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor, torch

_activated = custom_op("tensorlang::activation", _activation.activation)
_gated = custom_op("tensorlang::gate", _activation.gate)
_layer_norm = custom_op(
    "tensorlang::layer_norm", _normalization.layer_norm, params={"eps": float}, schedules=rows
)
_rms_norm = custom_op(
    "tensorlang::rms_norm", _normalization.rms_norm, params={"eps": float}, schedules=rows
)
_soft_max = custom_op("tensorlang::softmax", _softmax.softmax, schedules=rows)
_cross_entropy = custom_op("tensorlang::cross_entropy", _softmax.cross_entropy)
_linear_op = custom_op("tensorlang::linear", _linear.linear)
_embedding_op = custom_op("tensorlang::embedding", _embedding.embedding)
_dropout_op = custom_op("tensorlang::dropout", _dropout.dropout, params={"p": float})
_attention_op = custom_op("tensorlang::attention", masked_attention, schedules=flash)
_rope = custom_op("tensorlang::rope", _rotary.rope)


def relu(input: Tensor) -> Tensor:
    """max(x, 0)"""
    return _elementwise(input, "relu")


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)"""
    return _elementwise(input, "silu")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * P(a standard normal number is at most x); approximate="tanh": to three digits."""
    kinds = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in kinds:
        raise _refused("gelu", f"approximate={approximate!r}", 'use "none" or "tanh"')
    return _elementwise(input, kinds[approximate])


def swiglu(input: Tensor, gate: Tensor) -> Tensor:
    """silu(x) * gate"""
    return _gated(input.reshape(-1), gate.reshape(-1), "silu").reshape(input.shape)


def geglu(input: Tensor, gate: Tensor) -> Tensor:
    """gelu(x) * gate"""
    return _gated(input.reshape(-1), gate.reshape(-1), "gelu").reshape(input.shape)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """exp(x) / sum(exp(x)) along a dimension"""
    return _normalized_exp(input, dim, dtype, False)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """x - log(sum(exp(x))) along a dimension"""
    return _normalized_exp(input, dim, dtype, True)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last dimensions"""
    input = _in_autocast(input, torch.float32)
    x, *rest = _as_rows("layer_norm", input, normalized_shape, weight, bias)
    return _layer_norm(x, *rest, float(eps)).reshape(input.shape)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last dimensions; eps: by default the dtype's"""
    x, *rest = _as_rows("rms_norm", input, normalized_shape, weight)
    wide = torch.float64 if input.dtype == torch.float64 else torch.float32
    least = torch.finfo(wide).eps if eps is None else float(eps)
    return _rms_norm(x, *rest, least).reshape(input.shape)


def linear(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str = "none",
    residual: Tensor | None = None,
) -> Tensor:
    """activation(x @ weight.T + bias) + residual, in one kernel

    Args: activation: "none", "relu", "silu", "gelu" or "gelu_tanh".
    """
    input, weight, bias, residual = (_in_autocast(t) for t in (input, weight, bias, residual))
    shape = (*input.shape[:-1], weight.shape[0])
    if residual is not None:
        residual = _rows(residual.expand(shape))
    return _linear_op(_rows(input), weight, bias, residual, activation).reshape(shape)


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
        raise _refused(
            "cross_entropy",
            "probabilities as targets, size_average and reduce",
            "give class numbers, and reduction=",
        )
    input = _in_autocast(input, torch.float32)
    classes = 0 if input.ndim == 1 else 1
    x = input.movedim(classes, -1)
    flat, at = _rows(x), target.reshape(-1)
    loss = _cross_entropy(flat, at, weight, int(ignore_index), float(label_smoothing))
    if reduction == "none":
        return loss.reshape(target.shape)
    if reduction == "sum":
        return loss.sum()
    valid = at != ignore_index
    if weight is None:
        return loss.sum() / valid.sum()
    chosen = weight[torch.where(valid, at, 0)]
    return loss.sum() / torch.where(valid, chosen, 0).sum()


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
        raise _refused("scaled_dot_product_attention", "dropout_p", "drop in a layer of its own")
    if is_causal and attn_mask is not None:
        raise _refused("scaled_dot_product_attention", "attn_mask and is_causal", "give one")
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
        first, last: (batch, M); query i sees keys first[i], ..., last[i] - 1.
        sinks: (heads,), a score that takes weight and gives no value.
        table: (batch, pages); key and value are then pages, (pages, heads, page, features).
        causal: "top_left", "bottom_right" or "".
        window: how many keys before and after a query it sees; -1: all.
        softcap: c * tanh(score / c), where not 0.
    """
    query, key, value = (_in_autocast(t) for t in (query, key, value))
    q, k, v = (t.reshape(-1, *_as_heads(t).shape[-3:]) for t in (query, key, value))
    if bias is not None:
        bias = bias.expand(*query.shape[:-1], key.shape[-2])
        bias = bias.reshape(-1, *_as_heads(bias).shape[-3:])
    made = _attention_op(
        *(q, k, v, bias, slopes, documents, first, last, sinks, table),
        q.shape[-1],
        v.shape[-1],
        q.shape[1] // k.shape[1],
        q.shape[-1] ** -0.5 if scale is None else float(scale),
        causal,
        *window,
        float(softcap),
        0 if table is None else k.shape[2],
    )
    return made.reshape(*query.shape[:-1], value.shape[-1])


def _as_heads(t: Tensor) -> Tensor:
    """At least a dimension of heads."""
    return t if t.ndim > 2 else t[None]


def _elementwise(x: Tensor, kind: str) -> Tensor:
    return _activated(x.reshape(-1), kind).reshape(x.shape)


def _normalized_exp(x: Tensor, dim: int | None, dtype: Any, logarithm: bool) -> Tensor:
    if dim is None:
        dim = 0 if x.ndim in (0, 1, 3) else 1
    x = _in_autocast(x, torch.float32)
    last = (x[None] if x.ndim == 0 else x).movedim(dim, -1)
    known = "" if dtype is None else getattr(arrays.dtype_of_torch(dtype), "name", "")
    made = _soft_max(_rows(last), logarithm, known)
    return made.reshape(last.shape).movedim(-1, dim).reshape(x.shape)


def _rows(x: Tensor) -> Tensor:
    """All dimensions but the last as one, which an extent of 0 does not tell."""
    return x.reshape(prod(x.shape[:-1]), x.shape[-1])


def _as_rows(
    name: str, x: Tensor, normalized_shape: Sequence[int], *rest: Tensor | None
) -> list[Tensor | None]:
    """The last dimensions as one, of x and of what is as large as they are."""
    last = tuple(normalized_shape)
    if tuple(x.shape[x.ndim - len(last) :]) != last:
        raise _refused(name, f"normalized_shape={last}", f"the last extents of {tuple(x.shape)}")
    flat = [None if t is None else t.reshape(-1) for t in rest]
    return [x.reshape(prod(x.shape[: x.ndim - len(last)]), prod(last)), *flat]


def _in_autocast(x: Any, dtype: Any = None) -> Any:
    """The tensor as torch.autocast wants it: in `dtype`, by default the low precision."""
    if x is None or not x.is_floating_point() or x.dtype == torch.float64:
        return x
    device = x.device.type
    if not torch.is_autocast_enabled(device):
        return x
    return x.to(torch.get_autocast_dtype(device) if dtype is None else dtype)


def _refused(name: str, what: str, fix: str) -> DefinitionError:
    return DefinitionError(
        "not-supported",
        f"{name} does not take {what}",
        why="it has no definition here",
        fix=fix,
    )
