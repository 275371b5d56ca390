"""Running a loop program, given as text, on the Triton backend's interpreter."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import torch

from tensorlang.backends import interpreter
from tensorlang.backends.triton import compile_program
from tensorlang.backends.triton.executable import TritonExecutable
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import Scalar
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

TRITON = Target("triton", arch="sm_90")
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def compiled(text: str) -> TritonExecutable:
    """The program as Triton."""
    return compile_program(parse_program(text), TRITON)


def run(
    text: str,
    sizes: Mapping[str, int],
    inputs: Sequence[torch.Tensor],
    outputs: Sequence[torch.Tensor],
    params: Mapping[str, Scalar] | None = None,
) -> TritonExecutable:
    """Run `text` on torch tensors, and return what ran."""
    executable = compiled(text)
    executable.run(sizes, params or {}, inputs, outputs)
    return executable


def interpreted(
    program: Program,
    sizes: Mapping[str, int],
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    params: Mapping[str, Scalar] | None = None,
) -> None:
    """The same on the loop IR's own interpreter, which shares no code with the backend."""
    executable = interpreter.compile_program(program, Target("interpreter"))
    executable.run(sizes, params or {}, inputs, outputs)


def nan(*shape: int, dtype: torch.dtype = torch.float32, device: str = "cpu") -> torch.Tensor:
    """An output that shows what was not written."""
    return torch.full(shape, float("nan"), dtype=torch.float32, device=device).to(dtype)
