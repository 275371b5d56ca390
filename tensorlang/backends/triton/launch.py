"""Launching kernels: one `Launcher` a kernel, one compiled kernel a `Key`.

A call is prepared once for each set of sizes and strides; what remains each time is the lookup, the
alignment of pointers, and the launch.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.interpret import Described, interpret
from tensorlang.backends.triton.layout import Layout, Layouts
from tensorlang.backends.triton.libraries import compiler, triton
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.reach import Reach
from tensorlang.backends.triton.signature import (
    Key,
    constants,
    divisor_of,
    hints,
    scalar_type,
    signature,
)
from tensorlang.backends.triton.storage import next_power_of_two
from tensorlang.backends.triton.tiles import stride_var
from tensorlang.backends.triton.warps import usual_warps
from tensorlang.errors import TargetError
from tensorlang.ir.types import DType

_SCALARS = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "fp32": np.float32, "fp64": np.float64,
}  # fmt: skip

# Plans kept of one kernel: a size that grows with each call must not fill memory.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call of certain sizes and strides needs, but for its pointers.

    Args:
        key: with no divisors of pointers yet.
        fixed: the arguments after the tensors and scalars.
        layouts: of the tensors that go as descriptors, by position.
    """

    key: Key
    fixed: tuple[Any, ...]
    layouts: Layouts


@dataclass(frozen=True, slots=True)
class Job:
    """A compilation: of a kernel's text for a key."""

    launcher: "Launcher"
    key: Key


