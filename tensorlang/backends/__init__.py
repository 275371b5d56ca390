"""The backends, by the name of their target; each is loaded when it is first compiled for."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from tensorlang.algorithm import Algorithm
from tensorlang.backends.executable import Binary, Executable, Graph
from tensorlang.ir.stmt import Program
from tensorlang.target import Target

_MODULES = {
    "interpreter": "tensorlang.backends.interpreter",
    "c": "tensorlang.backends.c",
    "triton": "tensorlang.backends.triton",
}


def compile_program(program: Program, target: Target) -> Executable:
    """What the backend of `target` makes of a loop program.  Raises: TargetError."""
    return import_module(_MODULES[target.name]).compile_program(program, target)


def compile_algorithm(algorithm: Algorithm) -> Executable:
    """The reference: the algorithm evaluated with no schedule and none of the lowering."""
    return import_module("tensorlang.backends.reference").compile_algorithm(algorithm)


def compile_offline(executable: Executable, arch: str) -> Mapping[str, Binary]:
    """Every GPU kernel of a Triton executable, compiled for an architecture, by name."""
    return import_module("tensorlang.backends.triton.offline").compile_offline(executable, arch)


def capture(call: Callable[..., Any], inputs: tuple[Any, ...]) -> Graph:
    """`call(*inputs)` as a CUDA graph; the inputs are tensors on a GPU."""
    return import_module("tensorlang.backends.triton.graph").capture(call, inputs)
