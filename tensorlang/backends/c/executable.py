"""A compiled program: packs the arguments of a call and calls."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tensorlang.backends.c.addresses import address_of
from tensorlang.backends.c.calls import IN_FLIGHT
from tensorlang.backends.c.compiler import Function, load
from tensorlang.backends.c.program import OUT_OF_MEMORY, Translation, translate
from tensorlang.backends.c.toolchain import Toolchain
from tensorlang.backends.c.types import stored
from tensorlang.backends.executable import Run
from tensorlang.errors import InternalError, ShapeError
from tensorlang.ir.conversion import convert
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import DType, Scalar


class CExecutable:
    """One compiled function for arrays that are contiguous in their last dimension, and others.

    Which arrays are contiguous there, and whether an output is an Input as well, are facts of the
    call: each combination is a variant of the code, compiled when it is first met.
    """

    def __init__(self, program: Program, toolchain: Toolchain) -> None:
        self._program = program
        self._toolchain = toolchain
        buffers = (*program.inputs, *program.outputs)
        self._bytes = [stored(dtype).bits // 8 for b in buffers for dtype in b.dtypes]
        self._pack_pointers = struct.Struct(f"={len(self._bytes)}Q").pack
        floats = "".join(_format(param.dtype) for param in program.params)
        self._pack_scalars = struct.Struct(f"={floats}q").pack
        self._sizes = [size.name for size in program.sizes]
        self._params = [(param.name, param.dtype) for param in program.params]
        self._variants: dict[tuple[tuple[bool, ...], bool], Function] = {}
        self._translation = self._translate((True,) * len(self._bytes), in_place=False)

    @property
    def source(self) -> str:
        """The C of the variant for contiguous arrays."""
        return self._translation.source

    @property
    def notes(self) -> tuple[str, ...]:
        """What was ignored or is slow."""
        return self._translation.notes

    def _translate(self, contiguous: tuple[bool, ...], *, in_place: bool) -> Translation:
        translation = translate(
            self._program, self._toolchain.machine, contiguous, in_place=in_place
        )
        loaded = load(translation.source, translation.function, self._toolchain)
        self._variants[contiguous, in_place] = loaded
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
        self.prepare(sizes)(params, inputs, outputs)

    def prepare(self, sizes: Mapping[str, int], device: str = "cpu") -> Run:
        """`run` for calls of these Sizes, all with arrays of the same layouts."""
        plans: dict[bool, _Plan] = {}
        pack_pointers, pack_scalars, taken = self._pack_pointers, self._pack_scalars, self._params

        def run(
            params: Mapping[str, Scalar], inputs: Sequence[Any], outputs: Sequence[Any]
        ) -> None:
            addresses = tuple(map(address_of, (*inputs, *outputs)))
            in_place = not set(addresses[: len(inputs)]).isdisjoint(addresses[len(inputs) :])
            plan = plans.get(in_place)
            if plan is None:
                plan = plans[in_place] = self._plan((*inputs, *outputs), sizes, in_place=in_place)
            function, known = plan
            scalars = [convert(params[name], dtype) for name, dtype in taken]
            IN_FLIGHT.append(None)
            try:
                calls = len(IN_FLIGHT)
                status = function(pack_pointers(*addresses) + known + pack_scalars(*scalars, calls))
            finally:
                IN_FLIGHT.pop()
            if status:
                raise self._failure(status)

        return run

    def _failure(self, status: int) -> Exception:
        if status == OUT_OF_MEMORY:
            return MemoryError(f"{self._program.name}: no memory for a workspace")
        return InternalError(f"{self._program.name} returned {status}")

    def _plan(self, arrays: Sequence[Any], sizes: Mapping[str, int], *, in_place: bool) -> "_Plan":
        """The function for arrays laid out like these, and their strides and the Sizes in bytes."""
        words: list[int] = []
        contiguous: list[bool] = []
        for array, size in zip(arrays, self._bytes, strict=True):
            strides, shape = array.strides, array.shape
            contiguous.append(not strides or strides[-1] == size or shape[-1] < 2)
            for stride, extent in zip(strides, shape, strict=True):
                if stride % size and extent > 1:
                    raise _not_whole(stride, size)
                words.append(stride // size)
        key = tuple(contiguous), in_place
        if key not in self._variants:
            self._translate(key[0], in_place=in_place)
        words += (sizes[name] for name in self._sizes)
        return self._variants[key], struct.pack(f"={len(words)}q", *words)


# The function of a variant, and the part of its arguments that calls have in common.
_Plan: TypeAlias = tuple[Function, bytes]


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
