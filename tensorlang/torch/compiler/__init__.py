"""torch.compile(model, backend="tensorlang"): `compilation.py` lists the steps."""

from tensorlang.torch.compiler.capture import tensorlang_backend
from tensorlang.torch.compiler.running import FallbackWarning

__all__ = ["FallbackWarning", "tensorlang_backend"]
