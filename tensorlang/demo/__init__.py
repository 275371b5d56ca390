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
from skimage import data

from tensorlang import Pipeline, Schedule
from tensorlang.demo import blur, linear_relu
from tensorlang.target import available
from tensorlang.testing import assert_equivalent

Array = np.ndarray[Any, Any]
SECONDS_A_MEASUREMENT = 0.2


@dataclass(frozen=True)
class Program:
    """A pipeline with its schedules, its inputs, and the targets to run it on."""

    title: str
    pipeline: Pipeline
    schedules: Mapping[str, Schedule]
    inputs: tuple[Array, ...]
    targets: tuple[str, ...]


def run(picture: Path) -> None:
    """The whole demo; the picture of the blur is written to `picture`."""
    console = Console()
    for program in (_blur(), _linear_relu()):
        _show(program, console)
    _write_picture(picture)
    console.print(f"The photograph before and after the blur: [bold]{picture}[/bold]")


def _blur() -> Program:
    schedules = {
        "breadth_first": blur.breadth_first,
        "inlined": blur.inlined,
        "strips": blur.strips,
    }
    title = "A 3x3 blur of a photograph, in two stages"
    return Program(title, blur.blur, schedules, (_photograph(),), _present("c"))


def _photograph() -> Array:
    """512 x 512 bytes, from the data that scikit-image's wheel holds."""
    return np.asarray(data.camera(), np.uint8)


def _linear_relu() -> Program:
    schedules = {
        "two_kernels": linear_relu.two_kernels,
        "fused": linear_relu.fused,
        "dots": linear_relu.dots,
    }
    random = np.random.default_rng(0)
    m, n, k = 256, 256, 256
    inputs = tuple(random.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n), (n,)))
    title = f"A linear layer with relu, {m} x {n} x {k} in f16"
    return Program(title, linear_relu.linear_relu, schedules, inputs, _present("c", "triton"))


def _present(*targets: str) -> tuple[str, ...]:
    """Those of the targets that work here, or the interpreter."""
    return tuple(t for t in targets if available()[t].works) or ("interpreter",)


def _show(program: Program, console: Console) -> None:
    console.rule(f"[bold]{program.title}")
    console.print(Panel(str(program.pipeline), title="what: the algorithm"))
    results = Table("schedule", "target", "time", "against the reference", title=program.title)
    for name, schedule in program.schedules.items():
        how = Panel(str(schedule), title=f"how: {name}")
        loops = Panel(schedule.loop_nest(), title="the loops that it gives")
        console.print(Columns([how, loops]))
        for target in program.targets:
            results.add_row(name, _described(target), *_measure(program, schedule, target))
    console.print(results)


def _described(target: str) -> str:
    return f"{target} ({available()[target].why})"


def _measure(program: Program, schedule: Schedule, target: str) -> tuple[str, str]:
    """The time of a call, and what the check against the reference says; raises when it fails."""
    kernel = program.pipeline.compile(schedule, target=target)
    seconds = best_time(lambda: kernel(*program.inputs))
    assert_equivalent(program.pipeline, schedule, target=target, inputs=program.inputs)
    return f"{seconds * 1e3:.3f} ms", "equal"


def best_time(call: Callable[[], object]) -> float:
    """The shortest of the calls that fit into a moment, after one that compiles."""
    call()
    best, end = float("inf"), time.perf_counter() + SECONDS_A_MEASUREMENT
    while True:
        start = time.perf_counter()
        call()
        now = time.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


def _write_picture(path: Path) -> None:
    """The photographer's face, before and after, each pixel eight wide."""
    before = _photograph()
    after = np.asarray(blur.blur.compile(blur.strips, target=_present("c")[0])(before))
    face = np.s_[90:190, 180:280]
    both = np.hstack([before[face], after[face]])
    Image.fromarray(both.repeat(8, 0).repeat(8, 1)).save(path)
