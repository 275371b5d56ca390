"""The command line: `tensorlang demo`, and `tensorlang show FILE` for every stage of a program."""

import argparse
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tensorlang import Pipeline, Schedule, Target
from tensorlang.errors import TensorlangError

T = TypeVar("T")

# What `--stage` prints of a pipeline with a schedule, for a GPU architecture.
STAGES: dict[str, Callable[[Pipeline, Schedule, str], str]] = {
    "loops": lambda pipeline, schedule, arch: schedule.loop_nest(),
    "ir": lambda pipeline, schedule, arch: str(pipeline.lower(schedule)),
    "c": lambda pipeline, schedule, arch: pipeline.compile(schedule, target="c").source,
    "triton": lambda pipeline, schedule, arch: _offline(pipeline, schedule, arch).source,
    "ptx": lambda pipeline, schedule, arch: _offline(pipeline, schedule, arch).ptx,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except TensorlangError as error:
        print(error, file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorlang", description="A scheduling language for tensor kernels."
    )
    commands = parser.add_subparsers(required=True, metavar="demo | show")

    demo = commands.add_parser("demo", help="two programs in three schedules each; needs no GPU")
    demo.add_argument(
        "--picture",
        type=Path,
        default=Path("tensorlang-demo.png"),
        help="where the blurred photograph is written (default: %(default)s)",
    )
    demo.set_defaults(run=_demo)

    show = commands.add_parser("show", help="print a stage of the programs in a Python file")
    show.add_argument("file", type=Path, help="a file with Pipelines and Schedules in its module")
    show.add_argument("--schedule", metavar="NAME", help="only the Schedule of this name")
    show.add_argument("--stage", choices=STAGES, default="loops", help="default: %(default)s")
    show.add_argument(
        "--arch",
        default="sm_90",
        help="of triton and ptx, which need no GPU (default: %(default)s)",
    )
    show.set_defaults(run=_show)
    return parser


def _demo(options: argparse.Namespace) -> int:
    try:
        from tensorlang import demo
    except ImportError as error:
        print(f"{error}: pip install 'tensorlang[demo]' brings it", file=sys.stderr)
        return 1
    demo.run(options.picture)
    return 0


def _show(options: argparse.Namespace) -> int:
    if not options.file.is_file():
        print(f"tensorlang show: there is no file {options.file}", file=sys.stderr)
        return 2
    names = _run_file(options.file)
    shown = _schedules(names, options.schedule)
    if not shown:
        print(_nothing_to_show(options, names), file=sys.stderr)
        return 1
    for title, pipeline, schedule in shown:
        print(f"# {title}")
        print(STAGES[options.stage](pipeline, schedule, options.arch).rstrip() + "\n")
    return 0


def _run_file(file: Path) -> Mapping[str, Any]:
    """The names that the file defines, run as a script would be, beside the files it imports."""
    sys.path.insert(0, str(file.resolve().parent))
    try:
        return runpy.run_path(str(file))
    finally:
        sys.path.pop(0)


def _schedules(
    names: Mapping[str, Any], wanted: str | None
) -> list[tuple[str, Pipeline, Schedule]]:
    """Each Schedule with its Pipeline and a title; the empty one for a Pipeline that has none."""
    found: list[tuple[str, Pipeline, Schedule]] = []
    for pipeline in _values_of(names, Pipeline).values():
        own = {
            name: schedule
            for name, schedule in _values_of(names, Schedule).items()
            if schedule.algorithm is pipeline.algorithm
        }
        for name, schedule in (own or {"no schedule": Schedule(pipeline)}).items():
            if wanted in (None, name):
                found.append((f"{pipeline.algorithm.name}: {name}", pipeline, schedule))
    return found


def _values_of(names: Mapping[str, Any], kind: type[T]) -> dict[str, T]:
    """The names of values of that type, each value once (a file may give it a second name)."""
    first = {id(value): name for name, value in reversed(list(names.items()))}
    return {n: v for n, v in names.items() if isinstance(v, kind) and first[id(v)] == n}


def _nothing_to_show(options: argparse.Namespace, names: Mapping[str, Any]) -> str:
    found = _values_of(names, Schedule)
    if options.schedule is None:
        return f"{options.file} has no Pipeline at the top of its module"
    return (
        f"{options.file} has no Schedule named {options.schedule!r} at the top of its module; "
        f"it has: {', '.join(found) or 'none'}"
    )


def _offline(pipeline: Pipeline, schedule: Schedule, arch: str) -> Any:
    """The kernel compiled for an architecture, with no GPU present."""
    return pipeline.compile(schedule, target=Target("triton", arch=arch))
