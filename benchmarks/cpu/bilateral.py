"""Bilateral grid: a coarse histogram over place and brightness, blurred, and read between cells."""

from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from benchmarks.cpu.strips import contenders_of
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32, i32

CELL, LEVELS, LANES = 8, 10, 8
"""Pixels along the side of a cell; brightness levels in [0, 1]."""
c, z, y, x = (Var(v) for v in "czyx")


def cases(place: Place) -> list[Case]:
    h, w = (37, 29) if place.dry else (1536, 2560)
    return [
        Case(
            name=f"bilateral grid {w}x{h} f32",
            inputs=lambda at: (at.pixels(h, w, dtype=np.float32, high=1.0),),
            reference=lambda image: bilateral_of(image.astype(np.float64)),
            contenders=contenders_of(bilateral, halide_bilateral, bilateral_of, (h, w)),
            modes=("wall",),
            # A brightness next to a cell's edge may be counted in either: the grid is f32.
            tolerance=1e-3,
            bytes=8.0 * h * w,
        )
    ]


def bilateral_of(image: Any) -> Any:
    """The same grid by whole arrays; only the histogram needs a scatter."""
    number = image.dtype.type
    (h, w), border = image.shape, 3 * CELL
    gh, gw = h // CELL + 6, w // CELL + 6
    wide = np.pad(image, ((border, gh * CELL - h), (border, gw * CELL - w)), mode="edge")
    start = border - 2 * CELL - CELL // 2
    cells = wide[start : start + gh * CELL, start : start + gw * CELL]
    level = (cells * number(LEVELS) + number(0.5)).astype(np.int64)
    grid = np.zeros((2, LEVELS + 6, gh, gw), image.dtype)
    at_y, at_x = np.indices(cells.shape) // CELL
    np.add.at(grid[0], (level + 2, at_y, at_x), cells)
    np.add.at(grid[1], (level + 2, at_y, at_x), number(1))
    for axis in (1, 3, 2):
        grid = _blurred(grid, axis)
    return _sliced(grid, image)


def _blurred(grid: Any, axis: int) -> Any:
    number = grid.dtype.type
    length = grid.shape[axis]
    padded = np.pad(grid, [(2, 2) if a == axis else (0, 0) for a in range(4)])
    parts = [np.take(padded, range(d, d + length), axis=axis) for d in range(5)]
    outer, inner = parts[0] + parts[4], parts[1] + parts[3]
    return outer + number(4) * inner + number(6) * parts[2]


def _sliced(grid: Any, image: Any) -> Any:
    number = image.dtype.type
    at_y, at_x = np.indices(image.shape)
    yi, xi = at_y // CELL, at_x // CELL
    yf, xf = (at_y % CELL).astype(image.dtype) / CELL, (at_x % CELL).astype(image.dtype) / CELL
    depth = image * number(LEVELS)
    zi = depth.astype(np.int64)
    zf = depth - zi
    found = []
    for channel in grid:
        corners = lambda dz, g=channel: _between(  # noqa: E731
            _between(g[zi + dz + 2, yi + 2, xi + 2], g[zi + dz + 2, yi + 2, xi + 3], xf),
            _between(g[zi + dz + 2, yi + 3, xi + 2], g[zi + dz + 2, yi + 3, xi + 3], xf),
            yf,
        )
        found.append(_between(corners(0), corners(1), zf))
    return found[0] / found[1]


def _between(a: Any, b: Any, at: Any) -> Any:
    return a + (b - a) * at


def _five(at: Any, number: Any = float) -> Any:
    return (at(-2) + at(2)) + number(4.0) * (at(-1) + at(1)) + number(6.0) * at(0)


