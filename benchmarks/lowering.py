"""What lowering and code generation cost: `python -m benchmarks.lowering [--stages 10,20,40]`.

Chains of five-point stencils at root and in sliding windows, and pyramids; processor seconds of
this process, the C compiler aside.
"""

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32
from tensorlang.backends.c.program import translate
from tensorlang.backends.c.toolchain import find_toolchain

H, W = Size("H"), Size("W")
x, y = Var("x"), Var("y")
LANES, ROWS = 8, 32


def chain(stages: int, prefix: str = "f") -> tuple[Pipeline, list[Func]]:
    """Each stage is the mean of five points of the one before it."""
    image = Input("image", f32, [H + 2 * stages, W + 2 * stages])
    before: Any = image
    funcs: list[Func] = []
    for number in range(stages):
        f = Func(f"{prefix}{number}")
        middle = before[y + 1, x] + before[y + 1, x + 1] + before[y + 1, x + 2]
        f[y, x] = (before[y, x + 1] + middle + before[y + 2, x + 1]) * 0.2
        funcs.append(f)
        before = f
    return Pipeline("chain", inputs=[image], outputs={before: [H, W]}), funcs


def at_root(stages: int, prefix: str = "f") -> tuple[Pipeline, Schedule]:
    """A chain whose every stage is computed whole."""
    pipeline, funcs = chain(stages, prefix)
    s = Schedule(pipeline)
    for f in funcs[:-1]:
        s[f].compute_root().split(x, "xo", "xi", LANES).vectorize("xi")
    return pipeline, s


def sliding(stages: int, prefix: str = "f") -> tuple[Pipeline, Schedule]:
    """A chain in strips, each row of a stage computed when the last one needs it."""
    pipeline, funcs = chain(stages, prefix)
    s, last = Schedule(pipeline), funcs[-1]
    s[last].split(y, "yo", "yi", ROWS).parallel("yo").split(x, "xo", "xi", LANES).vectorize("xi")
    for f in funcs[:-1]:
        s[f].store_at(last, "yo").compute_at(last, "yi").split(x, "xo", "xi", LANES)
        s[f].vectorize("xi")
    return pipeline, s


def pyramid(stages: int, prefix: str = "f") -> tuple[Pipeline, Schedule]:
    """Halves of halves and back again; the image is as large as the first level needs."""
    levels = max(stages // 2, 1)
    image = Input("image", f32, [H, W])
    before: Any = Func(f"{prefix}0")
    before[y, x] = image[y % H, x % W]
    funcs = [before]
    for number in range(1, levels + 1):
        f = Func(f"{prefix}{number}")
        f[y, x] = (before[2 * y, 2 * x] + before[2 * y + 1, 2 * x + 1]) * 0.5
        funcs.append(f)
        before = f
    for number in range(levels + 1, 2 * levels + 1):
        f = Func(f"{prefix}{number}")
        f[y, x] = before[y // 2, x // 2] + funcs[2 * levels - number][y, x]
        funcs.append(f)
        before = f
    pipeline = Pipeline("pyramid", inputs=[image], outputs={before: [H, W]})
    s = Schedule(pipeline)
    for f in funcs[:-1]:
        s[f].compute_root()
    return pipeline, s


FAMILIES: dict[str, Callable[[int, str], tuple[Pipeline, Schedule]]] = {
    "root": at_root,
    "sliding": sliding,
    "pyramid": pyramid,
}


def main() -> None:
    """Print a line for each family and size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lowering", description=__doc__)
    parser.add_argument("--stages", default="10,20,40,80", help="numbers of stages, by commas")
    parser.add_argument("--families", default=",".join(FAMILIES))
    options = parser.parse_args()
    for family in options.families.split(","):
        for stages in map(int, options.stages.split(",")):
            times = [time.process_time()]
            pipeline, schedule = FAMILIES[family](stages, "f")
            times.append(time.process_time())
            program = pipeline.lower(schedule)
            times.append(time.process_time())
            arrays = len(program.inputs) + len(program.outputs)
            translate(program, find_toolchain().machine, (True,) * arrays)
            times.append(time.process_time())
            spent = [b - a for a, b in pairwise(times)]
            shown = ", ".join(
                f"{what} {t:.2f} s"
                for what, t in zip(("define", "lower", "generate"), spent, strict=True)
            )
            print(f"{family} {stages}: {shown}", flush=True)


if __name__ == "__main__":
    main()
