"""Runs generated kernels on CPU tensors, in Triton's interpreter with its faults corrected.

Triton's interpreter runs the text of a kernel as Python over NumPy arrays, one program after
another.  `interpreter_faults` says what it gets wrong and puts it right while one of our kernels
runs, so that kernels of others and compiled kernels in the same process see nothing of it.
"""

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlang.backends.triton import runtime, runtime_numpy
from tensorlang.backends.triton.interpreter_bounds import bounded
from tensorlang.backends.triton.interpreter_faults import corrected
from tensorlang.backends.triton.layout import Layout
from tensorlang.backends.triton.libraries import interpreter, jit, tl

_library: list[Any] = []


def library() -> Any:
    """The runtime as plain Python functions, under the name `rt` of generated text."""
    if not _library:
        names: dict[str, Any] = dict(vars(runtime))
        for name, value in vars(runtime).items():
            if isinstance(value, (jit.JITFunction, interpreter.InterpretedFunction)):
                names[name] = types.FunctionType(value.fn.__code__, names, name)
        names |= runtime_numpy.replacements()
        _library.append(types.SimpleNamespace(**names))
    return _library[0]


def interpret(function: Callable[..., None], programs: int, arguments: Mapping[str, Any]) -> None:
    """Run a kernel's Python function for each program id.

    Args:
        function: of a namespace whose `rt` is `library()`.
        arguments: torch CPU tensors; ints of 32 or 64 bits as NumPy scalars; floats; anything else
            (compile-time values) is passed as it is.
    """
    builder: Any = interpreter.interpreter_builder
    described = [v.tensor if isinstance(v, Described) else v for v in arguments.values()]
    tensors = [v for v in described if hasattr(v, "data_ptr")]
    with np.errstate(all="ignore"), corrected(function), bounded(tensors):
        made = {name: _as_triton(value) for name, value in arguments.items()}
        builder.set_grid_dim(programs, 1, 1)
        for program in range(programs):
            builder.set_grid_idx(program, 0, 0)
            function(**made)


@dataclass(frozen=True, slots=True)
class Described:
    """An array that a kernel reaches through a descriptor of boxes."""

    tensor: Any
    layout: Layout
    box: tuple[int, ...]


def _as_triton(value: Any) -> Any:
    if isinstance(value, Described):
        layout = value.layout
        strides = [*layout.strides[:-1], 1]
        return tl.make_tensor_descriptor(
            _as_triton(value.tensor), list(layout.shape), strides, list(value.box)
        )
    if isinstance(value, np.generic):
        return _scalar(value)
    if hasattr(value, "data_ptr"):
        dtype = tl.str_to_ty(jit.mangle_type(value), None)
        pointer = np.array([value.data_ptr()], dtype=np.uint64)
        return tl.tensor(interpreter.TensorHandle(pointer, dtype), dtype)
    return value


def _scalar(value: Any) -> Any:
    name: str = value.dtype.name
    dtype = getattr(tl, {"bool": "int1"}.get(name, name))
    return tl.tensor(interpreter.TensorHandle(np.array([value]), dtype), dtype)
