"""Unsharp masking of a colour image: a Gaussian of its luminance, and a ratio."""

from typing import Any

import numpy as np

from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from benchmarks.cpu.strips import (
    GRAY,
    LANES,
    H,
    W,
    c,
    contenders_of,
    gray_of,
    halide_strips,
    in_strips,
    sum_of_products,
    x,
    y,
)
from tensorlang import Func, Input, Pipeline, Schedule, f32

TAPS = tuple(float(np.exp(-(d * d) / (2 * 1.5**2))) for d in range(4))
WEIGHTS = tuple(t / (TAPS[0] + 2 * sum(TAPS[1:])) for t in TAPS)
"""Of a Gaussian with sigma 1.5: at distance 0, 1, 2, 3."""


def cases(place: Place) -> list[Case]:
    return [_unsharp(*((37, 29) if place.dry else (1536, 2560)))]


def _unsharp(h: int, w: int) -> Case:
    return Case(
        name=f"unsharp {w}x{h} f32",
        inputs=lambda at: (
            at.pixels(3, h + 6, w + 6, dtype=np.float32, high=1.0) + np.float32(0.1),
        ),
        reference=lambda a: unsharp_of(a.astype(np.float64)),
        contenders=contenders_of(unsharp, halide_unsharp, unsharp_of, (3, h, w)),
        modes=("wall",),
        tolerance=1e-5,
        flops=40.0 * h * w,
        bytes=4.0 * 6 * h * w,
        quick=True,
    )


def unsharp_of(a: Any) -> Any:
    """Each channel times (2 gray - blurred gray) / gray."""
    gray = gray_of(a, a.dtype.type)
    weights = [a.dtype.type(weight) for weight in WEIGHTS]
    h, w = gray.shape[0] - 6, gray.shape[1] - 6
    rows = gray[3 : h + 3] * weights[0]
    for d in (1, 2, 3):
        rows = rows + (gray[3 - d : h + 3 - d] + gray[3 + d : h + 3 + d]) * weights[d]
    blurred = rows[:, 3 : w + 3] * weights[0]
    for d in (1, 2, 3):
        blurred = blurred + (rows[:, 3 - d : w + 3 - d] + rows[:, 3 + d : w + 3 + d]) * weights[d]
    middle = gray[3 : h + 3, 3 : w + 3]
    ratio = (a.dtype.type(2) * middle - blurred) / middle
    return ratio * a[:, 3 : h + 3, 3 : w + 3]


def unsharp() -> tuple[Pipeline, Schedule]:
    image = Input("image", f32, [3, H + 6, W + 6])
    gray, rows, ratio, sharp = Func("gray"), Func("rows"), Func("ratio"), Func("sharp")
    gray[y, x] = sum_of_products([(image[k, y, x], weight) for k, weight in enumerate(GRAY)])
    rows[y, x] = sum_of_products(_pairs(lambda d: gray[y + 3 + d, x]))
    blurred = sum_of_products(_pairs(lambda d: rows[y, x + 3 + d]))
    ratio[y, x] = (2.0 * gray[y + 3, x + 3] - blurred) / gray[y + 3, x + 3]
    sharp[c, y, x] = ratio[y, x] * image[c, y + 3, x + 3]
    pipeline = Pipeline("unsharp", inputs=[image], outputs={sharp: [3, H, W]})
    s = Schedule(pipeline)
    s[sharp].reorder(y, c, x)
    in_strips(s, "sharp", LANES, {"gray": 8})
    for name in ("rows", "ratio"):
        s[name].compute_at(sharp, "yi").split(x, "xo", "xi", LANES).vectorize("xi")
    return pipeline, s


def halide_unsharp(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    image = hl.ImageParam(hl.Float(32), 3, "image")
    hx, hy, hc, yi = hl.Var("x"), hl.Var("y"), hl.Var("c"), hl.Var("yi")
    gray, rows, ratio, sharp = (hl.Func(n) for n in ("gray", "rows", "ratio", "sharp"))
    gray[hx, hy] = gray_of([image[hx, hy, channel] for channel in range(3)], hl.f32)
    weight = hl.f32
    rows[hx, hy] = _weighted(lambda d: gray[hx, hy + 3 + d], weight)
    blurred = _weighted(lambda d: rows[hx + 3 + d, hy], weight)
    middle = gray[hx + 3, hy + 3]
    ratio[hx, hy] = (hl.f32(2) * middle - blurred) / middle
    sharp[hx, hy, hc] = ratio[hx, hy] * image[hx + 3, hy + 3, hc]
    if by_hand:
        sharp.bound(hc, 0, 3).reorder(hx, hc, hy)
        halide_strips(hl, sharp, LANES, (gray,))
        for func in (rows, ratio):
            func.compute_at(sharp, yi).vectorize(hx, LANES)
    return sharp, [image]


def _pairs(at: Any) -> list[tuple[Any, float]]:
    """What is at -3 ... 3, and what the Gaussian weighs it with."""
    return [(at(0), WEIGHTS[0]), *((at(-d) + at(d), WEIGHTS[d]) for d in (1, 2, 3))]


def _weighted(at: Any, number: Any) -> Any:
    """The Gaussian of what is at -3 ... 3."""
    return sum(value * number(weight) for value, weight in _pairs(at))
