"""What tests of operators share: ours beside torch's, values and gradients."""

from collections.abc import Callable
from typing import Any

import torch


def draw(*shape: int, dtype: Any = torch.float64, seed: int = 0) -> Any:
    """Normal numbers that want a gradient."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=dtype, generator=generator).requires_grad_()


def check(
    mine: Callable[..., Any], theirs: Callable[..., Any], *tensors: Any, **tolerance: Any
) -> None:
    """Equal outputs, and equal gradients of a sum with random weights."""
    found, want = mine(*tensors), theirs(*tensors)
    torch.testing.assert_close(found, want, **tolerance)
    assert found.stride() == want.stride() or not want.is_contiguous()
    wrt = [t for t in tensors if t.requires_grad]
    if wrt:
        slopes = torch.randn(want.shape, dtype=want.dtype)
        found = torch.autograd.grad(found, wrt, slopes)
        want = torch.autograd.grad(want, wrt, slopes)
        torch.testing.assert_close(found, want, **tolerance)


def call(name: str, *extra: Any, **how: Any) -> Callable[[Any], Callable[..., Any]]:
    """Of a module of functions: the call of `name` with these arguments after the tensors."""
    return lambda module: lambda *tensors: getattr(module, name)(*tensors, *extra, **how)
