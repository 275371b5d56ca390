"""`tensorlang check FILE`: every schedule of a file against its algorithm, on drawn inputs."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tensorlang import Target
from tensorlang.cli.files import Commands, Program, UsageError, programs_of
from tensorlang.errors import TensorlangError

_HEAD = ("algorithm", "schedule", "target", "elements", "bit for bit", "result")


def add_command(commands: Commands) -> None:
    """Add `check` to the command line."""
    check = commands.add_parser("check", help="test every schedule of a file on drawn inputs")
    check.add_argument("file", type=Path, help="a .tl file, or Python that makes the programs")
    check.add_argument("--schedule", metavar="NAME", help="only the Schedule of this name")
    check.add_argument(
        "--target",
        action="append",
        metavar="NAME",
        help="where they run, may be repeated (default: their own targets, and interpreter)",
    )
    check.add_argument(
        "--examples", type=_count, default=20, help="inputs drawn for each (default: %(default)s)"
    )
    check.set_defaults(run=_check)


def _count(text: str) -> int:
    """A number of at least one, as argparse asks for it."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of inputs: at least 1")
    return int(text)


def _check(options: argparse.Namespace) -> int:
    for target in options.target or ():
        Target(target)  # refused here rather than once a schedule
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for program in programs_of(options.file, options.schedule):
        for target in options.target or _targets(program):
            row, failure = _checked(program, target, options.examples)
            rows.append(row)
            if failure:
                failures.append(f"{program.title} on {target}\n{failure}")
    _print_table([_HEAD, *rows])
    for failure in failures:
        print(f"\n{failure}")
    return 1 if failures else 0


def _targets(program: Program) -> list[str]:
    own = program.target.name if program.target is not None else "interpreter"
    return list(dict.fromkeys(("interpreter", own)))


def _checked(program: Program, target: str, examples: int) -> tuple[tuple[str, ...], str]:
    """A row of the table, and what failed."""
    try:
        from tensorlang.testing.checking import check_schedule
    except ImportError as error:
        raise UsageError(f"{error}: pip install 'tensorlang[test]' brings it", status=1) from None
    name = program.name or "(none)"
    try:
        report = check_schedule(program.pipeline, program.schedule, target, examples=examples)
    except (AssertionError, TensorlangError) as error:
        return (program.pipeline.name, name, target, "", "", "DIFFERS"), str(error)
    counts = (str(report.elements), f"{report.exact}")
    return (program.pipeline.name, name, target, *counts, "equal"), ""


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for k, row in enumerate(rows):
        print("  ".join(word.ljust(n) for word, n in zip(row, widths, strict=True)).rstrip())
        if k == 0:
            print("  ".join("-" * n for n in widths))
