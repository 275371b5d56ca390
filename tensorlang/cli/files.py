"""The programs of a file: of Python that makes Pipelines and Schedules, or of text (`.tl`)."""

import runpy
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tensorlang import Module, Pipeline, Schedule, Target, load

T = TypeVar("T")


class UsageError(Exception):
    """The command itself cannot be carried out: a file that is not there, a name that is not."""

    def __init__(self, message: str, *, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Program:
    """A Pipeline with one of its Schedules: `name` is that of the Schedule, or None."""

    pipeline: Pipeline
    name: str | None
    schedule: Schedule
    target: Target | None = None

    @property
    def title(self) -> str:
        return f"{self.pipeline.name}: {self.name or 'no schedule'}"


class Commands(Protocol):
    """What argparse adds a command to."""

    def add_parser(self, name: str, *, help: str) -> Any: ...


def programs_of(file: Path, wanted: str | None = None) -> list[Program]:
    """The programs of a file; `wanted`: only the Schedule of this name.

    A Pipeline with no Schedule has the empty one.
    """
    if not file.is_file():
        raise UsageError(f"there is no file {file}")
    module = load(file) if file.suffix == ".tl" else _run_file(file)
    found = [
        Program(pipeline, name, schedule, module.targets.get(name) if name else None)
        for pipeline in module.pipelines.values()
        for name, schedule in _own(pipeline, module.schedules).items()
        if wanted in (None, name)
    ]
    if found:
        return found
    if wanted is None:
        raise UsageError(f"{file} has no Pipeline at the top of its module", status=1)
    raise UsageError(
        f"{file} has no Schedule named {wanted!r}; it has: {', '.join(module.schedules) or 'none'}",
        status=1,
    )


def _own(pipeline: Pipeline, schedules: Mapping[str, Schedule]) -> Mapping[str | None, Schedule]:
    own: dict[str | None, Schedule] = {
        n: s for n, s in schedules.items() if s.algorithm is pipeline.algorithm
    }
    return own or {None: Schedule(pipeline)}


def _run_file(file: Path) -> Module:
    """What the file defines, run as a script would be, beside the files it imports."""
    sys.path.insert(0, str(file.resolve().parent))
    try:
        names = runpy.run_path(str(file))
    finally:
        sys.path.pop(0)
    return Module(_values_of(names, Pipeline), _values_of(names, Schedule))


def _values_of(names: Mapping[str, Any], kind: type[T]) -> dict[str, T]:
    """The names of values of that type, each value once (a file may give it a second name)."""
    first = {id(value): name for name, value in reversed(list(names.items()))}
    return {n: v for n, v in names.items() if isinstance(v, kind) and first[id(v)] == n}
