"""What every backend makes of a program."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tensorlang.ir.types import Scalar


class Executable(Protocol):
    """A compiled program.

    `run` is given what `kernel.py` has checked: every Size and Param, one array an Input, and one
    array a component of each output, in the program's order.  The targets reference, interpreter
    and c take NumPy arrays of any strides (also 0 and negative; Inputs may be read-only) whose
    elements are storage types: bf16 as uint16 bits, f8 as uint8 bits, tf32 as float32, index as
    int64.  triton takes torch tensors of the dtypes themselves.  Outputs overlap neither each
    other nor an Input, and no two of their indices reach one element.
    """

    @property
    def source(self) -> str:
        """The generated text; empty where there is none."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Hints that were ignored, and what is slow, each with its remedy."""
        ...

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place."""
        ...


class Binary(Protocol):
    """One GPU kernel of a program, compiled for an architecture with no GPU present."""

    @property
    def ptx(self) -> str:
        """The assembly text."""
        ...

    @property
    def cubin(self) -> bytes:
        """The machine code."""
        ...

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        ...

    @property
    def registers(self) -> int:
        """Registers of a thread."""
        ...

    @property
    def spilled(self) -> int:
        """Bytes of memory of a thread that stand in for registers."""
        ...
