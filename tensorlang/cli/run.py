"""`tensorlang run FILE A=a.npy alpha=0.5`: a program on arrays of .npy and .npz files."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorlang import Kernel, Target
from tensorlang.algorithm import Algorithm, InputRecord
from tensorlang.arrays import numpy_dtype
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
    algorithm = program.pipeline.algorithm
    names = _output_names(algorithm)
    _check_out(options.out, names)
    arrays, numbers = _arguments(options.arguments, algorithm)
    inputs = [_input(a, arrays, numbers) for a in algorithm.inputs]
    sizes = {n.name: numbers.pop(n.name) for n in algorithm.sizes if n.name in numbers}
    result = _kernel(program, options)(*inputs, sizes=sizes, **numbers)
    _deliver(dict(zip(names, result if len(names) > 1 else (result,), strict=True)), options.out)
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


def _arguments(given: Sequence[str], algorithm: Algorithm) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arrays and numbers by name; of an archive, what the algorithm has no Input for is left."""
    arrays: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    known = [a.name for a in algorithm.inputs]
    for argument in given:
        name, _, value = argument.rpartition("=")
        if value.endswith(".npz") and not name:
            archive = _loaded(value)
            arrays.update({n: archive[n] for n in known if n in archive})
        elif not name:
            raise UsageError(f"{argument!r} is neither NAME=VALUE nor a .npz file")
        elif not value.endswith(".npy"):
            numbers[name] = _number(name, value)
        elif name in known:
            arrays[name] = _loaded(value)
        else:
            listed = ", ".join(known) or "none"
            raise UsageError(f"{algorithm.name!r} has no Input {name!r}; its Inputs: {listed}")
    return arrays, numbers


def _input(record: InputRecord, arrays: Mapping[str, Any], numbers: Mapping[str, Any]) -> Any:
    """The array of an Input; a file keeps no name of bf16 and f8, only how wide they are."""
    name = record.name
    if name in numbers:
        raise UsageError(f"{name!r} is an Input, so {name}={numbers[name]} has to be a .npy file")
    if name not in arrays:
        raise UsageError(f"Input {name!r} is not given: add {name}=FILE.npy")
    array = arrays[name]
    if array.dtype.kind == "V" and array.dtype.itemsize * 8 == record.dtype.bits:
        return array.view(numpy_dtype(record.dtype))
    return array


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


def _output_names(algorithm: Algorithm) -> list[str]:
    """The name of each output array: of a tuple, one a component."""
    return [
        name if len(dtypes) == 1 else f"{name}.{k}"
        for name, dtypes in ((n, algorithm.func(n).dtypes) for n, _ in algorithm.outputs)
        for k in range(len(dtypes))
    ]


def _check_out(out: Path | None, names: Sequence[str]) -> None:
    """Before anything runs: whether the outputs can go there."""
    if out is None:
        return
    if not (out.suffix == ".npz" or (out.suffix == ".npy" and len(names) == 1)):
        raise UsageError(f"--out {out}: a .npz file, or a .npy file for one output")
    if not out.parent.is_dir():
        raise UsageError(f"--out {out}: there is no folder {out.parent}")


def _deliver(outputs: Mapping[str, Any], out: Path | None) -> None:
    """Write the outputs to a file, or print them."""
    if out is None:
        for name, array in outputs.items():
            print(f"{name}: {array.dtype}{list(array.shape)}\n{array}")
        return
    try:
        if out.suffix == ".npz":
            np.savez(out, **outputs)  # pyright: ignore[reportArgumentType]
        else:
            np.save(out, *outputs.values())
    except OSError as error:
        raise UsageError(f"--out {out} cannot be written: {error}", status=1) from None