def bilateral() -> tuple[Pipeline, Schedule]:
    H, W = Size("H"), Size("W")
    image = Input("image", f32, [H, W])
    edge = tl.repeat_edge(image)
    r = RDom("r", CELL, CELL)
    grid, blur_z, blur_x, blur_y = (Func(n) for n in ("grid", "blur_z", "blur_x", "blur_y"))
    value = edge[y * CELL + r[0] - CELL // 2, x * CELL + r[1] - CELL // 2]
    level = tl.clamp(i32(value * float(LEVELS) + 0.5), 0, LEVELS)
    grid[c, z, y, x] = f32(0.0)
    grid[c, level, y, x] += tl.select(c == 0, value, 1.0)
    blur_z[c, z, y, x] = _five(lambda d: grid[c, z + d, y, x])
    blur_x[c, z, y, x] = _five(lambda d: blur_z[c, z, y, x + d])
    blur_y[c, z, y, x] = _five(lambda d: blur_x[c, z, y + d, x])
    slices, out = Func("slices"), Func("out")
    depth = image[y, x] * float(LEVELS)
    zi = tl.clamp(i32(depth), 0, LEVELS)
    zf, yf, xf = depth - f32(zi), f32(y % CELL) * (1 / CELL), f32(x % CELL) * (1 / CELL)

    def row(dz: int, dy: int) -> Any:
        cells = [blur_y[c, zi + dz, y // CELL + dy, x // CELL + dx] for dx in (0, 1)]
        return _between(*cells, xf)

    planes = [_between(row(dz, 0), row(dz, 1), yf) for dz in (0, 1)]
    slices[c, y, x] = _between(*planes, zf)
    out[y, x] = slices[0, y, x] / slices[1, y, x]
    pipeline = Pipeline("bilateral", inputs=[image], outputs={out: [H, W]})

    s = Schedule(pipeline)
    s[blur_z].compute_root().reorder(y, z, x, c).parallel(y)
    s[grid].compute_at(blur_z, y)
    s[grid].update(0).reorder(y, x, "r_0", "r_1", c)
    for blur in (blur_x, blur_y):
        s[blur].compute_root().parallel(z)
    for blur in (blur_z, blur_x, blur_y):
        s[blur].split(x, "xo", "xi", LANES).vectorize("xi")
    s[out].parallel(y).split(x, "xo", "xi", LANES).vectorize("xi")
    return pipeline, s


def halide_bilateral(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    image = hl.ImageParam(hl.Float(32), 2, "image")
    edge = hl.BoundaryConditions.repeat_edge(image)
    hx, hy, hz, hc, xo, xi = (hl.Var(v) for v in ("x", "y", "z", "c", "xo", "xi"))
    r = hl.RDom([(0, CELL), (0, CELL)], "r")
    grid, blur_z, blur_x, blur_y = (hl.Func(n) for n in ("grid", "blur_z", "blur_x", "blur_y"))
    value = edge[hx * CELL + r.x - CELL // 2, hy * CELL + r.y - CELL // 2]
    level = hl.clamp(hl.i32(value * hl.f32(LEVELS) + hl.f32(0.5)), 0, LEVELS)
    grid[hx, hy, hz, hc] = hl.f32(0)
    grid[hx, hy, level, hc] += hl.select(hc == 0, value, hl.f32(1))
    blur_z[hx, hy, hz, hc] = _five(lambda d: grid[hx, hy, hz + d, hc], hl.f32)
    blur_x[hx, hy, hz, hc] = _five(lambda d: blur_z[hx + d, hy, hz, hc], hl.f32)
    blur_y[hx, hy, hz, hc] = _five(lambda d: blur_x[hx, hy + d, hz, hc], hl.f32)
    slices, out = hl.Func("slices"), hl.Func("out")
    depth = image[hx, hy] * hl.f32(LEVELS)
    zi = hl.clamp(hl.i32(depth), 0, LEVELS)
    step = hl.f32(1 / CELL)
    zf, yf, xf = depth - hl.f32(zi), hl.f32(hy % CELL) * step, hl.f32(hx % CELL) * step

    def row(dz: int, dy: int) -> Any:
        cells = [blur_y[hx // CELL + dx, hy // CELL + dy, zi + dz, hc] for dx in (0, 1)]
        return _between(*cells, xf)

    planes = [_between(row(dz, 0), row(dz, 1), yf) for dz in (0, 1)]
    slices[hx, hy, hc] = _between(*planes, zf)
    out[hx, hy] = slices[hx, hy, 0] / slices[hx, hy, 1]
    if by_hand:
        blur_z.compute_root().reorder(hc, hx, hz, hy).parallel(hy)
        grid.compute_at(blur_z, hy)
        grid.update(0).reorder(hc, r.y, r.x, hx, hy)
        for blur in (blur_x, blur_y):
            blur.compute_root().parallel(hz)
        for blur in (blur_z, blur_x, blur_y):
            blur.split(hx, xo, xi, LANES).vectorize(xi)
        out.parallel(hy).vectorize(hx, LANES)
    return out, [image]
