"""A run on the GPU: prepare on all cores, measure what the card reaches, then every case."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.case import Case, Place
from benchmarks.cases import FAMILIES, cases_of
from benchmarks.results import Results
from benchmarks.run import run
from benchmarks.timing import Clock, FakeClock, GpuClock, ceilings
from benchmarks.warm import Task, warm


def run_gpu(
    out: Path,
    *,
    families: Sequence[str] = (),
    impls: Sequence[str] = ("*",),
    only: Sequence[str] = ("*",),
    quick: bool = False,
    dry: bool = False,
    tune: bool = False,
    seconds: float = 570,
) -> Results:
    """Measure the GPU's cases and write them to `out`.

    Args:
        out: the JSON file.
        families: of `cases.FAMILIES`; none is all.
        impls, only: patterns of the implementations and of the cases' names.
        quick: fewer cases, within two minutes.
        dry: tiny sizes in Triton's interpreter, with times that are made up.
        tune: also further schedules of ours.
        seconds: for everything; what does not fit is reported as a failure.
    """
    started = time.monotonic()
    place = Place("cpu", dry=True, tune=tune) if dry else Place(tune=tune)
    selected = [
        (family, _contending(case, impls))
        for family in families or FAMILIES
        for case in cases_of(family, place, quick=quick)
        if any(fnmatchcase(case.name, pattern) for pattern in only)
    ]
    results = Results.begin("gpu", dry=dry)
    skipped: dict[tuple[str, str], str] = {}
    clock: Clock = FakeClock()
    if not dry:
        skipped = _warmed(selected, place, started + 0.6 * seconds, quick=quick)
        clock = GpuClock(0.08 if quick else 0.2)
        results.ceilings = ceilings(clock)
    cases = [case for _, case in selected]
    run(
        cases, place, clock, results, out,
        skipped=skipped, deadline=started + seconds - 10, between=_forget,
    )  # fmt: skip
    return results


def _contending(case: Case, impls: Sequence[str]) -> Case:
    kept = tuple(c for c in case.contenders if any(fnmatchcase(c.impl, i) for i in impls))
    return replace(case, contenders=kept)


def _warmed(
    selected: Sequence[tuple[str, Case]], place: Place, deadline: float, *, quick: bool
) -> dict[tuple[str, str], str]:
    started = time.monotonic()
    tasks = [
        Task(family, case.name, c.impl, c.alone) for family, case in selected
        for c in case.contenders
        if not (quick and c.alone)
    ]  # fmt: skip
    workers = max(len(os.sched_getaffinity(0)), 1)
    failures = warm(tasks, place, workers=workers, limit=60, deadline=deadline)
    seconds = time.monotonic() - started
    print(
        f"{len(tasks)} contenders prepared in {seconds:.0f} s, {len(failures)} failed", flush=True
    )
    skipped = {(task.case, task.impl): why for task, why in failures.items()}
    if quick:
        left_out = [(case.name, c.impl) for _, case in selected for c in case.contenders if c.alone]
        skipped |= dict.fromkeys(left_out, "left out by --quick")
    return skipped


def _forget() -> None:
    """Free a case's memory and compiled functions: torch.compile keeps few of one function."""
    import torch

    if torch.cuda.is_available():
        torch._dynamo.reset()
        torch.cuda.empty_cache()
