"""Attention to a cache and what is new, as one function of a graph."""

from typing import Any

from tensorlang.torch.libraries import Tensor, torch

_functional: Any = torch.nn.functional


def attend(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    new_keys: Tensor | None,
    new_values: Tensor | None,
    scale: float,
) -> Tensor:
    """What the kernel computes, by torch: a query sees the cache and what is new."""
    if new_keys is not None:
        keys, values = torch.cat((keys, new_keys), 2), torch.cat((values, new_values), 2)
    gqa = keys.shape[1] != q.shape[1]
    return _functional.scaled_dot_product_attention(q, keys, values, scale=scale, enable_gqa=gqa)
