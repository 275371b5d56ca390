"""A program's launches on a GPU, recorded by the first call of its kind and replayed by the next.

For arrays of the same layouts, aligned alike, and the same Sizes, the host function of a program
does the same: the same kernels in the same order, with the same grids, sizes and strides, and
workspaces of the same shapes.  Only addresses differ, and Params.  So the first call runs the host
function and keeps what it launches; the next ones fill in addresses and Params.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.layout import Layouts
from tensorlang.backends.triton.libraries import torch
from tensorlang.backends.triton.signature import divisor_of
from tensorlang.backends.triton.starting import Start, is_watched
from tensorlang.ir.types import Scalar

Pointers = tuple[int, ...]
# What the allocator aligns memory to, and what a launch wants of an address.
_ALIGNED, _WIDEST = 256, 16
_address_of: Callable[[Any], int] = torch.Tensor.data_ptr


@dataclass(frozen=True, slots=True)
class Step:
    """One launch.

    Args:
        tensors: positions among inputs, outputs and workspaces.
        fixed: the arguments after the tensors, with anything where a Param stands.
        params: the positions in `fixed` of Params, and their names.
        scratch: the position of the workspace for memory that Triton wants for the kernel, if any.
        layouts: of the tensors that go as descriptors.
    """

    start: Start
    programs: int
    tensors: tuple[int, ...]
    fixed: tuple[Any, ...]
    params: tuple[tuple[int, str], ...]
    scratch: int | None
    layouts: Layouts = ()


@dataclass(frozen=True, slots=True)
class Workspaces:
    """Memory of a call: parts of one allocation, and counters of zeros.

    Args:
        size: bytes of the allocation.
        offsets: of each workspace in it, in their order; None for counters.
        counters: how many each of those has.
    """

    size: int
    offsets: tuple[int | None, ...]
    counters: tuple[int, ...]

    @staticmethod
    def of(sizes: Iterable[tuple[int, bool]]) -> "Workspaces":
        """Of the bytes of each, or how many counters, and whether it is counters."""
        size, offsets, counters = 0, list[int | None](), list[int]()
        for count, is_counters in sizes:
            if is_counters:
                counters.append(count)
                offsets.append(None)
            else:
                offsets.append(size)
                size += count + -count % _ALIGNED
        return Workspaces(size, tuple(offsets), tuple(counters))

    def pointers(self, held: list[Any]) -> Pointers:
        """Their addresses; `held` keeps them alive until they are used."""
        base = 0
        if self.size:
            held.append(gpu.empty((self.size,), torch.int8))
            base = _address_of(held[0])
        if not self.counters:
            return tuple([base + (offset or 0) for offset in self.offsets])
        made = [gpu.counters(count) for count in self.counters]
        held += made
        counters = iter(map(_address_of, made))
        return tuple([next(counters) if o is None else base + o for o in self.offsets])


@dataclass(frozen=True, slots=True)
class Replay:
    """What one call did."""

    device: int
    steps: tuple[Step, ...]
    workspaces: Workspaces

    def __call__(self, pointers: Pointers, params: Mapping[str, Scalar]) -> None:
        """Do it again for other addresses; the device is the current one."""
        held: list[Any] = []
        if self.workspaces.offsets:
            pointers += self.workspaces.pointers(held)
        stream = gpu.current_stream(self.device)
        for step in self.steps:
            arguments = (*map(pointers.__getitem__, step.tensors), *step.fixed)
            if step.layouts:
                arguments = _with_descriptors(arguments, step.layouts)
            if step.params:
                arguments = _with_params(arguments, len(step.tensors), step.params, params)
            start = step.start
            scratch = None if step.scratch is None else pointers[step.scratch]
            words = (step.programs, 1, 1, stream, *start.before, scratch, *start.after)
            if start.is_flat:
                start.call(*words, *arguments)
            else:
                start.call(*words, arguments)


def _with_descriptors(arguments: tuple[Any, ...], layouts: Layouts) -> tuple[Any, ...]:
    filled = list(arguments)
    for place, layout in layouts:
        filled[place] = layout.at(filled[place])
    return tuple(filled)


def _with_params(
    arguments: tuple[Any, ...],
    first: int,
    places: Sequence[tuple[int, str]],
    params: Mapping[str, Scalar],
) -> tuple[Any, ...]:
    filled = list(arguments)
    for place, name in places:
        filled[first + place] = params[name]
    return tuple(filled)


class Replayer:
    """Runs a program for arrays of certain layouts on one GPU.

    Args:
        record: runs the host function for tensors and Params, and returns what it did.
        deciding: the Params that decide what is launched, not only what it computes.
    """

    def __init__(
        self,
        device: int,
        deciding: Sequence[str],
        record: Callable[[Sequence[Any], Mapping[str, Scalar]], Replay],
    ) -> None:
        self._device, self._deciding, self._record = device, tuple(deciding), record
        self._aligned: Replay | None = None
        self._others: dict[tuple[Any, ...], Replay] = {}

    def __call__(
        self, params: Mapping[str, Scalar], inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> None:
        """Compute the outputs, on the current stream of their device."""
        pointers = tuple(map(_address_of, (*inputs, *outputs)))
        if not self.again(pointers, params):
            self._call(pointers, params, (*inputs, *outputs))

    def again(self, pointers: Pointers, params: Mapping[str, Scalar]) -> bool:
        """Compute the outputs from the addresses of the tensors alone, if that can be done.

        Not where the call is the first, one is not aligned, another device is the current one, or
        launches are watched.
        """
        bits = 0
        for pointer in pointers:
            bits |= pointer
        replay = self._aligned
        if replay is None or bits % _WIDEST or gpu.current_device() != self._device or is_watched():
            return False
        replay(pointers, params)
        return True

    def _call(
        self, pointers: Pointers, params: Mapping[str, Scalar], tensors: Sequence[Any]
    ) -> None:
        """The call that is not aligned, not recorded yet, watched, or on another device."""
        key = (*map(divisor_of, pointers), *[params[name] for name in self._deciding])
        with gpu.on(self._device):
            replay = self._others.get(key)
            if replay is not None and not is_watched():
                replay(pointers, params)
                return
            made = self._record(tensors, params)
        if len(self._others) >= _REMEMBERED:
            self._others.clear()
        self._others[key] = made
        if not self._deciding and all(pointer % _WIDEST == 0 for pointer in pointers):
            self._aligned = made


# Records kept for one layout: the values of a Param that decides must not fill memory.
_REMEMBERED = 64
