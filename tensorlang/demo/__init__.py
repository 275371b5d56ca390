"""`tensorlang demo`: two programs, three schedules each, and the proof that they agree.

Needs no GPU.  Prints each algorithm, and for each schedule its text, its loops, its time and its
check against the reference; writes a picture of the blur.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from skimage import data

from tensorlang import Pipeline, Schedule, machine
from tensorlang.demo import blur, linear_relu
from tensorlang.target import available
from tensorlang.testing import Report, assert_equivalent

Array = np.ndarray[Any, Any]
SECONDS_A_MEASUREMENT = 0.2


@dataclass(frozen=True)
class Program:
    """A pipeline with its schedules, and the arrays to call it with on each target."""

    title: str
    pipeline: Pipeline
    schedules: Mapping[str, Schedule]
    inputs: Mapping[str, tuple[Array, ...]]


def run(picture: Path) -> None:
    """The whole demo; the picture of the blur is written to `picture`."""
    console = Console()
    for program in (_blur(), _linear_relu()):
        _show(program, console)
    _write_picture(picture)
    console.print(f"The photograph before and after the blur: {picture}", style="bold")


def _blur() -> Program:
    schedules = {
        "breadth_first": blur.breadth_first,
        "inlined": blur.inlined,
        "strips": blur.strips,
    }
    title = "A 3x3 blur of a photograph, in two stages"
    # The interpreter takes one pixel at a time, so it gets only some.
    photo = _photograph()
    inputs = {"c": (photo,)} if available()["c"].works else {"interpreter": (photo[:40, :40],)}
    return Program(title, blur.blur, schedules, inputs)


def _photograph() -> Array:
    """512 x 512 bytes, from the data that scikit-image's wheel holds."""
    return np.asarray(data.camera(), np.uint8)


def _linear_relu() -> Program:
    schedules = {
        "two_kernels": linear_relu.two_kernels,
        "fused": linear_relu.fused,
        "dots": linear_relu.dots,
    }
    # No tile divides these sizes.  Triton's own interpreter, without a GPU, takes about a
    # millisecond for each operation on a tile.
    fast, slow = (300, 300, 300), (70, 70, 50)
    sizes = {"c": fast, "triton": fast if machine.gpu() else slow}
    inputs = {t: _factors(*size) for t, size in sizes.items() if available()[t].works}
    title = "A linear layer with its activation, in f16"
    inputs = inputs or {"interpreter": _factors(20, 20, 20)}
    return Program(title, linear_relu.linear_relu, schedules, inputs)


def _factors(m: int, n: int, k: int) -> tuple[Array, ...]:
    random = np.random.default_rng(0)
    return tuple(random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n,)))


def _show(program: Program, console: Console) -> None:
    console.rule(program.title, style="bold")
    console.print(Panel(Text(str(program.pipeline)), title="what: the algorithm"))
    results = Table("schedule", "target", "shape", "time", "as the reference")
    for name, schedule in program.schedules.items():
        how = Panel(Text(str(schedule)), title=f"how: {name}")
        loops = Panel(Text(schedule.loop_nest()), title="the loops that it gives")
        console.print(Columns([how, loops]))
        for target, inputs in program.inputs.items():
            shape = " ".join("x".join(map(str, a.shape)) for a in inputs)
            results.add_row(name, target, shape, *_measure(program, schedule, target))
    console.print(results)
    for target in program.inputs:
        console.print(f"{target}: {available()[target].why}")


def _measure(program: Program, schedule: Schedule, target: str) -> tuple[str, str]:
    """The time of a call, and what the check against the reference says; raises when it fails."""
    kernel = program.pipeline.compile(schedule, target=target)
    inputs = _where_it_runs(target, program.inputs[target])
    seconds = _best_time(lambda: kernel(*inputs), _wait_for(target))
    report = assert_equivalent(program.pipeline, schedule, target=target, inputs=inputs)
    return f"{seconds * 1e3:.3f} ms", _verdict(report)


def _verdict(report: Report) -> str:
    return "bit for bit" if report.exact == report.elements else "within the bound"


def _where_it_runs(target: str, inputs: tuple[Array, ...]) -> tuple[Any, ...]:
    """The arrays, on the GPU where the target is triton and there is one."""
    if target != "triton" or machine.gpu() is None:
        return inputs
    import torch

    return tuple(torch.as_tensor(a, device="cuda") for a in inputs)


def _wait_for(target: str) -> Callable[[], object]:
    """What waits until a call has run: a GPU goes on by itself."""
    if target != "triton" or machine.gpu() is None:
        return lambda: None
    import torch

    return torch.cuda.synchronize


def _best_time(call: Callable[[], object], wait: Callable[[], object]) -> float:
    """The shortest of the calls that fit into a moment, after one that compiles."""
    call()
    wait()
    best, end = float("inf"), time.perf_counter() + SECONDS_A_MEASUREMENT
    while True:
        start = time.perf_counter()
        call()
        wait()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _write_picture(path: Path) -> None:
    """The photographer's face, before and after, each pixel eight wide."""
    face = _photograph()[90:190, 180:280]
    blurred = np.asarray(blur.blur(face))
    both = np.hstack([face, blurred])
    Image.fromarray(both.repeat(8, 0).repeat(8, 1)).save(path)
