"""The harness of the benchmarks: what it refuses, what it counts, and that its parts fit."""

import random
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from benchmarks import timing
from benchmarks.bars import BARS, Bar
from benchmarks.case import Case, Contender, Place
from benchmarks.checking import PIECE, error_of, relative_error
from benchmarks.report import markdown
from benchmarks.results import Results, Row
from benchmarks.run import measure
from benchmarks.timing import FakeClock, Sample, wall_times

DRY = Place("cpu", dry=True)


def _results(**medians: float) -> Results:
    made = Results.begin("gpu", dry=True)
    made.cases["rope a"] = {"mode": "device", "flops": 0, "bytes": 8e6}
    made.rows = [
        Row("rope a", impl.replace("_", "-"), m, m, m, 1e-3) for impl, m in medians.items()
    ]
    return made


# ------------------------------------------------------------------------------------- checking


def test_memory_that_is_not_written_is_an_infinite_error():
    buffer = np.zeros(4)

    def writes_half():
        buffer[:2] = 1.0
        return buffer

    assert error_of(writes_half, [np.array([1.0, 1.0, 0.0, 0.0])]) == float("inf")


def test_the_error_is_relative_to_the_whole_reference():
    reference = np.array([3.0, 4.0])
    assert relative_error(np.array([3.0, 4.5], np.float32), reference) == pytest.approx(0.1)
    assert error_of(lambda: reference.copy(), [reference]) == 0.0


def test_another_shape_and_another_count_are_errors():
    two = np.ones(2)
    assert relative_error(np.ones((2, 1)), two) == float("inf")
    assert error_of(lambda: (np.ones(2), np.ones(2)), [two]) == float("inf")


# --------------------------------------------------------------------------------------- running


def _case(*contenders: Contender) -> Case:
    return Case(
        name="double",
        inputs=lambda place: (np.arange(4.0),),
        reference=lambda x: 2 * x,
        contenders=contenders,
        modes=("wall",),
    )


def _doubling(factor: float):
    return lambda inputs: lambda: factor * inputs[0]


def test_who_is_wrong_or_fails_is_named_and_not_timed():
    def broken(inputs):
        raise ValueError("no such instruction")

    results = Results.begin("cpu", dry=True)
    case = _case(
        Contender("right", _doubling(2.0)),
        Contender("wrong", _doubling(2.5)),
        Contender("broken", broken),
        Contender("late", _doubling(2.0)),
    )
    skipped = {("double", "late"): "not compiled in 60 s"}
    measure(case, DRY, FakeClock(), results, skipped=skipped)
    assert [(row.case, row.impl, row.error) for row in results.rows] == [
        ("double, wall", "right", 0.0)
    ]
    why = {f["impl"]: f["why"] for f in results.failures}
    assert why["wrong"].startswith("wrong: relative error 2.5")
    assert why["broken"] == "ValueError: no such instruction"
    assert why["late"] == "not compiled in 60 s"


def test_the_error_is_that_of_all_pieces_as_one_vector():
    reference = np.linspace(1.0, 2.0, 2 * PIECE + 3).reshape(1, -1)
    output = reference.copy()
    output[0, [5, PIECE, -1]] += 3.0, -4.0, 12.0
    expected = 13.0 / np.linalg.norm(reference)
    assert relative_error(output, reference) == pytest.approx(expected)
    output[0, -1] = np.nan
    assert relative_error(output, reference) == float("inf")
    assert relative_error(output[:, 1:], reference) == float("inf")


def test_contenders_are_interleaved_and_their_order_changes():
    order: list[str] = []
    calls = {name: (lambda name=name: order.append(name)) for name in "abc"}
    times = wall_times(calls, 0.0, random.Random(0))
    rounds = [order[k : k + 3] for k in range(0, len(order), 3)]
    assert {len(values) for values in times.values()} == {5}
    assert all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1


def test_whoever_is_slow_is_called_as_often_as_asked():
    times = wall_times({"slow": lambda: None}, 0.0, random.Random(0), 3)
    assert len(times["slow"]) == 3


def test_calls_that_take_long_are_timed_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(timing, "LONG", 0.0)
    assert len(wall_times({"slow": lambda: None}, 1e9, random.Random(0))["slow"]) == 1


def test_a_sample_is_a_median_and_its_spread():
    assert Sample.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Sample(median=3.0, low=2.0, high=5.0)


# -------------------------------------------------------------------------------- bars and report


def test_a_bar_takes_the_best_peer():
    bar = Bar("rope", ("rope *",), ("eager", "comp*"), each=1.5)
    ratios = bar.ratios(_results(tensorlang=2.0, eager=8.0, compile=3.0, triton=1.0))
    assert ratios == {"rope a": 1.5}
    assert bar.is_met(ratios)
    assert not Bar("rope", ("rope *",), ("eager",), geomean=4.1).is_met({"rope a": 4.0})


