"""Several kernels compiled side by side, on threads: most of Triton's compiler is not Python."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tensorlang.backends.executable import Progress
from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.launch import Job
from tensorlang.machine import available_cores


def compile_all(
    jobs: Collection[Job], workers: int | None = None, progress: Progress | None = None
) -> int:
    """Compile for the current device, and load, what it has not yet; how many that were."""
    cold = [job for job in jobs if not job.launcher.has(job.key)]
    if len(cold) == 1 or (cold and gpu.is_capturing()):
        cold[0].launcher.compiled(cold[0].key)
    elif cold:
        # Threads have a current device of their own, so this one says what it is.
        for job, compiled in _side_by_side(cold, gpu.current_target(), workers, progress):
            job.launcher.keep(job.key, compiled)
    return len(cold)


def compile_for(
    arch: str, jobs: Collection[Job], workers: int | None, progress: Progress | None
) -> int:
    """Compile for an architecture, into the cache that Triton keeps on disk; how many."""
    return len(_side_by_side(jobs, gpu.target_of(arch), workers, progress))


def _side_by_side(
    jobs: Collection[Job], target: Any, workers: int | None, progress: Progress | None
) -> list[tuple[Job, Any]]:
    """Every job and its compiled kernel."""
    count = min(workers or available_cores(), max(len(jobs), 1))
    with ThreadPoolExecutor(count) as pool:
        waiting = {pool.submit(job.launcher.compile, job.key, target): job for job in jobs}
        for done, future in enumerate(as_completed(waiting), 1):
            future.result()
            if progress is not None:
                progress(done, len(waiting))
    return [(job, future.result()) for future, job in waiting.items()]
