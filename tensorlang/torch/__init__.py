"""Pipelines as PyTorch operators: `custom_op` makes one with its fake kernel and its gradient."""

from tensorlang.torch.custom_op import custom_op

__all__ = ["custom_op"]