def test_a_limit_counts_microseconds():
    bar = Bar("rope", ("rope *",), limit_us=10)
    assert bar.is_met(bar.ratios(_results(tensorlang=9.0)))
    assert not bar.is_met(bar.ratios(_results(tensorlang=11.0)))


def test_the_report_has_ratios_rates_and_verdicts():
    text = markdown(_results(tensorlang=2.0, eager=8.0, compile=2.1))
    assert "| rope a | eager | 8.00 | 8.00-8.00 | 4.00 | 1000 GB/s | 1.0e-03 |" in text
    assert "| rope | each >= 1.07 | geomean 1.05 of 1, least 1.05 (rope a) | **no** |" in text


def test_results_are_read_as_they_were_written(tmp_path: Path):
    results = _results(tensorlang=2.0)
    results.fail("rope a", "eager", "not here")
    results.write(tmp_path / "out" / "gpu.json")
    assert Results.read(tmp_path / "out" / "gpu.json") == results


# --------------------------------------------------------------------------------- the GPU's cases


def _names(place: Place) -> list[str]:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    from benchmarks.cases import FAMILIES, cases_of

    cases = [case for family in FAMILIES for case in cases_of(family, place)]
    return [
        f"{case.name}, {mode}" if mode != "device" else case.name
        for case in cases
        for mode in case.modes
    ]


def test_names_of_cases_are_unique_and_every_bar_names_some():
    names = _names(Place())
    assert len(set(names)) == len(names)
    for bar in BARS["gpu"]:
        matched = [n for n in names if any(fnmatchcase(n, pattern) for pattern in bar.cases)]
        assert matched, bar.title


@pytest.mark.slow
def test_preparing_runs_in_processes_and_reports_who_fails():
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    import time

    from benchmarks.warm import Task, warm

    good = Task("launch", "launch add 64 f32", "eager", alone=False)
    unknown = Task("launch", "launch add 64 f32", "nobody", alone=True)
    deadline = time.monotonic() + 120
    failures = warm([good, unknown], DRY, workers=1, limit=60, deadline=deadline)
    assert list(failures) == [unknown]
    assert failures[unknown].startswith("StopIteration")
    assert set(warm([good], DRY, workers=1, limit=0.01, deadline=deadline)) == {good}


def test_the_bar_of_squares_has_squares_only():
    bar = BARS["gpu"][0]
    matched = [n for n in _names(Place()) if any(fnmatchcase(n, p) for p in bar.cases)]
    assert len(matched) == 7 * 2 * 2


def test_a_dry_run_checks_ours_and_writes_the_rows(tmp_path: Path):
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    from benchmarks.__main__ import main

    out = tmp_path / "gpu.json"
    options = ["--dry", "--impls", "tensorlang,eager", "--ops", "rows,launch", "--out", str(out)]
    main(["gpu", *options, "--only", "softmax 3x64*;rope*;launch*"])
    results = Results.read(out)
    assert results.failures == []
    assert {row.impl for row in results.rows} == {"tensorlang", "eager"}
    assert {row.case.partition(" ")[0] for row in results.rows} == {"softmax", "rope", "launch"}
    assert out.with_suffix(".md").read_text().startswith("# Benchmarks: gpu, a dry run")


# --------------------------------------------------------------------------------- the CPU's cases


def test_every_bar_of_the_cpu_names_cases_or_waits_for_them():
    pytest.importorskip("torch")
    from benchmarks.cpu import FAMILIES

    names = [
        f"{case.name}, {threads}"
        for cases in FAMILIES.values()
        for case in cases(Place("cpu"))
        for threads in ("1 thread", "2 threads")
    ]
    assert len(set(names)) == len(names)
    for bar in BARS["cpu"]:
        assert any(fnmatchcase(n, p) for n in names for p in bar.cases), bar.title


@pytest.mark.cc
def test_a_dry_run_on_the_cpu_checks_each_number_of_threads(tmp_path: Path):
    from benchmarks.__main__ import main

    out = tmp_path / "cpu.json"
    options = ["--ops", "blur", "--only", "*u16", "--impls", "tensorlang,numpy", "--out", str(out)]
    main(["cpu", "--dry", *options])
    results = Results.read(out)
    assert results.failures == []
    assert [(row.case, row.impl, row.error) for row in results.rows] == [
        ("blur 29x37 u16, 1 thread", "tensorlang", 0.0),
        ("blur 29x37 u16, 1 thread", "numpy", 0.0),
        ("blur 29x37 u16, 2 threads", "tensorlang", 0.0),
        ("blur 29x37 u16, 2 threads", "numpy", 0.0),
    ]
