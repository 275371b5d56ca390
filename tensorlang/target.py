"""Where a program runs: the four targets, and the facts about a machine that a schedule may use."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Literal

from tensorlang import machine
from tensorlang.errors import TargetError

TARGETS = ("reference", "interpreter", "c", "triton")


@dataclass(frozen=True, slots=True)
class GpuFacts:
    """A GPU architecture: multiprocessors and GB/s of its usual machine, bytes of shared memory.

    Args: descriptors: whether a unit of its own moves tiles between arrays and shared memory (TMA).
    """

    sms: int
    shared_memory: int
    bandwidth: float
    descriptors: bool = False


ARCHITECTURES: dict[str, GpuFacts] = {
    "sm_75": GpuFacts(40, 64 << 10, 320),  # T4
    "sm_80": GpuFacts(108, 163 << 10, 2039),  # A100
    "sm_86": GpuFacts(82, 99 << 10, 936),  # RTX 3090
    "sm_89": GpuFacts(142, 99 << 10, 864),  # L40S
    "sm_90": GpuFacts(132, 227 << 10, 3350, descriptors=True),  # H100
    "sm_100": GpuFacts(148, 227 << 10, 8000, descriptors=True),  # B200
    "sm_120": GpuFacts(170, 99 << 10, 1792, descriptors=True),  # RTX 5090
    "gfx942": GpuFacts(304, 64 << 10, 5300),  # MI300X
}
_USUAL = "sm_90"


@dataclass(frozen=True, slots=True)
class Target:
    """Target(name) runs here; Target("triton", arch="sm_90") compiles with no GPU present.

    Facts that are not given (0) are those of this machine, or of the architecture named.  Triton
    without a GPU runs in its interpreter, and has the facts of sm_90 so that schedules stay equal.

    Args:
        name: "reference", "interpreter", "c" or "triton".
        arch: a GPU architecture, for triton only; None is the GPU of this machine.
        vector_bits: of one vector register of the CPU.
        cores: CPU cores that this process may use.
        caches: bytes of the CPU's L1 data, L2 and L3 caches.
        sms: what runs blocks at the same time: multiprocessors of a GPU, cores of a CPU.
        shared_memory: bytes that one block may have.
        registers: 32-bit registers of one multiprocessor.
        bandwidth: of the GPU's memory in GB/s.
        descriptors: whether the GPU moves whole tiles through tensor descriptors (TMA).
        max_tile_elements: elements of one tile (Triton refuses larger ones).
        max_reduction_elements: elements of a tile of three or more axes that is reduced without a
            dot; compile time grows with it (2^19 take Triton a minute and a half).

    Raises: TargetError: unknown-target, unknown-arch.
    """

    name: str
    arch: str | None = None
    vector_bits: int = 0
    cores: int = 0
    caches: tuple[int, ...] = ()
    sms: int = 0
    shared_memory: int = 0
    registers: int = 0
    bandwidth: float = 0
    descriptors: bool = False
    max_tile_elements: int = 0
    max_reduction_elements: int = 0

    def __post_init__(self) -> None:
        _check(self.name, self.arch)
        facts = _gpu_facts(self.arch) if self.name == "triton" else _cpu_facts()
        for name, value in facts.items():
            if not getattr(self, name):
                object.__setattr__(self, name, value)

    @staticmethod
    def of(target: "str | Target") -> "Target":
        """The target of that name, on this machine; a Target is itself."""
        return target if isinstance(target, Target) else Target(target)

    @property
    def carrier(self) -> Literal["numpy", "torch"]:
        """The library whose arrays an executable of this target takes."""
        return "torch" if self.name == "triton" else "numpy"

    def __str__(self) -> str:
        return f"{self.name}({self.arch})" if self.arch else self.name


def _check(name: object, arch: object) -> None:
    if not isinstance(name, str) or name not in TARGETS:
        raise TargetError(
            "unknown-target",
            f"{name!r} is not a target",
            why="a target names the backend that runs a program",
            fix="one of " + ", ".join(f'"{t}"' for t in TARGETS),
        )
    if arch is None:
        return
    if name != "triton":
        raise TargetError(
            "unknown-arch",
            f"the target '{name}' takes no arch",
            why="it compiles for the machine that it runs on",
            fix=f'Target("{name}"), or Target("triton", arch={arch!r})',
        )
    if not isinstance(arch, str) or arch not in ARCHITECTURES:
        raise TargetError(
            "unknown-arch",
            f"{arch!r} is not a GPU architecture that tensorlang knows",
            why="the limits of tiles and of shared memory depend on it",
            fix="one of " + ", ".join(f'"{a}"' for a in ARCHITECTURES),
        )


def _cpu_facts() -> Mapping[str, object]:
    here = machine.processor()
    facts = {f.name: getattr(here, f.name) for f in fields(here)}
    return facts | {"sms": here.cores}


def _gpu_facts(arch: str | None) -> Mapping[str, object]:
    here = machine.gpu() if arch is None else None
    usual = ARCHITECTURES[arch or _nearest(here.arch if here else _USUAL)]
    return {
        "sms": (here and here.sms) or usual.sms,
        "bandwidth": (here and here.bandwidth) or usual.bandwidth,
        "shared_memory": usual.shared_memory,
        "descriptors": usual.descriptors,
        "registers": 1 << 16,
        "max_tile_elements": 1 << 20,
        "max_reduction_elements": 1 << 17,
    }


def _nearest(arch: str) -> str:
    """The newest architecture known that is not newer than `arch`."""
    known = [a for a in ARCHITECTURES if a.startswith("sm_")]
    older = [a for a in known if _number(a) <= _number(arch)]
    return older[-1] if older else known[0]


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a target works on this machine, and with what, or why not and what to do."""

    works: bool
    why: str


def available() -> dict[str, Availability]:
    """Every target, and whether it works here; nothing is imported or compiled to find out."""
    return {
        "reference": Availability(True, "whole arrays in NumPy"),
        "interpreter": Availability(True, "loop IR, one statement at a time"),
        "c": _c_available(),
        "triton": _triton_available(),
    }


def _c_available() -> Availability:
    compiler = machine.c_compiler()
    if compiler is None:
        return Availability(
            False, "no C compiler on PATH or in $CC; pip install 'tensorlang[c]' brings one"
        )
    return Availability(True, f"compiled by {compiler}")


def _triton_available() -> Availability:
    missing = [name for name in ("torch", "triton") if not machine.has_package(name)]
    if missing:
        why = f"{' and '.join(missing)} not installed; pip install 'tensorlang[triton]'"
        return Availability(False, why)
    here = machine.gpu()
    if here is None:
        return Availability(True, "in Triton's interpreter on CPU tensors: no CUDA device here")
    return Availability(True, f"on {here.name} ({here.arch})")
