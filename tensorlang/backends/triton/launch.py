"""Launching kernels: one `Launcher` a kernel, one compiled kernel a `Key`.

A call is prepared once for each set of sizes and strides; what remains each time is the lookup, the
alignment of pointers, and the launch.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.interpret import interpret
from tensorlang.backends.triton.libraries import compiler, torch, triton
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.reach import Reach
from tensorlang.backends.triton.signature import (
    Key,
    constants,
    divisible,
    hints,
    scalar_type,
    signature,
)
from tensorlang.backends.triton.storage import next_power_of_two
from tensorlang.backends.triton.warps import usual_warps
from tensorlang.ir.types import DType

_SCALARS = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip


class Launcher:
    """Runs one kernel, compiled or interpreted."""

    def __init__(self, text: KernelText, module: Module) -> None:
        self.text, self.module = text, module
        self.reach = Reach(text.kernel)
        self._wide: dict[tuple[int, ...], bool] = {}
        self._compiled: dict[tuple[Any, Key], Any] = {}

    def __call__(
        self, programs: int, tensors: Sequence[Any], scalars: Sequence[Any], extents: Sequence[int]
    ) -> None:
        if programs <= 0:
            return
        by_pointer: dict[int, dict[int, tuple[int, ...]]] = {
            id(m): {} for _, m, _ in self.text.pointers
        }
        for (_, memory, component), tensor in zip(self.text.pointers, tensors, strict=True):
            by_pointer[id(memory)][component] = tensor.stride()
        strides = [by_pointer[id(m)][c][dim] for _, m, c, dim in self.text.strides]
        spans = tuple(next_power_of_two(e) for e in extents)
        wide = self._is_wide(scalars, strides, spans)
        if tensors and not tensors[0].is_cuda:
            self._interpret(programs, tensors, scalars, strides, spans, wide)
            return
        key = Key(
            divisible([t.data_ptr() for t in tensors], scalars, strides),
            tuple(s == 1 for s in strides),
            spans,
            wide,
        )
        self._launch(programs, tensors, scalars, strides, key)

    def _is_wide(
        self, scalars: Sequence[Any], strides: Sequence[int], spans: tuple[int, ...]
    ) -> bool:
        sizes = {
            name: int(value)
            for (_, name, dtype), value in zip(self.text.scalars, scalars, strict=True)
            if dtype.is_integer
        }
        key = (*sizes.values(), *strides, *spans)
        if key not in self._wide:
            by_stride = {
                f"{m.pointer(c)}.s{dim}": s
                for (_, m, c, dim), s in zip(self.text.strides, strides, strict=True)
            }
            by_extent = {name: s for (_, name, _), s in zip(self.text.extents, spans, strict=True)}
            self.text.limits.check(by_extent)
            self._wide[key] = self.reach.is_wide(sizes, by_stride, by_extent)
        return self._wide[key]

    def _interpret(
        self,
        programs: int,
        tensors: Sequence[Any],
        scalars: Sequence[Any],
        strides: Sequence[int],
        spans: tuple[int, ...],
        wide: bool,
    ) -> None:
        unit = tuple(s == 1 for s in strides)
        key = Key((), unit, spans, wide)
        index = np.int64 if wide else np.int32
        values = {row[0]: t for row, t in zip(self.text.pointers, tensors, strict=True)}
        for (name, _, dtype), value in zip(self.text.scalars, scalars, strict=True):
            values[name] = _scalar(value, dtype, index)
        for (name, *_), stride in zip(self.text.strides, strides, strict=True):
            values[name] = index(stride)
        values |= constants(self.text, key)
        interpret(self.module.interpreted(self.text.name), programs, values)

    def _launch(
        self,
        programs: int,
        tensors: Sequence[Any],
        scalars: Sequence[Any],
        strides: Sequence[int],
        key: Key,
    ) -> None:
        device = tensors[0].device
        with torch.cuda.device(device):
            compiled = self._compiled.get((device, key))
            if compiled is None:
                compiled = self._compiled[device, key] = self.compile(key, None)
            fixed = list(constants(self.text, key).values())[-len(key.extents) - 1 :]
            compiled[(programs, 1, 1)](*tensors, *scalars, *strides, *fixed)

    def compile(self, key: Key, target: Any) -> Any:
        """Triton's compiled kernel for a key; `target` None is the current device."""
        source = compiler.ASTSource(
            fn=self.module.function(self.text.name),
            signature=signature(self.text, key),
            constexprs=constants(self.text, key),
            attrs=hints(self.text, key),
        )
        extents = {row[1]: e for row, e in zip(self.text.extents, key.extents, strict=True)}
        warps = self.text.kernel.warps or usual_warps(self.text.kernel, extents)
        # Fusion would contract a*b + c of the algorithm into one rounding.
        options = {"num_warps": warps, "enable_fp_fusion": False}
        return triton.compile(source, target=target, options=options)


def _scalar(value: Any, dtype: DType, index: type[np.generic]) -> np.generic:
    if dtype.name == "index":
        return index(value)  # type: ignore[call-arg]
    return _SCALARS[scalar_type(dtype)](value)
