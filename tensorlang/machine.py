"""What this machine has: its processor, its GPU, a C compiler, optional packages.

Nothing heavy is imported to find out: a GPU is asked through its driver's management library, which
unlike CUDA itself leaves no state behind that a later `fork` would break.
"""

import ctypes
import functools
import importlib.util
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Processor:
    """The CPU: bits of a vector register, usable cores, bytes of the L1 data, L2 and L3 caches."""

    vector_bits: int
    cores: int
    caches: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Gpu:
    """A CUDA device: its compute capability as an architecture, and what limits it."""

    name: str
    arch: str
    sms: int
    bandwidth: float


@functools.cache
def processor() -> Processor:
    """The CPU on which this process runs."""
    return Processor(
        _vector_bits(),
        available_cores(),
        (_cache(1, 32 << 10), _cache(2, 512 << 10), _cache(3, 8 << 20)),
    )


_UNIT = {"K": 1 << 10, "M": 1 << 20}


def _cache(level: int, usual: int) -> int:
    """Bytes of the data or unified cache of a level; `usual` where the system does not say."""
    for cache in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        kind, size = (cache / "type").read_text().strip(), (cache / "size").read_text().strip()
        if kind != "Instruction" and (cache / "level").read_text().strip() == str(level):
            return int(size[:-1]) * _UNIT[size[-1]] if size[-1] in _UNIT else int(size)
    return usual


def available_cores() -> int:
    """CPU cores that this process may use."""
    # A container's share is the affinity of the process, not the number of cores of its host.
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _vector_bits() -> int:
    info = Path("/proc/cpuinfo")
    flags = info.read_text().split() if info.exists() else []
    return 512 if "avx512f" in flags else 256 if "avx2" in flags else 128


def c_compiler() -> str | None:
    """The C compiler that would be used: $CC, cc, gcc, clang, or else what ziglang brings."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        found = shutil.which(name) if name else None
        if found:
            return found
    return "ziglang" if has_package("ziglang") else None


def has_package(name: str) -> bool:
    """Whether `import name` would find something."""
    return importlib.util.find_spec(name) is not None


@functools.cache
def gpu() -> Gpu | None:
    """The first CUDA device that this process may use; None when there is none."""
    index = _first_visible()
    if index is None:
        return None
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    if nvml.nvmlInit_v2() != 0:
        return None
    try:
        return _ask(nvml, index)
    finally:
        nvml.nvmlShutdown()


def _first_visible() -> int | None:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return 0
    first = visible.split(",")[0].strip()
    # Devices may also be named by UUID; the first one then stands for all.
    return (int(first) if first.isdigit() else 0) if first not in ("", "-1") else None


# Arithmetic units for f32 in one multiprocessor, by major.minor: the driver tells their total.
_UNITS = {(7, 5): 64, (8, 0): 64}


def _ask(nvml: ctypes.CDLL, index: int) -> Gpu | None:
    device = ctypes.c_void_p()
    if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != 0:
        return None
    name = ctypes.create_string_buffer(96)
    nvml.nvmlDeviceGetName(device, name, len(name))
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvml.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
    units = _number(nvml.nvmlDeviceGetNumGpuCores, device)
    bus_bits = _number(nvml.nvmlDeviceGetMemoryBusWidth, device)
    memory_clock = 2  # NVML_CLOCK_MEM, in MHz; two transfers a cycle
    mega_hertz = _number(nvml.nvmlDeviceGetMaxClockInfo, device, memory_clock)
    capability = (major.value, minor.value)
    return Gpu(
        name=name.value.decode(),
        arch=f"sm_{major.value}{minor.value}",
        sms=units // _UNITS.get(capability, 128),
        bandwidth=bus_bits / 8 * 2 * mega_hertz / 1000,
    )


def _number(function: Callable[..., int], device: ctypes.c_void_p, *arguments: int) -> int:
    # What a device does not tell stays 0, and the architecture's usual value stands for it.
    value = ctypes.c_uint()
    function(device, *arguments, ctypes.byref(value))
    return value.value
