"""torch.compile(model, backend="tensorlang"): `compilation.py` lists the steps."""

from tensorlang.torch.compiler.capture import tensorlang_backend
from tensorlang.torch.compiler.explaining import Explanation, explain, warmup
from tensorlang.torch.compiler.fallback import FallbackWarning

__all__ = ["Explanation", "FallbackWarning", "explain", "tensorlang_backend", "warmup"]
