"""Everything compiled ahead, in processes of their own, each contender within a time limit.

What is compiled lands in the caches that Triton and torch keep on disk, so that the process that
measures finds it.  A kernel that never ends compiling, or that breaks the device, costs one process
and its place in the table, nothing else.
"""

import multiprocessing
import os
import queue
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.case import Place
from benchmarks.cases import cases_of


@dataclass(frozen=True)
class Task:
    """One contender of one case, by name: what a process can be told."""

    family: str
    case: str
    impl: str
    alone: bool


def warm(
    tasks: Iterable[Task], place: Place, *, workers: int, limit: float, deadline: float
) -> dict[Task, str]:
    """Run every task once; the failures with their reasons.

    First those that only compile, on `workers` processes; then, one by one, those that measure
    while they compile.

    Args:
        tasks: what to run.
        place: where.
        workers: processes at a time.
        limit: seconds for one task.
        deadline: of `time.monotonic()`, after which what is left is skipped.
    """
    together, alone = [], []
    for task in tasks:
        (alone if task.alone else together).append(task)
    failures: dict[Task, str] = {}
    for group, count in ((together, workers), (alone, 1)):
        # Torch's own pool of compilers would multiply with ours.
        threads = 1 if count > 1 else 0
        waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in group:
            waiting.put(task)
        pool = [
            threading.Thread(
                target=_serve, args=(waiting, place, threads, limit, deadline, failures)
            )
            for _ in range(min(count, len(group)))
        ]
        for thread in pool:
            thread.start()
        for thread in pool:
            thread.join()
    return failures


def _serve(
    waiting: "queue.SimpleQueue[Task]",
    place: Place,
    threads: int,
    limit: float,
    deadline: float,
    failures: dict[Task, str],
) -> None:
    """Give tasks to one process at a time; a process that fails is replaced."""
    worker: _Worker | None = None
    while True:
        try:
            task = waiting.get_nowait()
        except queue.Empty:
            break
        seconds = min(limit, deadline - time.monotonic())
        if seconds <= 0:
            failures[task] = "no time was left to compile it"
            continue
        worker = worker or _Worker(place, threads)
        why = worker.run(task, seconds)
        if why:
            failures[task] = why
            worker.stop()
            worker = None
    if worker:
        worker.stop()


class _Worker:
    """A process that prepares contenders and calls each once."""

    def __init__(self, place: Place, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_work, args=(theirs, place, threads), daemon=False)
        self._process.start()
        theirs.close()

    def run(self, task: Task, seconds: float) -> str:
        """Why it failed; nothing if it did not."""
        self._pipe.send(task)
        if not self._pipe.poll(seconds):
            return f"not compiled in {seconds:.0f} s"
        try:
            return str(self._pipe.recv())
        except EOFError:
            self._process.join()
            return f"its process ended with {self._process.exitcode}"

    def stop(self) -> None:
        self._pipe.close()
        # A process that waits for work ends by itself; one that hangs is ended.
        self._process.join(0.5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _work(pipe: Connection, place: Place, threads: int) -> None:
    if threads:
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)
    while True:
        try:
            task: Task = pipe.recv()
        except EOFError:
            return
        pipe.send(_prepare(task, place))


def _prepare(task: Task, place: Place) -> str:
    import torch

    try:
        case = next(c for c in cases_of(task.family, place) if c.name == task.case)
        contender = next(c for c in case.contenders if c.impl == task.impl)
        call: Any = contender.prepare(case.inputs(place))
        call()
        if place.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
    except Exception as error:  # noqa: BLE001 (whatever a peer raises is its result)
        return f"{type(error).__name__}: {error}"[:600]
    return ""
