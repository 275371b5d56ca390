"""The CPU's cases: each algorithm and its schedule once for us and once for Halide.

Peers that are not installed are reported as failures; Halide is `pip install halide==21.0.0`.
"""

import multiprocessing
import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.case import Call, Case, Mode, Place
from benchmarks.cpu import (
    attention,
    bilateral,
    blur,
    conv,
    harris,
    laplacian,
    matmul,
    networks,
    unsharp,
)
from benchmarks.results import Results
from benchmarks.run import measure
from benchmarks.timing import Clock, FakeClock, Sample, wall_times

FAMILIES: dict[str, Callable[[Place], list[Case]]] = {
    "blur": blur.cases,
    "matmul": matmul.cases,
    "harris": harris.cases,
    "unsharp": unsharp.cases,
    "conv": conv.cases,
    "bilateral": bilateral.cases,
    "laplacian": laplacian.cases,
    "networks": networks.cases,
    "attention": attention.cases,
}
_VARIABLES = ("OMP_NUM_THREADS", "HL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Threads of one contender that still spin when the next one runs would take its cores: all sleep.
_ASLEEP = {"OMP_WAIT_POLICY": "passive", "OPENBLAS_THREAD_TIMEOUT": "4"}


class CpuClock:
    """Single calls, interleaved.

    Args:
        seconds: for each contender.
        rounds: how often each is called at the least.
    """

    def __init__(self, seconds: float, rounds: int) -> None:
        self.seconds = seconds
        self.rounds = rounds

    def measure(self, mode: Mode, calls: Mapping[str, Call]) -> dict[str, Sample]:
        """The times of `mode` "wall", the only one here."""
        for call in calls.values():
            call()
        times = wall_times(calls, self.seconds, random.Random(0), self.rounds)
        return {name: Sample.of(values) for name, values in times.items()}


def run_cpu(
    out: Path,
    *,
    threads: Sequence[int] = (1, 2),
    families: Sequence[str] = (),
    impls: Sequence[str] = ("*",),
    only: Sequence[str] = ("*",),
    quick: bool = False,
    dry: bool = False,
) -> Results:
    """Measure the CPU's cases with each number of threads, and write them to `out`.

    Every number has a process of its own: libraries read it once, when they are loaded.
    """
    results = Results.begin("cpu", dry=dry)
    selection = (tuple(families or FAMILIES), tuple(impls), tuple(only))
    for count in threads:
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_measure, args=(sender, count, selection, quick, dry))
        with _environment({**dict.fromkeys(_VARIABLES, str(count)), **_ASLEEP}):
            child.start()
        sender.close()
        _receive(receiver, results, out)
        child.join()
        if child.exitcode:
            why = f"the process ended with {child.exitcode}"
            results.fail(f"after the last case, {count} threads", "all", why)
    return results


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """The variables are set for processes that start meanwhile."""
    before = dict(os.environ)
    os.environ |= variables
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def _receive(receiver: Connection, results: Results, out: Path) -> None:
    """Add what the process sends after each case, until it ends."""
    while True:
        try:
            part: Results = receiver.recv()
        except EOFError:
            return
        results.rows += part.rows
        results.failures += part.failures
        results.cases |= part.cases
        results.write(out)
        shown = ", ".join(f"{r.impl} {r.median_us:.0f}" for r in part.rows)
        failed = ", ".join(f["impl"] for f in part.failures)
        title = next(iter(part.cases), "nothing")
        print(f"{title}: {shown}; failed: {failed or 'none'}", flush=True)


def _measure(
    sender: Connection,
    count: int,
    selection: tuple[Sequence[str], Sequence[str], Sequence[str]],
    quick: bool,
    dry: bool,
) -> None:
    families, impls, only = selection
    place = Place("cpu", dry=dry)
    clock: Clock = FakeClock() if dry else CpuClock(*((0.1, 3) if quick else (0.5, 5)))
    label = f", {count} thread{'s' if count > 1 else ''}"
    for case in (c for family in families for c in FAMILIES[family](place)):
        if not any(fnmatchcase(case.name, pattern) for pattern in only):
            continue
        if quick and not case.quick:
            continue
        kept = tuple(
            c
            for c in case.contenders
            if any(fnmatchcase(c.impl, i) for i in impls) and not (c.alone and (quick or dry))
        )
        part = Results.begin("cpu", dry=dry)
        measure(replace(case, contenders=kept), place, clock, part, label=lambda mode: label)
        for failure in part.failures:
            failure["case"] += label
        sender.send(part)


def threads_of(text: str) -> tuple[Any, ...]:
    """ "1,2" as numbers."""
    return tuple(int(part) for part in text.split(","))
