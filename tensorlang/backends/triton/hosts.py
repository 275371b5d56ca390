"""What a program's host function talks to: it interprets, launches, or only looks ahead."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.launch import Job, Launcher, Plan
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.replay import Replay, Step, Workspaces
from tensorlang.backends.triton.route import Router
from tensorlang.backends.triton.starting import start_of
from tensorlang.backends.triton.storage import next_power_of_two

_TORCH = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f16": "float16", "bf16": "bfloat16",
    "tf32": "float32", "f32": "float32", "f64": "float64", "index": "int64",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Start:
    """One launch.

    Args: places: of its tensors, among those of the host.
    """

    launcher: Launcher
    programs: int
    places: tuple[int, ...]
    scalars: Sequence[Any]
    plan: Plan


class Host(ABC):
    """What the text of a host function calls; it names tensors by their positions."""

    def __init__(self, routers: Mapping[str, Router], tensors: Sequence[Any]) -> None:
        self._routers, self.tensors = routers, list(tensors)

    def launch(
        self,
        kernel: Any,
        programs: int,
        tensors: tuple[int, ...],
        scalars: tuple[Any, ...],
        extents: tuple[int, ...],
    ) -> None:
        """Start a kernel.  Raises: TargetError: tile-too-large."""
        if programs <= 0:
            return
        given = [self.tensors[place] for place in tensors]
        route = self._routers[kernel.__name__].route(programs, given, scalars, extents)
        chosen, values = route.arguments(given, scalars)
        places = tuple([tensors[k] for k in route.order])
        plan = route.launcher.plan(programs, chosen, values, route.extents)
        self._start(_Start(route.launcher, programs, places, values, plan))

    @abstractmethod
    def _start(self, what: _Start) -> None:
        """Do with a launch what this host does."""

    def empty(self, dtype: str, *shape: int, pad: Mapping[int, int] | None = None) -> int:
        """A workspace from torch's allocator; its elements start undefined.

        Args: pad: dimensions whose extents in memory are multiples of a number.
        """
        sizes = [max(size, 0) for size in shape]
        multiples = [(pad or {}).get(dim, 1) for dim in range(len(sizes))]
        kept = tuple([n + -n % multiple for n, multiple in zip(sizes, multiples, strict=True)])
        made = self._empty(kept, getattr(torch, _TORCH[dtype]))
        self.tensors.append(made[tuple(map(slice, sizes))] if pad else made)
        return len(self.tensors) - 1

    @abstractmethod
    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Memory for a workspace."""

    def counters(self, count: int) -> int:
        """Numbers that are 0, and that a kernel leaves at 0."""
        self.tensors.append(self._counters(max(count, 0)))
        return len(self.tensors) - 1

    @abstractmethod
    def _counters(self, count: int) -> Any:
        """Memory for counters."""

    @staticmethod
    def floordiv(a: int, b: int) -> int:
        return a // b if b else 0

    @staticmethod
    def mod(a: int, b: int) -> int:
        return a % b if b else 0

    next_power_of_2 = staticmethod(next_power_of_two)


class Interpreting(Host):
    """Runs the kernels as Python, one program after another."""

    def _start(self, what: _Start) -> None:
        tensors = [self.tensors[k] for k in what.places]
        what.launcher.interpret(what.programs, tensors, what.scalars, what.plan)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype)

    def _counters(self, count: int) -> Any:
        return torch.zeros((count,), dtype=torch.int32)


class Launching(Host):
    """Launches the kernels, and keeps what it did."""

    def __init__(self, routers: Mapping[str, Router], tensors: Sequence[Any]) -> None:
        super().__init__(routers, tensors)
        self._given = len(self.tensors)
        self._counting: set[int] = set()
        self._steps: list[Step] = []

    def _start(self, what: _Start) -> None:
        launcher, plan = what.launcher, what.plan
        tensors = [self.tensors[k] for k in what.places]
        compiled = launcher.compiled(launcher.key(tensors, plan))
        given = list(tensors)
        for place, layout in plan.layouts:
            given[place] = layout.at(tensors[place].data_ptr())
        fixed = (*what.scalars, *plan.fixed)
        with gpu.scratch():
            compiled[(what.programs, 1, 1)](*given, *fixed)
        start, scratch = start_of(compiled), None
        if start.scratch:
            scratch = len(self.tensors)
            self.tensors.append(gpu.empty((what.programs * start.scratch,), torch.int8))
        self._steps.append(
            Step(start, what.programs, what.places, fixed, launcher.params, scratch, plan.layouts)
        )

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return gpu.empty(shape, dtype)

    def _counters(self, count: int) -> Any:
        self._counting.add(len(self.tensors))
        return gpu.counters(count)

    def replay(self) -> Replay:
        """What was done, to be done again."""
        made = enumerate(self.tensors[self._given :], self._given)
        workspaces = Workspaces.of(self._size_of(place, tensor) for place, tensor in made)
        return Replay(gpu.current_device(), tuple(self._steps), workspaces)

    def _size_of(self, place: int, tensor: Any) -> tuple[int, bool]:
        """Bytes of a workspace; of counters how many."""
        if place in self._counting:
            return tensor.numel(), True
        # Padding counts: what a tensor shows may be less than what it is.
        return tensor.untyped_storage().nbytes(), False


class Planning(Host):
    """Launches nothing: finds the compiled kernels that a call would need, once each."""

    def __init__(self, routers: Mapping[str, Router], tensors: Sequence[Any]) -> None:
        super().__init__(routers, tensors)
        self.jobs: dict[Job, None] = {}

    def _start(self, what: _Start) -> None:
        key = what.launcher.key([self.tensors[k] for k in what.places], what.plan)
        self.jobs[Job(what.launcher, key)] = None

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype, device="meta")

    def _counters(self, count: int) -> Any:
        return torch.empty((count,), dtype=torch.int32, device="meta")
