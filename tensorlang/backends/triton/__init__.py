"""The Triton backend: loop IR -> tile IR -> readable Triton, run on a GPU or interpreted.

partition             a program as host steps and launches
build                 loop IR of a launch -> tile IR       (storage, masks, match_reductions)
give_addresses        one name a value; pointer + sum(offset*stride)
share                 names for shared and loop-invariant values
promote_accumulators  in memory -> in registers while a loop runs
place_barriers        between accesses that conflict
emit, HostText        tile IR and host steps -> text
TritonExecutable      the text as functions; launch, interpret
"""

from collections.abc import Iterator, Sequence

from tensorlang.backends.triton.addresses import give_addresses
from tensorlang.backends.triton.barriers import place_barriers
from tensorlang.backends.triton.build import Launch, build
from tensorlang.backends.triton.emit import KernelText, emit
from tensorlang.backends.triton.executable import TritonExecutable
from tensorlang.backends.triton.host import HostText
from tensorlang.backends.triton.limits import limits_of
from tensorlang.backends.triton.module import HEADER
from tensorlang.backends.triton.partition import HostIf, HostLoop, HostStep, partition
from tensorlang.backends.triton.promote import promote_accumulators
from tensorlang.backends.triton.share import share
from tensorlang.backends.triton.tiles import Kernel
from tensorlang.ir.stmt import Program
from tensorlang.target import Target


def compile_program(program: Program, target: Target) -> TritonExecutable:
    """Generate the kernels and host function of a program.

    Raises: TargetError: tile-too-large.
    """
    steps = partition(program)
    kernels = [generate(launch, target) for launch in launches(steps)]
    host = HostText(program, kernels).write(steps)
    source = "\n\n".join([HEADER, *(k.text for k in kernels), host])
    notes = dict.fromkeys(note for k in kernels for note in k.kernel.notes)
    return TritonExecutable(program.name.replace(".", "_"), source, kernels, tuple(notes))


def generate(launch: Launch, target: Target) -> KernelText:
    """One launch as the text of its kernel."""
    kernel = optimised(build(launch))
    limits = limits_of(kernel, target)
    limits.check({})
    return emit(kernel, launch.facts, limits)


def optimised(kernel: Kernel) -> Kernel:
    """The kernel after the passes of tile IR, in order."""
    for step in (give_addresses, share, promote_accumulators, place_barriers):
        kernel = step(kernel)
    return kernel


def launches(steps: Sequence[HostStep]) -> Iterator[Launch]:
    """Every launch of the host's steps, in order."""
    for step in steps:
        if isinstance(step, HostIf | HostLoop):
            yield from launches(step.body)
        elif isinstance(step, Launch):
            yield step
