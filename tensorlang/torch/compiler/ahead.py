"""The GPU kernels of a graph compiled side by side before its first call, with a bar on a terminal.

A call would compile those of its regions one region after another.
"""

import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

from tensorlang.calling.progress import show_progress
from tensorlang.kernel import Kernel
from tensorlang.machine import available_cores
from tensorlang.torch.compiler.emission import Call
from tensorlang.torch.compiler.nodes import tensor_of
from tensorlang.torch.compiler.running import Fused
from tensorlang.torch.libraries import torch

# A kernel, the shapes of its Inputs, and the index of the GPU.
Wanted = tuple[Kernel, tuple[tuple[int, ...], ...], int]


def compile_ahead(calls: Sequence[Call]) -> None:
    """Compile what calls of static shapes will need.

    What cannot be compiled is left to the first call, which tells of it and has torch to fall on.
    """
    wanted = list(dict.fromkeys(w for call in calls for w in _wanted(call)))
    if len(wanted) < 2:
        return
    shown = sys.stderr.isatty()
    with ThreadPoolExecutor(min(available_cores(), len(wanted))) as pool:
        waiting = [pool.submit(_compile, *w) for w in wanted]
        for done, _ in enumerate(as_completed(waiting), 1):
            if shown:
                show_progress(done, len(wanted))


def _wanted(call: Call) -> list[Wanted]:
    function: Any = call.function
    if not isinstance(function, Fused) or not function.is_static:
        return []
    fakes = [tensor_of(n) for n in call.region.inputs]
    if not fakes or any(not fake.is_cuda for fake in fakes):
        return []
    orders = function.translation.inputs
    turned = [fake.permute(order) for fake, order in zip(fakes, orders, strict=True)]
    if not all(t.is_contiguous() for t in turned):
        return []
    shapes = tuple(tuple(map(int, t.shape)) for t in turned)
    return [(function.kernel, shapes, fakes[0].device.index or 0)]


def _compile(kernel: Kernel, shapes: tuple[tuple[int, ...], ...], device: int) -> None:
    with torch.cuda.device(device):
        kernel.warmup(shapes, progress=False)
