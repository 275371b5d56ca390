"""The Triton backend: loop IR -> tile IR -> readable Triton, run on a GPU or interpreted.

tell_copies_apart     what unrolling copied, under names of its own
partition             a program as host steps and launches
merge_arrivals        two launches in one, where the last program of a tile merges its parts
launch_together       launches that need nothing of one another in one
build                 loop IR of a launch -> tile IR       (storage, masks, match_reductions)
give_addresses        one name a value; pointer + sum(offset*stride)
share                 names for shared and loop-invariant values
promote_accumulators  in memory -> in registers while a loop runs
place_barriers        between accesses that conflict
emit, HostText        tile IR and host steps -> text
TritonExecutable      the text as functions; variants for the sizes of a call; launch, interpret
Replayer              what a call launched, launched again with other addresses
"""

from collections.abc import Iterator, Sequence

from tensorlang.backends.hints import ignored_hints
from tensorlang.backends.triton.arrival import merge_arrivals
from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.copies import tell_copies_apart
from tensorlang.backends.triton.executable import TritonExecutable
from tensorlang.backends.triton.host import HostText
from tensorlang.backends.triton.module import HEADER
from tensorlang.backends.triton.partition import GRID, HostIf, HostLoop, HostStep, partition
from tensorlang.backends.triton.together import launch_together
from tensorlang.backends.triton.variants import usual_text
from tensorlang.ir.stmt import Allocate, For, Program, walk
from tensorlang.target import Target


def compile_program(program: Program, target: Target) -> TritonExecutable:
    """Generate the kernels and host function of a program.

    Raises: TargetError: tile-too-large.
    """
    ignored = _ignored_hints(program)
    steps, kept_apart = merge_arrivals(partition(tell_copies_apart(program)))
    steps = launch_together(steps)
    kernels = [(launch, usual_text(launch, target)) for launch in launches(steps)]
    texts = [text for _, text in kernels]
    host = HostText(program, texts)
    source = "\n\n".join([HEADER, *(text.text for text in texts), host.write(steps)])
    made = (note for text in texts for note in text.kernel.notes)
    notes = dict.fromkeys((*ignored, *kept_apart, *made))
    return TritonExecutable(program, source, kernels, tuple(notes), target, host.deciding)


def _ignored_hints(program: Program) -> tuple[str, ...]:
    """Notes on what no kernel uses: descriptors and padding are for global memory alone."""
    grids = [s for s in walk(program.body) if isinstance(s, For) and s.kind in GRID]
    inside = {s.buffer.name for grid in grids for s in walk(grid) if isinstance(s, Allocate)}
    of_global_memory = ("load_with", "store_with", "align")

    def uses(name: str, hint: str) -> bool:
        if hint.startswith(of_global_memory):
            return name not in inside
        if hint == "cache":
            return name not in inside
        return hint in ("warps", "stages", "registers", "dependent", "merge")

    return ignored_hints(program, "triton", uses)


def launches(steps: Sequence[HostStep]) -> Iterator[Launch]:
    """Every launch of the host's steps, in order."""
    for step in steps:
        if isinstance(step, HostIf | HostLoop):
            yield from launches(step.body)
        elif isinstance(step, Launch):
            yield step
