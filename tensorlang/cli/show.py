"""`tensorlang show FILE`: any stage of the programs in a file, from the algorithm to PTX."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorlang import Pipeline, Schedule, Target
from tensorlang.cli.files import Commands, programs_of

# What `--stage` prints of a pipeline with a schedule, for a GPU architecture.
STAGES: dict[str, Callable[[Pipeline, Schedule, str], str]] = {
    "algorithm": lambda pipeline, schedule, arch: str(pipeline),
    "schedule": lambda pipeline, schedule, arch: str(schedule),
    "loops": lambda pipeline, schedule, arch: schedule.loop_nest(),
    "ir": lambda pipeline, schedule, arch: str(pipeline.lower(schedule)),
    "c": lambda pipeline, schedule, arch: pipeline.compile(schedule, target="c").source,
    "triton": lambda pipeline, schedule, arch: _offline(pipeline, schedule, arch).source,
    "ptx": lambda pipeline, schedule, arch: _offline(pipeline, schedule, arch).ptx,
}


def add_command(commands: Commands) -> None:
    """Add `show` to the command line."""
    show = commands.add_parser("show", help="print a stage of the programs in a file")
    show.add_argument("file", type=Path, help="a .tl file, or Python that makes the programs")
    show.add_argument("--schedule", metavar="NAME", help="only the Schedule of this name")
    show.add_argument("--stage", choices=STAGES, default="loops", help="default: %(default)s")
    show.add_argument(
        "--arch",
        default="sm_90",
        help="of triton and ptx, which need no GPU (default: %(default)s)",
    )
    show.set_defaults(run=_show)


def _show(options: argparse.Namespace) -> int:
    for program in programs_of(options.file, options.schedule):
        print(f"# {program.title}")
        text = STAGES[options.stage](program.pipeline, program.schedule, options.arch)
        print(text.rstrip() + "\n")
    return 0


def _offline(pipeline: Pipeline, schedule: Schedule, arch: str) -> Any:
    """The kernel compiled for an architecture, with no GPU present."""
    return pipeline.compile(schedule, target=Target("triton", arch=arch))
