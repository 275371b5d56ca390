"""What a user may choose: torch.compile(model, backend="tensorlang", options={...})."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tensorlang.errors import DefinitionError


@dataclass(frozen=True, slots=True)
class Options:
    """How a graph is compiled.

    Args:
        target: where regions run; by default "c" on the CPU and "triton" on a GPU.
        products: where matrix products are computed: "auto", "library", "region", or "fused": as
            "auto", and large ones of a gate and its value in one kernel with what it makes of them.
        attention: where attention of an inference on a GPU is computed: "region", or "library".
        freeze: whether parameters are constants of an inference, so that what depends on them
            alone is computed once.
        rewrites: whether the graph is rewritten before it is divided.
    """

    target: str = "auto"
    products: str = "auto"
    attention: str = "region"
    freeze: bool = False
    rewrites: bool = True

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> "Options":
        """The options of a call.  Raises: DefinitionError: unknown-option."""
        known = [f.name for f in fields(Options)]
        for name in given or {}:
            if name not in known:
                raise DefinitionError(
                    "unknown-option",
                    f"the backend has no option {name!r}",
                    why=f"it has {', '.join(known)}",
                    fix="leave it out, or give one of these",
                )
        return Options(**dict(given or {}))

    def target_for(self, device: str) -> str:
        """The target of a region whose tensors are on a device."""
        if self.target != "auto":
            return self.target
        return "triton" if device == "cuda" else "c"
