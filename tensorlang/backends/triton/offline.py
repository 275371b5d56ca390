"""Compiling kernels for an architecture with no GPU present."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.executable import TritonExecutable
from tensorlang.backends.triton.libraries import triton
from tensorlang.backends.triton.signature import usual
from tensorlang.errors import InternalError

# A symbolic tile axis is compiled at this extent when no call says another.
_USUAL_EXTENT = 1024


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel, compiled; `registers` and bytes `spilled` are those of one thread.

    On AMD `ptx` is its assembly, and `cubin` its code object.
    """

    ptx: str
    cubin: bytes
    shared: int
    registers: int
    spilled: int


def compile_offline(executable: TritonExecutable, arch: str) -> Mapping[str, Compiled]:
    """Every kernel for `arch`, by name, with aligned pointers and sizes divisible by 16."""
    target = gpu.target_of(arch)
    made: dict[str, Compiled] = {}
    for name, router in executable.routers.items():
        launcher = router.usual
        kernel = launcher.compile(usual(launcher.text, _USUAL_EXTENT), target)
        made[name] = _of_amd(kernel) if target.backend == "hip" else _of_nvidia(kernel, name)
    return made


def _of_nvidia(kernel: Any, name: str) -> Compiled:
    cubin = kernel.asm["cubin"]
    return Compiled(kernel.asm["ptx"], cubin, kernel.metadata.shared, *_resources(cubin, name))


def _of_amd(kernel: Any) -> Compiled:
    assembly = kernel.asm["amdgcn"]
    words = dict(
        re.findall(r"^ +\.(vgpr_count|private_segment_fixed_size): +(\d+)$", assembly, re.MULTILINE)
    )
    registers, spilled = (int(words[w]) for w in ("vgpr_count", "private_segment_fixed_size"))
    return Compiled(assembly, kernel.asm["hsaco"], kernel.metadata.shared, registers, spilled)


def _resources(cubin: bytes, name: str) -> tuple[int, int]:
    """Registers, and bytes of the stack and of local memory, that a thread of the kernel takes."""
    tool = triton.knobs.nvidia.cuobjdump.path
    with TemporaryDirectory() as directory:
        path = Path(directory, "kernel.cubin")
        path.write_bytes(cubin)
        shown = subprocess.run(
            [tool, "--dump-resource-usage", path], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(rf"Function {name}:\s+REG:(\d+) STACK:(\d+) \S+ LOCAL:(\d+)", shown)
    if found is None:
        raise InternalError(f"cuobjdump says nothing of {name}:\n{shown}")
    registers, stack, local = map(int, found.groups())
    return registers, stack + local
