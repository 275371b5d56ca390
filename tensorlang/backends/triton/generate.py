"""One launch as the text of its kernel: the passes of tile IR, in order."""

from dataclasses import replace

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.addresses import give_addresses
from tensorlang.backends.triton.barriers import place_barriers
from tensorlang.backends.triton.build import Launch, build
from tensorlang.backends.triton.descriptors import use_descriptors
from tensorlang.backends.triton.emit import KernelText, emit
from tensorlang.backends.triton.limits import limits_of
from tensorlang.backends.triton.promote import promote_accumulators
from tensorlang.backends.triton.share import share
from tensorlang.backends.triton.tiles import Kernel
from tensorlang.backends.triton.unused import drop_unused
from tensorlang.target import Target

PASSES = (use_descriptors, give_addresses, share, promote_accumulators, place_barriers, drop_unused)


def generate(launch: Launch, target: Target) -> KernelText:
    """The text of a launch.  Raises: TargetError: tile-too-large."""
    return text_of(build(launch), launch, target)


def text_of(kernel: Kernel, launch: Launch, target: Target) -> KernelText:
    """The text of what `build` made of a launch.  Raises: TargetError: tile-too-large."""
    kernel = optimised(kernel)
    if kernel.dependent and not gpu.launches_early(target.arch):
        note = f"'{kernel.name}' is launched after the kernel before it: it can be earlier on sm_90"
        kernel = replace(kernel, dependent=False, notes=(*kernel.notes, note))
    limits = limits_of(kernel, target)
    limits.check({})
    return emit(kernel, launch.facts, limits, launch.kept)


def optimised(kernel: Kernel) -> Kernel:
    """The kernel after every pass."""
    for step in PASSES:
        kernel = step(kernel)
    return kernel
