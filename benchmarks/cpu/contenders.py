"""Contenders that the CPU's cases share: ours, Halide, NumPy, torch, and a copy."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Call, Contender
from tensorlang import Pipeline, Schedule, autoschedule

HalideFunc = tuple[Any, list[Any]]
"""An output Func and the ImageParams that it reads, in order."""


def ours(make: Callable[[], tuple[Pipeline, Schedule]], impl: str = "tensorlang") -> Contender:
    """A pipeline under a schedule, into memory that is there already."""

    def prepare(inputs: Sequence[Any]) -> Call:
        pipeline, schedule = make()
        kernel = pipeline.compile(schedule, target="c")
        out = kernel(*inputs)
        return lambda: kernel(*inputs, out=out)

    return Contender(impl, prepare)


def ours_by_formula(make: Callable[[], tuple[Pipeline, Schedule]]) -> Contender:
    """The same pipeline under the schedule that a call without one runs under."""

    def made() -> tuple[Pipeline, Schedule]:
        pipeline, _ = make()
        return pipeline, autoschedule(pipeline, "c")

    return ours(made, "tensorlang auto")


def halide(
    define: Callable[[Any, bool], HalideFunc],
    output: Callable[[Sequence[Any]], Any],
    autoscheduler: str = "",
) -> Contender:
    """A Halide pipeline for this machine, compiled once, called with buffers made once.

    Args:
        define: from the module and whether to schedule by hand, to the Func and its params.
        output: from the inputs to the output array, which tells its shape and dtype.
        autoscheduler: one that is in Halide's wheel, such as "Mullapudi2016".
    """

    def prepare(inputs: Sequence[Any]) -> Call:
        import halide as hl

        func, params = define(hl, not autoscheduler)
        out = output(inputs)
        if autoscheduler:
            _autoschedule(hl, func, params, inputs, out, autoscheduler)
        compiled = func.compile_to_callable(params, hl.get_host_target())
        buffers = [hl.Buffer(array) for array in (*inputs, out)]

        def call() -> Any:
            compiled(*buffers)
            return out

        return call

    # A quick run has time for the one of Halide's autoschedulers that is best on most cases.
    slow = autoscheduler in AUTOSCHEDULERS[1:]
    return Contender(f"halide {autoscheduler}".strip(), prepare, alone=slow)


def _autoschedule(
    hl: Any, func: Any, params: list[Any], inputs: Sequence[Any], out: Any, name: str
) -> None:
    library = f"libautoschedule_{name.lower()}.so"
    hl.load_plugin(str(Path(hl.__file__).parent / "lib64" / library))
    for param, array in zip(params, inputs, strict=True):
        for dim, extent in enumerate(reversed(array.shape)):
            param.dim(dim).set_estimate(0, extent)
    func.set_estimates([(0, extent) for extent in reversed(out.shape)])
    threads = os.environ.get("HL_NUM_THREADS", str(os.cpu_count()))
    choice = hl.AutoschedulerParams(name, {"parallelism": threads})
    hl.Pipeline(func).apply_autoscheduler(hl.get_host_target(), choice)


def numpy(function: Callable[..., Any]) -> Contender:
    """A NumPy function, allocating what it wants."""
    return Contender("numpy", lambda inputs: lambda: function(*inputs))


def torch(function: Callable[..., Any], *, compiled: bool = False) -> Contender:
    """A torch function on tensors that share the arrays' memory.

    Compiled it is left out of quick runs: the C++ that torch generates takes long to compile.
    """

    def prepare(inputs: Sequence[Any]) -> Call:
        import torch

        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        tensors = [torch.from_numpy(array) for array in inputs]
        call = torch.compile(function, dynamic=False) if compiled else function
        # The arrays under the tensors, so that all contenders are compared in NumPy.
        return lambda: call(*tensors).numpy()

    return Contender("compile" if compiled else "eager", prepare, alone=compiled)


def copy(output: Callable[[Sequence[Any]], Any]) -> Contender:
    """Copy as much as the output holds, on all threads: what the memory allows."""

    def prepare(inputs: Sequence[Any]) -> Call:
        target = output(inputs)
        source = np.zeros_like(target)
        threads = int(os.environ.get("OMP_NUM_THREADS", "1"))
        pool = ThreadPoolExecutor(threads)
        rows = -(-len(target) // threads)
        parts = [slice(k * rows, (k + 1) * rows) for k in range(threads)]

        def call() -> Any:
            list(pool.map(lambda part: np.copyto(target[part], source[part]), parts))
            return target

        return call

    return Contender("copy", prepare, checked=False)


AUTOSCHEDULERS = ("Mullapudi2016", "Li2018", "Adams2019")


def all_halide(
    define: Callable[[Any, bool], HalideFunc], output: Callable[[Sequence[Any]], Any]
) -> tuple[Contender, ...]:
    """Halide under our schedule and under its own."""
    return (halide(define, output), *(halide(define, output, name) for name in AUTOSCHEDULERS))
