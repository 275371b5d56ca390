"""Activations and gates, with torch's arguments."""

from tensorlang.nn import activation as _activation
from tensorlang.nn.functions.arguments import refused
from tensorlang.torch import custom_op
from tensorlang.torch.libraries import Tensor

_activated = custom_op("tensorlang::activation", _activation.activation)
_gated = custom_op("tensorlang::gate", _activation.gate)


def activated(x: Tensor, kind: str) -> Tensor:
    """An activation of `nn.activation`, by name."""
    return _activated(x.reshape(-1), kind).reshape(x.shape)


def relu(input: Tensor) -> Tensor:
    """max(x, 0)"""
    return activated(input, "relu")


def silu(input: Tensor) -> Tensor:
    """x * sigmoid(x)"""
    return activated(input, "silu")


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x * P(a standard normal number is at most x); approximate="tanh": to three digits."""
    kinds = {"none": "gelu", "tanh": "gelu_tanh"}
    if approximate not in kinds:
        raise refused("gelu", f"approximate={approximate!r}", 'use "none" or "tanh"')
    return activated(input, kinds[approximate])


def swiglu(input: Tensor, gate: Tensor) -> Tensor:
    """silu(x) * gate"""
    return _gated(input.reshape(-1), gate.reshape(-1), "silu").reshape(input.shape)


def geglu(input: Tensor, gate: Tensor) -> Tensor:
    """gelu(x) * gate"""
    return _gated(input.reshape(-1), gate.reshape(-1), "gelu").reshape(input.shape)
