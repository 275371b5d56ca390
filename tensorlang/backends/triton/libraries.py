"""torch and Triton, as the rest of the package takes them: without types, which both lack."""

from importlib import import_module
from typing import Any

torch: Any = import_module("torch")
triton: Any = import_module("triton")
tl: Any = import_module("triton.language")
compiler: Any = import_module("triton.compiler")
allocation: Any = import_module("triton.runtime._allocation")
jit: Any = import_module("triton.runtime.jit")
interpreter: Any = import_module("triton.runtime.interpreter")
knobs: Any = import_module("triton.knobs")
targets: Any = import_module("triton.backends.compiler")