class Launcher:
    """Runs one text of a kernel, compiled or interpreted.

    Args:
        params: the names of Params, which are no sizes.
        quotients: the names of sizes whose divisors say nothing: only multiples of them are used.
    """

    def __init__(
        self,
        text: KernelText,
        module: Module,
        params: Collection[str],
        quotients: Collection[str] = (),
    ) -> None:
        self.text, self.module = text, module
        # Which scalars are Params as they were passed.
        self.params = tuple((k, row[1]) for k, row in enumerate(text.scalars) if row[1] in params)
        self.reach = Reach(text.kernel)
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self._compiled: dict[tuple[Any, ...], Any] = {}
        places = [(memory, component) for _, memory, component in text.pointers]
        # The tensor and the dimension of each stride, and which scalars are sizes.
        self._strides = [(places.index((m, c)), dim) for _, m, c, dim in text.strides]
        self._stride_names = [stride_var(m.pointer(c), dim).name for _, m, c, dim in text.strides]
        self._sizes = [k for k, row in enumerate(text.scalars) if row[2].name == "index"]
        self._divided = {k for k in self._sizes if text.scalars[k][1] not in quotients}
        boxes = [text.boxes.get(row[0]) for row in text.pointers]
        self._boxes = [(k, box) for k, box in enumerate(boxes) if box is not None]

    def plan(
        self,
        programs: int,
        tensors: Sequence[Any],
        scalars: Sequence[Any],
        extents: Sequence[int],
    ) -> Plan:
        """How to run it on such arguments.  Raises: TargetError: tile-too-large."""
        strides = tuple([tensors[position].stride(dim) for position, dim in self._strides])
        layouts = tuple([(k, Layout.of(tensors[k], box)) for k, box in self._boxes])
        known = (programs, *[scalars[k] for k in self._sizes], *strides, *extents, *layouts)
        plan = self._plans.get(known)
        if plan is None:
            if len(self._plans) > _REMEMBERED:
                self._plans.clear()
            plan = self._plans[known] = self._plan(programs, scalars, strides, extents, layouts)
        return plan

    def _plan(
        self,
        programs: int,
        scalars: Sequence[Any],
        strides: tuple[int, ...],
        extents: Sequence[int],
        layouts: Layouts,
    ) -> Plan:
        text = self.text
        spans = tuple(map(next_power_of_two, extents))
        by_extent = {row[1]: span for row, span in zip(text.extents, spans, strict=True)}
        text.limits.check(by_extent)
        sizes = {text.scalars[k][1]: scalars[k] for k in self._sizes}
        by_stride = dict(zip(self._stride_names, strides, strict=True))
        wide = self.reach.is_wide(sizes, by_stride, by_extent, programs)
        divisors = tuple(
            divisor_of(value) if k in self._divided else 1 for k, value in enumerate(scalars)
        )
        divisors += tuple(map(divisor_of, strides))
        key = Key(divisors, tuple(s == 1 for s in strides), spans, wide)
        fixed = list(constants(text, key).values())[-len(spans) - 1 :]
        return Plan(key, (*strides, *fixed), layouts)

    def interpret(
        self, programs: int, tensors: Sequence[Any], scalars: Sequence[Any], plan: Plan
    ) -> None:
        """Run it as Python on CPU tensors."""
        text = self.text
        index = np.int64 if plan.key.wide else np.int32
        values: dict[str, Any] = {
            row[0]: tensor for row, tensor in zip(text.pointers, tensors, strict=True)
        }
        for position, layout in plan.layouts:
            name = text.pointers[position][0]
            values[name] = Described(values[name], layout, text.boxes[name].shape)
        for (name, _, dtype), value in zip(text.scalars, scalars, strict=True):
            values[name] = _scalar(value, dtype, index)
        for (name, *_), value in zip(text.strides, plan.fixed, strict=False):
            values[name] = index(value)
        interpret(self.module.interpreted(text.name), programs, values | constants(text, plan.key))

    def key(self, tensors: Sequence[Any], plan: Plan) -> Key:
        """The specialisation that runs on such arguments."""
        described = dict(plan.layouts)
        pointers = tuple(
            [1 if k in described else divisor_of(t.data_ptr()) for k, t in enumerate(tensors)]
        )
        return replace(plan.key, divisors=(*pointers, *plan.key.divisors))

    def compiled(self, key: Key) -> Any:
        """The compiled kernel for a key, loaded on the current device.

        Raises: TargetError: cold-in-capture.
        """
        known = (gpu.current_device(), key)
        compiled = self._compiled.get(known)
        if compiled is None:
            if gpu.is_capturing():
                raise _cold_in_capture(self.text.name)
            compiled = self.compile(key, None)
            self.keep(key, compiled)
        return compiled

    def keep(self, key: Key, compiled: Any) -> None:
        """Load a compiled kernel on the current device, for calls to come."""
        # A captured call may not load it.
        compiled._init_handles()
        self._compiled[gpu.current_device(), key] = compiled

    def has(self, key: Key) -> bool:
        """Whether a key is compiled for the current device."""
        return (gpu.current_device(), key) in self._compiled

    def compile(self, key: Key, target: Any) -> Any:
        """Triton's compiled kernel for a key; `target` None is the current device."""
        source = compiler.ASTSource(
            fn=self.module.function(self.text.name),
            signature=signature(self.text, key),
            constexprs=constants(self.text, key),
            attrs=hints(key),
        )
        extents = {row[1]: e for row, e in zip(self.text.extents, key.extents, strict=True)}
        warps = self.text.kernel.warps or usual_warps(self.text.kernel, extents)
        # Fusion would contract a*b + c of the algorithm into one rounding.
        options: dict[str, Any] = {"num_warps": warps, "enable_fp_fusion": False}
        if self.text.kernel.thread_registers:
            options["maxnreg"] = self.text.kernel.thread_registers
        if self.text.kernel.dependent:
            options["launch_pdl"] = True
        return triton.compile(source, target=target, options=options)


def _cold_in_capture(kernel: str) -> TargetError:
    return TargetError(
        "cold-in-capture",
        f"the kernel '{kernel}' is not compiled yet for arguments like these",
        why="a CUDA graph is being captured, and nothing can be compiled and loaded meanwhile",
        fix="call it once before, or kernel.warmup(...), or capture with kernel.graph(...)",
    )


def _scalar(value: Any, dtype: DType, index: type[np.generic]) -> np.generic:
    if dtype.name == "index":
        return index(value)  # type: ignore[call-arg]
    return _SCALARS[scalar_type(dtype)](value)
