"""The GPU as launches see it: which device and stream are current, and what is being captured."""

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tensorlang.backends.triton.libraries import allocation, targets, torch, triton

# The index of the current device, and the handle of a device's current stream: torch's own
# functions in C, since every launch asks.  A torch without CUDA lacks them, and needs none.
current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
current_stream: Callable[[int], int] = getattr(
    torch._C, "_cuda_getCurrentRawStream", torch.cuda.current_stream
)


def index_of(device: Any) -> int | None:
    """The index of a GPU, by which kernels run compiled; None elsewhere: they are interpreted."""
    return device.index if device.type == "cuda" else None


def is_present() -> bool:
    """Whether there is a GPU."""
    return torch.cuda.is_available()


def current_target() -> Any:
    """What Triton compiles for on the current device."""
    return triton.runtime.driver.active.get_current_target()


def target_of(arch: str) -> Any:
    """What Triton compiles for by the name of an architecture."""
    if arch.startswith("gfx"):
        return targets.GPUTarget("hip", arch, _LANES_OF_AMD)
    return targets.GPUTarget("cuda", int(arch.removeprefix("sm_")), _LANES)


def launches_early(arch: str | None) -> bool:
    """Whether a kernel may be launched before the one before it ends; None: the current device."""
    if arch is None and not is_present():
        return True
    target = current_target() if arch is None else target_of(arch)
    return target.backend == "cuda" and target.arch >= _HOPPER


_HOPPER = 90
_CUDA = torch.device("cuda")
# Of one warp.
_LANES = 32
_LANES_OF_AMD = 64


def on(device: int) -> AbstractContextManager[None]:
    """Makes a device the current one."""
    return torch.cuda.device(device)


def is_capturing() -> bool:
    """Whether what is launched on the current stream goes to a CUDA graph."""
    return torch.cuda.is_current_stream_capturing()


@contextmanager
def scratch() -> Generator[None]:
    """Memory that Triton wants for a kernel, for its descriptors, comes from torch's allocator."""
    allocator = allocation._allocator  # pyright: ignore[reportPrivateUsage]
    before = allocator.set(_scratch)
    try:
        yield
    finally:
        allocator.reset(before)


def _scratch(size: int, alignment: int, stream: int | None) -> Any:
    return empty((size,), torch.int8)


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory of the current device from torch's allocator, aligned; its elements are undefined."""
    return torch.empty(shape, dtype=dtype, device=_CUDA)


def counters(count: int) -> Any:
    """Zeros for kernels that leave zeros: those of the current stream; in a capture, its own."""
    device = current_device()
    if is_capturing():
        return _counters_of_graph(device, count)
    key = (device, current_stream(device))
    held = _counters.get(key)
    if held is None or held.numel() < count:
        held = _counters[key] = _zeros(max(count, _COUNTERS))
        if device not in _for_graphs:
            _for_graphs[device] = _zeros(_COUNTERS_OF_GRAPHS)
    return held[:count]


def _counters_of_graph(device: int, count: int) -> Any:
    """Graphs may run side by side, so that no two launches in graphs share counters."""
    held = _for_graphs.get(device)
    if held is None or held.numel() < count:
        # A part of the graph, which costs a launch.
        return _zeros(count)
    _for_graphs[device] = held[count:]
    return held[:count]


def _zeros(count: int) -> Any:
    return torch.zeros((count,), dtype=torch.int32, device="cuda")


_COUNTERS, _COUNTERS_OF_GRAPHS = 1 << 12, 1 << 20
_counters: dict[tuple[int, int], Any] = {}
_for_graphs: dict[int, Any] = {}
