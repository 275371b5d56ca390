"""Harris corners: seven stages, of which three are worth keeping."""

from functools import reduce
from operator import add
from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from benchmarks.cpu.strips import (
    GRAY,
    LANES,
    H,
    W,
    contenders_of,
    gray_of,
    halide_strips,
    in_strips,
    sum_of_products,
    x,
    y,
)
from tensorlang import Func, Input, Pipeline, Schedule, f32


def cases(place: Place) -> list[Case]:
    return [_harris(*((37, 29) if place.dry else (1536, 2560)))]


def _harris(h: int, w: int) -> Case:
    return Case(
        name=f"harris {w}x{h} f32",
        inputs=lambda at: (at.pixels(3, h + 4, w + 4, dtype=np.float32, high=1.0),),
        reference=lambda a: harris_of(a.astype(np.float64)),
        contenders=contenders_of(harris, halide_harris, harris_of, (h, w)),
        modes=("wall",),
        tolerance=1e-3,
        flops=60.0 * h * w,
        bytes=4.0 * 4 * h * w,
        quick=True,
    )


def harris_of(a: Any) -> Any:
    """The response det - 0.04 trace^2 of the structure tensor over 3x3 neighbours."""
    gray = gray_of(a, a.dtype.type)
    twelfth = a.dtype.type(1 / 12)
    two, few = a.dtype.type(2), a.dtype.type(0.04)
    down = gray[2:] - gray[:-2]
    right = gray[:, 2:] - gray[:, :-2]
    iy = (down[:, :-2] + two * down[:, 1:-1] + down[:, 2:]) * twelfth
    ix = (right[:-2] + two * right[1:-1] + right[2:]) * twelfth
    xx, yy, xy = (_box(p) for p in (ix * ix, iy * iy, ix * iy))
    trace = xx + yy
    return xx * yy - xy * xy - few * trace * trace


def _box(p: Any) -> Any:
    rows = p[:, :-2] + p[:, 1:-1] + p[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]


def harris() -> tuple[Pipeline, Schedule]:
    image = Input("image", f32, [3, H + 4, W + 4])
    gray, ix, iy, response = Func("gray"), Func("ix"), Func("iy"), Func("response")
    gray[y, x] = sum_of_products([(image[k, y, x], weight) for k, weight in enumerate(GRAY)])

    def down(dx: int) -> Any:
        return gray[y + 2, x + dx] - gray[y, x + dx]

    def right(dy: int) -> Any:
        return gray[y + dy, x + 2] - gray[y + dy, x]

    iy[y, x] = (tl.fma(down(1), 2.0, down(0)) + down(2)) * (1 / 12)
    ix[y, x] = (tl.fma(right(1), 2.0, right(0)) + right(2)) * (1 / 12)
    xx, yy, xy = Func("xx"), Func("yy"), Func("xy")
    for sums, a, b in ((xx, ix, ix), (yy, iy, iy), (xy, ix, iy)):
        pairs = [(a[y + v, x + u], b[y + v, x + u]) for v in range(3) for u in range(3)]
        sums[y, x] = sum_of_products(pairs)
    trace = xx[y, x] + yy[y, x]
    response[y, x] = xx[y, x] * yy[y, x] - xy[y, x] * xy[y, x] - 0.04 * trace * trace
    pipeline = Pipeline("harris", inputs=[image], outputs={response: [H, W]})
    s = Schedule(pipeline)
    in_strips(s, "response", LANES, {"gray": 8, "ix": 4, "iy": 4})
    for name in ("xx", "yy", "xy"):
        s[name].compute_inline()
    return pipeline, s


def halide_harris(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    image = hl.ImageParam(hl.Float(32), 3, "image")
    hx, hy = hl.Var("x"), hl.Var("y")
    gray, ix, iy, response = (hl.Func(n) for n in ("gray", "ix", "iy", "response"))
    gray[hx, hy] = gray_of([image[hx, hy, channel] for channel in range(3)], hl.f32)

    def down(dx: int) -> Any:
        return gray[hx + dx, hy + 2] - gray[hx + dx, hy]

    def right(dy: int) -> Any:
        return gray[hx + 2, hy + dy] - gray[hx, hy + dy]

    iy[hx, hy] = (down(0) + hl.f32(2) * down(1) + down(2)) * hl.f32(1 / 12)
    ix[hx, hy] = (right(0) + hl.f32(2) * right(1) + right(2)) * hl.f32(1 / 12)

    def box(a: Any, b: Any) -> Any:
        pairs = [(hx + u, hy + v) for v in range(3) for u in range(3)]
        return reduce(add, [a[at] * b[at] for at in pairs])

    xx, yy, xy = box(ix, ix), box(iy, iy), box(ix, iy)
    trace = xx + yy
    response[hx, hy] = xx * yy - xy * xy - hl.f32(0.04) * trace * trace
    if by_hand:
        halide_strips(hl, response, LANES, (gray, ix, iy))
    return response, [image]
