"""The command line: demo, and show, run and check for the programs in a file."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tensorlang.cli import check, run, show
from tensorlang.cli.files import UsageError
from tensorlang.errors import TensorlangError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0, 1 for a mistake in the program, 2 for one in the command itself."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    # argparse wants the arguments of `run` all in one place; a user puts options between them.
    if rest and options.command == "run" and not any(word.startswith("-") for word in rest):
        options.arguments += rest
    elif rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return options.run(options)
    except TensorlangError as error:
        print(error, file=sys.stderr)
        return 1
    except UsageError as error:
        print(f"tensorlang {options.command}: {error}", file=sys.stderr)
        return error.status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorlang", description="A scheduling language for tensor kernels."
    )
    commands = parser.add_subparsers(
        required=True, metavar="demo | show | run | check", dest="command"
    )
    demo = commands.add_parser("demo", help="two programs in three schedules each; needs no GPU")
    demo.add_argument(
        "--picture",
        type=Path,
        default=Path("tensorlang-demo.png"),
        help="where the blurred photograph is written (default: %(default)s)",
    )
    demo.set_defaults(run=_demo)
    show.add_command(commands)
    run.add_command(commands)
    check.add_command(commands)
    return parser


def _demo(options: argparse.Namespace) -> int:
    try:
        from tensorlang import demo
    except ImportError as error:
        raise UsageError(f"{error}: pip install 'tensorlang[demo]' brings it", status=1) from None
    demo.run(options.picture)
    return 0
