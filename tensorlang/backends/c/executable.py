"""A compiled program: packs the arguments of a call and calls."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.backends.c.compiler import Function, load
from tensorlang.backends.c.program import OUT_OF_MEMORY, Translation, translate
from tensorlang.backends.c.toolchain import Toolchain
from tensorlang.backends.c.types import stored
from tensorlang.errors import InternalError, ShapeError
from tensorlang.ir.expr import convert
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import DType, Scalar


class CExecutable:
    """One compiled function for arrays that are contiguous in their last dimension, and others.

    Which arrays are contiguous there is a fact of the call: each combination is a variant of the
    code, compiled when it is first met.
    """

    def __init__(self, program: Program, toolchain: Toolchain) -> None:
        self._program = program
        self._toolchain = toolchain
        buffers = (*program.inputs, *program.outputs)
        self._bytes = [stored(dtype).bits // 8 for b in buffers for dtype in b.dtypes]
        ranks = [len(b.dims) for b in buffers for _ in b.dtypes]
        words = len(ranks) + sum(ranks) + len(program.sizes)
        floats = "".join(_format(param.dtype) for param in program.params)
        self._pack = struct.Struct(f"={words}q{floats}").pack
        self._sizes = [size.name for size in program.sizes]
        self._params = [(param.name, param.dtype) for param in program.params]
        self._usual = (True,) * len(ranks)
        self._variants: dict[tuple[bool, ...], Function] = {}
        self._translation = self._translate(self._usual)

    @property
    def source(self) -> str:
        """The C of the usual variant."""
        return self._translation.source

    @property
    def notes(self) -> tuple[str, ...]:
        """What was ignored or is slow."""
        return self._translation.notes

    def _translate(self, contiguous: tuple[bool, ...]) -> Translation:
        translation = translate(self._program, self._toolchain.machine, contiguous)
        self._variants[contiguous] = load(translation.source, translation.function, self._toolchain)
        return translation

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place.

        Raises: MemoryError: a workspace was refused.  ShapeError: stride-not-whole.
        """
        pointers: list[int] = []
        words: list[Any] = []
        contiguous: list[bool] = []
        for array, size in zip((*inputs, *outputs), self._bytes, strict=True):
            pointers.append(array.__array_interface__["data"][0])
            strides = array.strides
            near = not strides or strides[-1] == size or array.shape[-1] < 2
            contiguous.append(near)
            for stride in strides:
                words.append(stride // size)
                if stride % size:
                    raise _not_whole(stride, size)
        words += [sizes[name] for name in self._sizes]
        words += [convert(params[name], dtype) for name, dtype in self._params]
        key = tuple(contiguous)
        function = self._variants.get(key)
        if function is None:
            self._translate(key)
            function = self._variants[key]
        status = function(self._pack(*pointers, *words))
        if status == OUT_OF_MEMORY:
            raise MemoryError(f"{self._program.name}: no memory for a workspace")
        if status:
            raise InternalError(f"{self._program.name} returned {status}")


def _format(dtype: DType) -> str:
    if dtype.is_float:
        return "d"
    return "q" if dtype.is_signed else "Q"


def _not_whole(stride: int, size: int) -> ShapeError:
    return ShapeError(
        "stride-not-whole",
        f"an array has a stride of {stride} bytes, and elements of {size} bytes",
        why="C addresses an array by whole elements",
        fix="pass a copy of the array",
    )
