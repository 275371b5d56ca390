"""A program compiled for Triton: its text, and the host function that launches its kernels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tensorlang.backends.executable import Run
from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.launch import Launcher, Plan
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.replay import Replay, Replayer, Step
from tensorlang.backends.triton.route import Router
from tensorlang.backends.triton.starting import start_of
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
    """See `backends.executable.Executable`; takes torch tensors, on the CPU interpreted.

    Args: deciding: the Params that the host function computes with.
    """

    def __init__(
        self,
        program: Program,
        source: str,
        kernels: Sequence[tuple[Launch, KernelText]],
        notes: tuple[str, ...],
        target: Target,
        deciding: Sequence[str] = (),
    ) -> None:
        self.source, self._notes = source, notes
        self.kernels = tuple(text for _, text in kernels)
        name = program.name.replace(".", "_")
        module = Module(name, source)
        self._sizes = [size.name for size in program.sizes]
        self._params = [param.name for param in program.params]
        self.routers = {
            text.name: Router(launch, text, module, target, frozenset(self._params))
            for launch, text in kernels
        }
        self._host = module.function(f"{name}_host")
        self._deciding = deciding

    @property
    def notes(self) -> tuple[str, ...]:
        """What is slow or ignored; what calls so far found is added."""
        calls = (note for router in self.routers.values() for note in router.admission.notes)
        return (*self._notes, *dict.fromkeys(calls))

    def run(
        self,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        outputs: Sequence[Any],
    ) -> None:
        """Compute the outputs, in place, on the current stream of their device."""
        tensors = (*inputs, *outputs)
        device = gpu.index_of(tensors[0].device)
        if device is None:
            self._call_host(_Interpreting(self, tensors), sizes, params)
            return
        with gpu.on(device):
            self._record(sizes, tensors, params)

    def prepare(self, sizes: Mapping[str, int], device: str) -> Run:
        """`run` for calls of these Sizes with arrays of one layout on one device."""
        gpu_index = gpu.index_of(torch.device(device))
        if gpu_index is None:
            return partial(self.run, sizes)
        return Replayer(gpu_index, self._deciding, partial(self._record, sizes))

    def _record(
        self, sizes: Mapping[str, int], tensors: Sequence[Any], params: Mapping[str, Scalar]
    ) -> Replay:
        """Run on the current device, which is that of the tensors; what was done."""
        host = _Launching(self, tensors)
        self._call_host(host, sizes, params)
        return host.replay()

    def _call_host(
        self, host: "_Host", sizes: Mapping[str, int], params: Mapping[str, Scalar]
    ) -> None:
        scalars = [sizes[name] for name in self._sizes], [params[name] for name in self._params]
        self._host(host, *range(len(host.tensors)), *scalars[0], *scalars[1])


class _Host:
    """What the text of a host function calls; it names tensors by their positions."""

    def __init__(self, executable: TritonExecutable, tensors: Sequence[Any]) -> None:
        self._executable, self.tensors = executable, list(tensors)

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
        route = self._executable.routers[kernel.__name__].route(given, scalars, extents)
        chosen, values = route.arguments(given, scalars)
        places = tuple([tensors[k] for k in route.order])
        plan = route.launcher.plan(chosen, values, route.extents)
        self._start(route.launcher, programs, places, values, plan)

    def _start(
        self,
        launcher: Launcher,
        programs: int,
        places: tuple[int, ...],
        scalars: Sequence[Any],
        plan: Plan,
    ) -> None:
        raise NotImplementedError

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

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def floordiv(a: int, b: int) -> int:
        return a // b if b else 0

    @staticmethod
    def mod(a: int, b: int) -> int:
        return a % b if b else 0

    next_power_of_2 = staticmethod(next_power_of_two)


class _Interpreting(_Host):
    """Runs the kernels as Python, one program after another."""

    def _start(
        self,
        launcher: Launcher,
        programs: int,
        places: tuple[int, ...],
        scalars: Sequence[Any],
        plan: Plan,
    ) -> None:
        launcher.interpret(programs, [self.tensors[k] for k in places], scalars, plan)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return torch.empty(shape, dtype=dtype)


class _Launching(_Host):
    """Launches the kernels, and keeps what it did."""

    def __init__(self, executable: TritonExecutable, tensors: Sequence[Any]) -> None:
        super().__init__(executable, tensors)
        self._given = len(self.tensors)
        self._steps: list[Step] = []

    def _start(
        self,
        launcher: Launcher,
        programs: int,
        places: tuple[int, ...],
        scalars: Sequence[Any],
        plan: Plan,
    ) -> None:
        tensors = [self.tensors[k] for k in places]
        compiled = launcher.compiled(tensors, plan)
        with gpu.scratch():
            compiled[(programs, 1, 1)](*tensors, *scalars, *plan.fixed)
        fixed = (*scalars, *plan.fixed)
        step = Step(start_of(compiled), programs, places, fixed, launcher.params)
        self._steps.append(step)

    def _empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return gpu.empty(shape, dtype)

    def replay(self) -> Replay:
        """What was done, to be done again."""
        made = self.tensors[self._given :]
        # Padding counts: what a tensor shows may be less than what it is.
        sizes = [tensor.untyped_storage().nbytes() for tensor in made]
        workspaces = tuple(((size,), torch.int8) for size in sizes)
        return Replay(gpu.current_device(), tuple(self._steps), workspaces)
