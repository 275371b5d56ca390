"""A whole run: warm, then case by case check and time, and write what is known after each."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.case import Call, Case, Contender, Mode, Place
from benchmarks.checking import error_of, listed
from benchmarks.results import Results, Row
from benchmarks.timing import Clock

Skipped = Mapping[tuple[str, str], str]
"""Of (case, impl): why it is not to be run."""


def measure(
    case: Case,
    place: Place,
    clock: Clock,
    results: Results,
    *,
    skipped: Skipped | None = None,
    label: Callable[[Mode], str] = lambda mode: "" if mode == "device" else f", {mode}",
) -> None:
    """Check and time the contenders of one case, and add their rows to `results`."""
    inputs = case.inputs(place)
    reference = listed(case.reference(*inputs)) if case.reference else []
    errors: dict[str, float | None] = {}
    calls: dict[str, Call] = {}
    for contender in case.contenders:
        why = (skipped or {}).get((case.name, contender.impl))
        if why is None:
            why = _prepared(case, contender, inputs, reference, calls, errors)
        if why:
            results.fail(case.name, contender.impl, why)
    for mode in case.modes if calls else ():
        name = case.name + label(mode)
        results.cases[name] = {"mode": mode, "flops": case.flops, "bytes": case.bytes}
        samples = clock.measure(mode, calls)
        for impl in calls.keys() - samples.keys():
            results.fail(name, impl, f"cannot be measured in mode {mode!r}")
        for impl, sample in samples.items():
            row = Row(name, impl, sample.median, sample.low, sample.high, errors[impl])
            results.rows.append(row)


def _prepared(
    case: Case,
    contender: Contender,
    inputs: Any,
    reference: list[Any],
    calls: dict[str, Call],
    errors: dict[str, float | None],
) -> str:
    """Add the contender's call and error, or say why not."""
    try:
        call = contender.prepare(inputs)
        error = error_of(call, reference) if contender.checked and reference else None
        if error is None:
            call()
    except Exception as failure:  # noqa: BLE001 (whatever a peer raises is its result)
        return f"{type(failure).__name__}: {failure}"[:600]
    if error is not None and not error < case.tolerance:
        return f"wrong: relative error {error:.2e}"
    calls[contender.impl], errors[contender.impl] = call, error
    return ""


def run(
    cases: Iterable[Case],
    place: Place,
    clock: Clock,
    results: Results,
    out: Path,
    *,
    skipped: Skipped | None = None,
    deadline: float = float("inf"),
    between: Callable[[], None] = lambda: None,
) -> Results:
    """Measure the cases in order, until `deadline` (of time.monotonic())."""
    for case in cases:
        if time.monotonic() > deadline:
            results.fail(case.name, "all", "no time was left")
            continue
        started = time.monotonic()
        try:
            measure(case, place, clock, results, skipped=skipped)
        except Exception as failure:  # noqa: BLE001 (one case must not end the run)
            results.fail(case.name, "all", f"{type(failure).__name__}: {failure}"[:600])
        results.write(out)
        seconds = time.monotonic() - started
        print(f"{case.name}: {_summary(case, results)} [{seconds:.1f} s]", flush=True)
        between()
    return results


def _summary(case: Case, results: Results) -> str:
    rows = [row for row in results.rows if row.case == case.name or _is_mode_of(row, case)]
    fastest = sorted(rows, key=lambda row: row.median_us)[:6]
    failed = [f["impl"] for f in results.failures if f["case"] == case.name]
    shown = ", ".join(f"{row.impl} {row.median_us:.1f}" for row in fastest)
    return shown + (f"; failed: {', '.join(failed)}" if failed else "")


def _is_mode_of(row: Row, case: Case) -> bool:
    return row.case.startswith(f"{case.name}, ")
