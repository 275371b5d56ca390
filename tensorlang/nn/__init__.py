"""Neural-net operators: definitions beside their schedules, and `functional` for torch.

The modules of definitions need no torch; `tensorlang.nn.functional` does, and the modules that
mirror torch.nn (`tensorlang.nn.Linear`, ...), which are loaded when they are first asked for.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """A module of torch.nn's names, or `functional`."""
    if name[:1].isupper():
        found = getattr(import_module("tensorlang.nn.modules"), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'tensorlang.nn' has no attribute {name!r}")
