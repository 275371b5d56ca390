"""The functions of `runtime` that need the GPU's own library, for the interpreter.

Each is computed in f64 and rounded, like every function that is not strict (backends/numerics.py).
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorlang.backends.triton.libraries import interpreter, tl

_erf: Any = np.vectorize(math.erf, otypes=[np.float64])


def replacements() -> dict[str, Callable[..., Any]]:
    """By the name that generated text calls."""
    return {
        "round": _lifted(np.rint),
        "exp": _lifted(np.exp),
        "tanh": _lifted(np.tanh),
        "pow": _lifted(np.power),
        "sigmoid": _lifted(_sigmoid),
        "approx_tanh": _lifted(np.tanh),
        "approx_exp2": _lifted(np.exp2),
        "approx_rcp": _lifted(np.reciprocal),
        "approx_erf": _lifted(_erf),
        "after_the_kernel_before": lambda: None,
    }


def _sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))


def _lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function as one of Triton tensors of f32 or f64."""

    def lifted(*args: Any) -> Any:
        first = args[0]
        wide: Any = function(*(x.handle.data.astype(np.float64) for x in args))
        data: Any = np.asarray(wide).astype(first.handle.data.dtype)
        shape = list(data.shape) if any(x.type.is_block() for x in args) else []
        made = tl.block_type(first.dtype, shape) if shape else first.dtype
        return tl.tensor(interpreter.TensorHandle(data, first.dtype.scalar), made)

    return lifted
