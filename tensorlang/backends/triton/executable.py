"""A program compiled for Triton: its text, and the host function that launches its kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.route import Router
from tensorlang.backends.triton.storage import next_power_of_two
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import Scalar
from tensorlang.target import Target

_TORCH = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f16": "float16", "bf16": "bfloat16",
    "tf32": "float32", "f32": "float32", "f64": "float64", "index": "int64",
}  # fmt: skip


class TritonExecutable:
    """See `backends.executable.Executable`; takes torch tensors, on the CPU interpreted."""

    def __init__(
        self,
        program: Program,
        source: str,
        kernels: Sequence[tuple[Launch, KernelText]],
        notes: tuple[str, ...],
        target: Target,
    ) -> None:
        self.source, self.notes = source, notes
        self.kernels = tuple(text for _, text in kernels)
        name = program.name.replace(".", "_")
        module = Module(name, source)
        self.routers = {text.name: Router(launch, text, module, target) for launch, text in kernels}
        self._host = module.function(f"{name}_host")
        self._sizes = [size.name for size in program.sizes]
        self._params = [param.name for param in program.params]

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place, on the current stream of their device."""
        host = _Host(self, (*outputs, *inputs)[0].device)
        scalars = [sizes[name] for name in self._sizes], [params[name] for name in self._params]
        self._host(host, *inputs, *outputs, *scalars[0], *scalars[1])


class _Host:
    """What the text of a host function calls."""

    def __init__(self, executable: TritonExecutable, device: Any) -> None:
        self._executable, self._device = executable, device

    def launch(
        self,
        kernel: Any,
        programs: int,
        tensors: tuple[Any, ...],
        scalars: tuple[Any, ...],
        extents: tuple[int, ...],
    ) -> None:
        self._executable.routers[kernel.__name__](programs, tensors, scalars, extents)

    def empty(self, dtype: str, *shape: int) -> Any:
        """A workspace from torch's allocator; its elements start undefined."""
        sizes = [max(size, 0) for size in shape]
        return torch.empty(sizes, dtype=getattr(torch, _TORCH[dtype]), device=self._device)

    @staticmethod
    def floordiv(a: int, b: int) -> int:
        return a // b if b else 0

    @staticmethod
    def mod(a: int, b: int) -> int:
        return a % b if b else 0

    next_power_of_2 = staticmethod(next_power_of_two)
