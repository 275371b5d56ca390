"""A program compiled for Triton: its text, and the host function that launches its kernels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tensorlang.backends.executable import Call, Run
from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.compiling import Progress, compile_all, compile_for
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.hosts import Host, Interpreting, Launching, Planning
from tensorlang.backends.triton.launch import Job
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.module import Module
from tensorlang.backends.triton.replay import Replay, Replayer
from tensorlang.backends.triton.route import Router
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import Scalar
from tensorlang.target import Target


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
        self._deciding, self._arch = deciding, target.arch

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
            self._call_host(Interpreting(self.routers, tensors), sizes, params)
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
        if len(self.routers) > 1:
            ahead = Planning(self.routers, tensors)
            self._call_host(ahead, sizes, params)
            compile_all(ahead.jobs)
        host = Launching(self.routers, tensors)
        self._call_host(host, sizes, params)
        return host.replay()

    def compile_ahead(
        self, calls: Sequence[Call], workers: int | None, progress: Progress | None
    ) -> int:
        """Compile what these calls need and nobody has yet, side by side; how many kernels.

        With no GPU it is compiled for the architecture of the target, if one is named, and waits
        in the cache that Triton keeps on disk.
        """
        jobs: dict[Job, None] = {}
        for call in calls:
            tensors = [torch.empty(shape, dtype=torch.int8, device="meta") for shape in call.shapes]
            host = Planning(self.routers, tensors)
            self._call_host(host, call.sizes, call.params)
            jobs |= host.jobs
        if gpu.is_present():
            return compile_all(jobs, workers, progress)
        return compile_for(self._arch, jobs, workers, progress) if self._arch else 0

    def _call_host(
        self, host: Host, sizes: Mapping[str, int], params: Mapping[str, Scalar]
    ) -> None:
        scalars = [sizes[name] for name in self._sizes], [params[name] for name in self._params]
        self._host(host, *range(len(host.tensors)), *scalars[0], *scalars[1])
