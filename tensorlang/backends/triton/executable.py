"""A program compiled for Triton: its text, and the host function that launches its kernels."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.launch import Launcher
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.storage import next_power_of_two
from tensorlang.ir.types import Scalar

_TORCH = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f16": "float16", "bf16": "bfloat16",
    "tf32": "float32", "f32": "float32", "f64": "float64", "index": "int64",
}  # fmt: skip


class TritonExecutable:
    """See `backends.executable.Executable`; takes torch tensors, on the CPU interpreted."""

    def __init__(
        self, name: str, source: str, kernels: Sequence[KernelText], notes: tuple[str, ...]
    ) -> None:
        self.source, self.notes, self.kernels = source, notes, tuple(kernels)
        self.module = Module(name, source)
        self.launchers = {k.name: Launcher(k, self.module) for k in kernels}
        self._host = self.module.function(f"{name}_host")

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place, on the current stream of their device."""
        device = (*outputs, *inputs)[0].device
        self._host(_Host(self, device), *inputs, *outputs, *sizes.values(), *params.values())


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
        self._executable.launchers[kernel.__name__](programs, tensors, scalars, extents)

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
