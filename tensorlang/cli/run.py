"""`tensorlang run FILE A=a.npy alpha=0.5`: a program on arrays of .npy and .npz files."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorlang import Kernel, Target
from tensorlang.cli.files import Commands, Program, UsageError, programs_of


def add_command(commands: Commands) -> None:
    """Add `run` to the command line."""
    run = commands.add_parser("run", help="run a program on .npy and .npz files")
    run.add_argument("file", type=Path, help="a .tl file, or Python that makes the program")
    run.add_argument(
        "arguments",
        nargs="*",
        metavar="NAME=VALUE | FILE.npz",
        help="an Input as A=a.npy, a Param or Size as alpha=0.5, or a file of Inputs by name",
    )
    run.add_argument("--algorithm", metavar="NAME", help="which, where the file has several")
    run.add_argument("--schedule", metavar="NAME", help="which (default: one made for the target)")
    run.add_argument("--target", metavar="NAME", help="default: the schedule's own, or c")
    run.add_argument("--out", type=Path, help="where the outputs go: a .npz, or a .npy for one")
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    program = _program(options)
    arrays, numbers = _arguments(options.arguments)
    algorithm = program.pipeline.algorithm
    missing = [a.name for a in algorithm.inputs if a.name not in arrays]
    if missing:
        raise UsageError(f"Input {missing[0]!r} is not given: add {missing[0]}=FILE.npy")
    inputs = [arrays[a.name] for a in algorithm.inputs]
    sizes = {n.name: numbers.pop(n.name) for n in algorithm.sizes if n.name in numbers}
    result = _kernel(program, options)(*inputs, sizes=sizes, **numbers)
    _deliver(program, result if len(algorithm.outputs) > 1 else (result,), options.out)
    return 0


def _program(options: argparse.Namespace) -> Program:
    found = [
        p
        for p in programs_of(options.file, options.schedule)
        if options.algorithm in (None, p.pipeline.name)
    ]
    names = sorted({p.pipeline.name for p in found})
    if not found:
        raise UsageError(f"{options.file} has no algorithm {options.algorithm!r}", status=1)
    if len(names) > 1:
        raise UsageError(f"choose an algorithm: --algorithm {' | '.join(names)}")
    return found[0]


def _kernel(program: Program, options: argparse.Namespace) -> Kernel:
    own = program.target.name if program.target is not None and options.schedule else None
    target = Target(options.target or own or "c")
    return program.pipeline.compile(program.schedule if options.schedule else None, target)


def _arguments(given: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and numbers by name."""
    arrays: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    for argument in given:
        name, _, value = argument.rpartition("=")
        if value.endswith(".npz") and not name:
            arrays.update(_loaded(value))
        elif not name:
            raise UsageError(f"{argument!r} is neither NAME=VALUE nor a .npz file")
        elif value.endswith(".npy"):
            arrays[name] = _loaded(value)
        else:
            numbers[name] = _number(name, value)
    return arrays, numbers


def _loaded(file: str) -> Any:
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None


def _number(name: str, text: str) -> int | float | bool:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise UsageError(f"{name}={text}: a number, true, false or a .npy file is needed")


def _deliver(program: Program, made: Sequence[Any], out: Path | None) -> None:
    """Write the outputs to a file, or print them."""
    algorithm = program.pipeline.algorithm
    names = [
        name if len(dtypes) == 1 else f"{name}.{k}"
        for name, dtypes in ((n, algorithm.func(n).dtypes) for n, _ in algorithm.outputs)
        for k in range(len(dtypes))
    ]
    outputs = dict(zip(names, made, strict=True))
    if out is None:
        for name, array in outputs.items():
            print(f"{name}: {array.dtype}{list(array.shape)}\n{array}")
    elif out.suffix == ".npz":
        _save_all(out, outputs)
    elif out.suffix == ".npy" and len(outputs) == 1:
        np.save(out, made[0])
    else:
        raise UsageError(f"--out {out}: a .npz file, or a .npy file for one output")


def _save_all(out: Path, outputs: Mapping[str, Any]) -> None:
    np.savez(out, **outputs)  # pyright: ignore[reportArgumentType]
