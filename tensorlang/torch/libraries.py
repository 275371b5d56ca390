"""torch, as the package takes it: without types, of which it has few."""

from importlib import import_module
from typing import Any

torch: Any = import_module("torch")
pytree: Any = import_module("torch.utils._pytree")
# What a type checker knows of a tensor.
Tensor = Any
