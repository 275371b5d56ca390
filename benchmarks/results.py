"""Rows as JSON, with all that is needed to measure them again."""

import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        case: the case, and after a comma the mode where it is not device time.
        impl: who.
        median_us, low_us, high_us: microseconds; a fifth of the calls is below, a fifth above.
        error: relative, against f64; None where nothing is checked.
    """

    case: str
    impl: str
    median_us: float
    low_us: float
    high_us: float
    error: float | None


@dataclass
class Results:
    """A run: written after every case, so that a run that is cut short keeps what it has."""

    kind: str
    command: str
    hardware: dict[str, Any]
    versions: dict[str, str]
    date: str
    dry: bool = False
    ceilings: dict[str, float] = field(default_factory=dict)
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    failures: list[dict[str, str]] = field(default_factory=list)

    @staticmethod
    def begin(kind: str, *, dry: bool) -> "Results":
        """An empty run on this machine."""
        return Results(
            kind=kind,
            command=" ".join(["python", "-m", "benchmarks", *sys.argv[1:]]),
            hardware=_hardware(kind, dry),
            versions=_versions(),
            date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            dry=dry,
        )

    def fail(self, case: str, impl: str, why: str) -> None:
        """Record who did not run, or was wrong."""
        self.failures.append({"case": case, "impl": impl, "why": why})

    def of(self, case: str) -> dict[str, Row]:
        """The rows of a case by implementation."""
        return {row.impl: row for row in self.rows if row.case == case}

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Replaced in one step: a run that is killed leaves the file of the case before.
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        partial.replace(path)

    @staticmethod
    def read(path: Path) -> "Results":
        data = json.loads(path.read_text(encoding="utf-8"))
        data["rows"] = [Row(**row) for row in data["rows"]]
        return Results(**data)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("tensorlang", "torch", "triton", "numpy", "halide"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _hardware(kind: str, dry: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"cpu": _cpu_name(), "cores": len(os.sched_getaffinity(0))}
    if kind == "gpu" and not dry:
        import torch

        card = torch.cuda.get_device_properties(0)
        found["gpu"], found["sms"] = card.name, card.multi_processor_count
        found["gpu_memory_gib"] = round(card.total_memory / 2**30, 1)
        found["cuda"] = str(torch.version.cuda)
    return found


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
