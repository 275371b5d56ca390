"""Compiling kernels for an architecture with no GPU present."""

from collections.abc import Mapping
from dataclasses import dataclass

from tensorlang.backends.triton.executable import TritonExecutable
from tensorlang.backends.triton.libraries import targets
from tensorlang.backends.triton.signature import usual
from tensorlang.errors import TargetError

_WARP = 32
# A symbolic tile axis is compiled at this extent when no call says another.
_USUAL_EXTENT = 1024


@dataclass(frozen=True, slots=True)
class Compiled:
    """One kernel, compiled: text of PTX, the cubin, bytes of shared memory."""

    ptx: str
    cubin: bytes
    shared: int


def compile_offline(executable: TritonExecutable, arch: str) -> Mapping[str, Compiled]:
    """Every kernel for `arch`, by name, with aligned pointers and sizes divisible by 16."""
    if not arch.startswith("sm_"):
        raise TargetError(
            "unknown-arch",
            f"cannot compile for {arch!r} with no GPU",
            why="only NVIDIA architectures are known here",
            fix='name one as in Target("triton", arch="sm_90")',
        )
    target = targets.GPUTarget("cuda", int(arch.removeprefix("sm_")), _WARP)
    made: dict[str, Compiled] = {}
    for name, launcher in executable.launchers.items():
        kernel = launcher.compile(usual(launcher.text, _USUAL_EXTENT), target)
        made[name] = Compiled(kernel.asm["ptx"], kernel.asm["cubin"], kernel.metadata.shared)
    return made
