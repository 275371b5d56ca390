"""A 3x3 box blur, rows first: as fast as memory can be copied, if it is done right."""

from typing import Any

import numpy as np

from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from benchmarks.cpu.strips import LANES, H, W, halide_strips, in_strips, x, y
from tensorlang import Func, Input, Pipeline, Schedule, f32, u16


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_blur(37, 29, np.float32), _blur(37, 29, np.uint16)]
    return [_blur(2048, 4096, np.float32), _blur(2560, 6400, np.uint16)]


def _blur(h: int, w: int, dtype: Any) -> Case:
    is_float = dtype is np.float32
    ours, theirs = (blur_f32, halide_blur_f32) if is_float else (blur_u16, halide_blur_u16)

    def output(inputs: Any) -> Any:
        return np.empty((h, w), dtype)

    return Case(
        name=f"blur {w}x{h} {'f32' if is_float else 'u16'}",
        inputs=lambda at: (
            at.pixels(h + 2, w + 2, dtype=dtype, high=1.0 if is_float else 16384.0),
        ),
        reference=_blurred_exactly,
        contenders=(
            contenders.ours(ours),
            contenders.ours_by_formula(ours),
            contenders.numpy(_numpy_blur),
            *contenders.all_halide(theirs, output),
            contenders.copy(output),
        ),
        modes=("wall",),
        tolerance=1e-6 if is_float else 1e-12,
        bytes=2.0 * h * w * np.dtype(dtype).itemsize,
        quick=is_float,
    )


def _blurred_exactly(a: Any) -> Any:
    if a.dtype == np.float32:
        return _numpy_blur(a.astype(np.float64))
    return _numpy_blur(a)


def _numpy_blur(a: Any) -> Any:
    if a.dtype.kind == "f":
        third = a.dtype.type(1 / 3)
        rows = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) * third
        return (rows[:-2] + rows[1:-1] + rows[2:]) * third
    rows = (a[:, :-2] + a[:, 1:-1] + a[:, 2:]) // 3
    return (rows[:-2] + rows[1:-1] + rows[2:]) // 3


def blur_f32() -> tuple[Pipeline, Schedule]:
    image = Input("image", f32, [H + 2, W + 2])
    rows, blur = Func("rows"), Func("blur")
    rows[y, x] = (image[y, x] + image[y, x + 1] + image[y, x + 2]) * (1 / 3)
    blur[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) * (1 / 3)
    return _blurin_strips(image, blur, LANES)


def blur_u16() -> tuple[Pipeline, Schedule]:
    image = Input("image", u16, [H + 2, W + 2])
    rows, blur = Func("rows"), Func("blur")
    rows[y, x] = (image[y, x] + image[y, x + 1] + image[y, x + 2]) // 3
    blur[y, x] = (rows[y, x] + rows[y + 1, x] + rows[y + 2, x]) // 3
    return _blurin_strips(image, blur, 2 * LANES)


def _blurin_strips(image: Input, blur: Func, lanes: int) -> tuple[Pipeline, Schedule]:
    pipeline = Pipeline("blur", inputs=[image], outputs={blur: [H, W]})
    s = Schedule(pipeline)
    in_strips(s, "blur", lanes, {"rows": 4})
    return pipeline, s


def halide_blur_f32(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    third = hl.f32(1 / 3)
    return _halide_blur(hl, by_hand, hl.Float(32), lambda e: e * third, LANES)


def halide_blur_u16(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    return _halide_blur(hl, by_hand, hl.UInt(16), lambda e: e // hl.u16(3), 2 * LANES)


def _halide_blur(
    hl: Any, by_hand: bool, dtype: Any, mean: Any, lanes: int
) -> contenders.HalideFunc:
    image = hl.ImageParam(dtype, 2, "image")
    hx, hy = hl.Var("x"), hl.Var("y")
    rows, blur = hl.Func("rows"), hl.Func("blur")
    rows[hx, hy] = mean(image[hx, hy] + image[hx + 1, hy] + image[hx + 2, hy])
    blur[hx, hy] = mean(rows[hx, hy] + rows[hx, hy + 1] + rows[hx, hy + 2])
    if by_hand:
        halide_strips(hl, blur, lanes, (rows,))
    return blur, [image]
