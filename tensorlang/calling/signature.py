"""What a program takes and gives: names, dtypes and shapes."""

from dataclasses import dataclass

from tensorlang.ir.expr import Expr, Param
from tensorlang.ir.expr_text import print_expr
from tensorlang.ir.stmt import Buffer, Program
from tensorlang.ir.types import DType


@dataclass(frozen=True, slots=True)
class Argument:
    """An array of a call: an Input, or one component of an output."""

    name: str
    dtype: DType
    shape: tuple[Expr, ...]

    def shape_text(self) -> str:
        """The shape as the algorithm has it, such as `[M, 2*K]`."""
        return f"[{', '.join(print_expr(e) for e in self.shape)}]"

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}{self.shape_text()}"


@dataclass(frozen=True, slots=True)
class Signature:
    """As text: `linear(A: f16[M, K], B: f16[K, N]; alpha: f32) -> C: f32[M, N]`.

    A tuple-valued output is one Argument a component, named `f.0`, `f.1`, ...
    """

    name: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    sizes: tuple[str, ...]
    params: tuple[Param, ...]

    @staticmethod
    def of(program: Program) -> "Signature":
        """The signature of a lowered program."""
        return Signature(
            program.name,
            tuple(a for buffer in program.inputs for a in _arguments(buffer)),
            tuple(a for buffer in program.outputs for a in _arguments(buffer)),
            tuple(size.name for size in program.sizes),
            program.params,
        )

    @property
    def dtypes(self) -> set[DType]:
        """Every dtype of an array."""
        return {a.dtype.storage for a in (*self.inputs, *self.outputs)}

    def __str__(self) -> str:
        inputs = ", ".join(map(str, self.inputs))
        params = ", ".join(f"{p.name}: {p.dtype}" for p in self.params)
        outputs = ", ".join(map(str, self.outputs))
        return f"{self.name}({inputs}{'; ' if params else ''}{params}) -> {outputs}"


def _arguments(buffer: Buffer) -> tuple[Argument, ...]:
    shape = tuple(d.extent for d in buffer.dims)
    if len(buffer.dtypes) == 1:
        return (Argument(buffer.name, buffer.dtypes[0], shape),)
    return tuple(Argument(f"{buffer.name}.{k}", t, shape) for k, t in enumerate(buffer.dtypes))
