"""From an algorithm to a kernel: the schedule of a region, and the kernels that there are."""

from collections.abc import Mapping
from threading import Lock

from tensorlang.algorithm import Algorithm
from tensorlang.autoschedule import autoschedule
from tensorlang.directives.parallel import Parallel
from tensorlang.kernel import Kernel
from tensorlang.pipeline import Pipeline
from tensorlang.schedule import Schedule

# Threads take longer to begin and end than this many bytes take to be read and written.
_WORTH_THREADS = 1 << 18

_kernels: dict[tuple[Algorithm, str, tuple[tuple[str, int], ...], bool], Kernel] = {}
_lock = Lock()


def kernel_of(algorithm: Algorithm, target: str, sizes: Mapping[str, int], moved: int) -> Kernel:
    """The kernel of an algorithm; those of equal regions, as of the layers of a model, are one.

    Args:
        sizes: the Sizes when it was traced: what the schedule is made for.
        moved: the bytes that it reads and writes.
    """
    alone = moved < _WORTH_THREADS
    near = tuple((name, n.bit_length()) for name, n in sorted(sizes.items()))
    key = algorithm, target, near, alone
    with _lock:
        if key not in _kernels:
            pipeline = Pipeline.of(algorithm)
            schedule = autoschedule(pipeline, target, sizes)
            if target == "c" and alone:
                schedule = on_one_thread(schedule)
            _kernels[key] = pipeline.compile(schedule, target)
        return _kernels[key]


def on_one_thread(schedule: Schedule) -> Schedule:
    """The same schedule without its parallel loops."""
    made = Schedule(schedule.algorithm)
    for a in schedule.applied:
        if not isinstance(a.directive, Parallel):
            made.apply(a.func, a.number, a.directive, a.path)
    return made
