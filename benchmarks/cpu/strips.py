"""Strips of rows: what the image pipelines share of their schedules.

Strips run in parallel, and inside a strip each row of a stage is computed once, when the first row
that needs it is, and kept in a window that slides down.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Contender
from benchmarks.cpu import contenders
from tensorlang import Schedule, Size, Var

ROWS, LANES = 32, 8
H, W = Size("H"), Size("W")
x, y, c = Var("x"), Var("y"), Var("c")


def in_strips(s: Schedule, output: str, lanes: int, windows: Mapping[str, int]) -> None:
    """Strips of the output in parallel; the Funcs named are kept row by row while it slides.

    Args: windows: for each of them the rows of its ring, which Halide chooses itself.
    """
    s[output].split(y, "yo", "yi", ROWS).parallel("yo")
    s[output].split(x, "xo", "xi", lanes).vectorize("xi")
    for name, rows in windows.items():
        s[name].store_at(output, "yo").fold_storage(y, rows).compute_at(output, "yi")
        s[name].split(x, "xo", "xi", lanes).vectorize("xi")


def halide_strips(hl: Any, output: Any, lanes: int, windows: Sequence[Any]) -> None:
    """The same for Halide."""
    hx, hy, yi = hl.Var("x"), hl.Var("y"), hl.Var("yi")
    output.split(hy, hy, yi, ROWS).parallel(hy).vectorize(hx, lanes)
    for func in windows:
        func.store_at(output, hy).compute_at(output, yi).vectorize(hx, lanes)


GRAY = (0.299, 0.587, 0.114)


def gray_of(image: Any, number: Callable[[float], Any]) -> Any:
    """The luminance of three planes; `number` makes a constant of their type."""
    red, green, blue = (plane * number(weight) for plane, weight in zip(image, GRAY, strict=True))
    return red + green + blue


def sum_of_products(pairs: Sequence[tuple[Any, Any]]) -> Any:
    """a*b + c*d + ..., each sum rounded once: what Halide's compiler makes of it unasked."""
    (a, b), *rest = pairs
    total = a * b
    for a, b in rest:
        total = tl.fma(a, b, total)
    return total


def contenders_of(
    ours: Any, theirs: Any, numpy: Any, shape: tuple[int, ...]
) -> tuple[Contender, ...]:
    """Ours, NumPy and Halide, for an output of f32."""
    return (
        contenders.ours(ours),
        contenders.ours_by_formula(ours),
        contenders.numpy(numpy),
        *contenders.all_halide(theirs, lambda inputs: np.empty(shape, np.float32)),
    )
