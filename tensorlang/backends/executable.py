"""What every backend makes of a program."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tensorlang.ir.types import Scalar

# Of params, inputs and outputs: computes the outputs, in place.
Run: TypeAlias = Callable[[Mapping[str, Scalar], Sequence[Any], Sequence[Any]], None]


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


@runtime_checkable
class Preparing(Protocol):
    """An executable that can do much of a call once for all calls like it."""

    def prepare(self, sizes: Mapping[str, int], device: str) -> Run:
        """`run` for calls of these Sizes, all with arrays of the same layouts on one device."""
        ...


# Of the Sizes and the device: what runs calls that differ in data and Params alone.
Prepare: TypeAlias = Callable[[Mapping[str, int], str], Run]


def preparing(executable: Executable) -> Prepare:
    """How an executable gets ready for calls whose arrays have the same layouts."""
    if isinstance(executable, Preparing):
        return executable.prepare
    return lambda sizes, device: partial(executable.run, sizes)


# Of how many are compiled, and how many there are.
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Call:
    """A call to come: its Sizes and Params, and the shapes of Inputs and outputs."""

    sizes: Mapping[str, int]
    params: Mapping[str, Scalar]
    shapes: tuple[tuple[int, ...], ...]


@runtime_checkable
class Ahead(Protocol):
    """An executable that compiles for the sizes of a call when it first meets them."""

    def compile_ahead(
        self, calls: Sequence[Call], workers: int | None, progress: Progress | None
    ) -> int:
        """Compile what these calls will need, on so many threads; how many kernels that were."""
        ...


class Graph(Protocol):
    """A call captured as a CUDA graph: the tensors it reads, and what it returned."""

    inputs: tuple[Any, ...]
    outputs: Any

    def __call__(self, *inputs: Any) -> Any:
        """Do it again, after copying `inputs` (none, or all) to those captured; the outputs."""
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
