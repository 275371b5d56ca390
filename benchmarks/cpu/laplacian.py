"""Local Laplacian filter: pyramids of K remapped copies of an image, mixed by brightness.

A hundred stages from four lines, so the algorithm is written once, over what the two languages call
alike; only the order of indices and the schedules differ.  See Paris, Hasinoff and Kautz 2011.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from benchmarks.cpu.strips import contenders_of
from tensorlang import Func, Input, Pipeline, Schedule, Size, Var

LEVELS, COPIES, LANES = 6, 8, 8
"""Of the pyramids; and of the remapped image, at as many brightnesses."""
ALPHA = 1.0 / (COPIES - 1)


def cases(place: Place) -> list[Case]:
    h, w = (70, 90) if place.dry else (1536, 2560)
    return [
        Case(
            name=f"local_laplacian {w}x{h} f32",
            inputs=lambda at: (at.pixels(h, w, dtype=np.float32, high=1.0),),
            reference=lambda image: laplacian_of(image.astype(np.float64)),
            contenders=contenders_of(laplacian, halide_laplacian, laplacian_of, (h, w)),
            modes=("wall",),
            tolerance=1e-4,
            bytes=8.0 * h * w,
        )
    ]


@dataclass(frozen=True)
class Language:
    """What the algorithm needs: a Func by name, its element at (k, y, x) or (y, x), and numbers."""

    func: Callable[[str], Any]
    index: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    real: Callable[[Any], Any]
    whole: Callable[[Any], Any]
    clamp: Callable[[Any, int, int], Any]
    exp: Callable[[Any], Any]

    def at(self, func: Any, *place: Any) -> Any:
        return func[self.index(place)]

    def define(self, name: str, place: tuple[Any, ...], value: Any) -> Any:
        func = self.func(name)
        func[self.index(place)] = value
        return func


Stages = dict[str, list[Any]]
"""Funcs by what they are, a list of one for each level."""


def algorithm(lang: Language, edge: Any, k: Any, y: Any, x: Any) -> Stages:
    """The Funcs; `edge` is the image, extended past its borders."""
    real, at = lang.real, lang.at
    gray = lang.define("gray", (y, x), at(edge, y, x))
    offset = at(gray, y, x) - real(k) * real(ALPHA)
    bump = real(0.2) * offset * lang.exp(real(-12.5) * offset * offset)
    copies = [lang.define("copies_0", (k, y, x), at(gray, y, x) + bump)]
    image, halves = [gray], []
    for level in range(1, LEVELS):
        copies.append(_down(lang, f"copies_{level}", copies[-1], (k,), y, x, halves))
        image.append(_down(lang, f"image_{level}", image[-1], (), y, x, halves))
    out: list[Any] = []
    for level in reversed(range(LEVELS)):
        brightness = at(image[level], y, x) * real(COPIES - 1)
        below = lang.clamp(lang.whole(brightness), 0, COPIES - 2)
        part = brightness - real(below)

        def detail(k: Any, level: int = level) -> Any:
            fine = at(copies[level], k, y, x)
            return fine - _up(lang, copies[level + 1], (k,), y, x) if level + 1 < LEVELS else fine

        value = detail(below) * (real(1.0) - part) + detail(below + 1) * part
        if out:
            value = _up(lang, out[-1], (), y, x) + value
        out.append(lang.define(f"out_{level}", (y, x), value))
    return {"copies": copies, "image": image, "halves": halves, "out": out[::-1]}


def _down(
    lang: Language, name: str, f: Any, k: tuple[Any, ...], y: Any, x: Any, halves: list[Any]
) -> Any:
    """Every other row and column of f, weighted 1 3 3 1."""

    def weighted(a: Any, b: Any, c: Any, d: Any) -> Any:
        return (a + lang.real(3.0) * (b + c) + d) * lang.real(0.125)

    rows = [lang.at(f, *k, 2 * y + d, x) for d in (-1, 0, 1, 2)]
    half = lang.define(f"{name}_rows", (*k, y, x), weighted(*rows))
    halves.append(half)
    columns = [lang.at(half, *k, y, 2 * x + d) for d in (-1, 0, 1, 2)]
    return lang.define(name, (*k, y, x), weighted(*columns))


def _up(lang: Language, f: Any, k: tuple[Any, ...], y: Any, x: Any) -> Any:
    """f between its points: three quarters of the nearer one and a quarter of the other."""

    def mixed(near: Any, far: Any) -> Any:
        return lang.real(0.75) * near + lang.real(0.25) * far

    def row(at_y: Any) -> Any:
        far_x = (x // 2) - 1 + 2 * (x % 2)
        return mixed(lang.at(f, *k, at_y, x // 2), lang.at(f, *k, at_y, far_x))

    return mixed(row(y // 2), row((y // 2) - 1 + 2 * (y % 2)))


def laplacian() -> tuple[Pipeline, Schedule]:
    H, W = Size("H"), Size("W")
    source = Input("source", tl.f32, [H, W])
    lang = Language(Func, tuple, tl.f32, tl.i32, tl.clamp, tl.exp)
    stages = algorithm(lang, tl.repeat_edge(source), Var("k"), Var("y"), Var("x"))
    pipeline = Pipeline("laplacian", inputs=[source], outputs={stages["out"][0]: [H, W]})
    s = Schedule(pipeline)
    for kind, funcs in stages.items():
        for func in funcs:
            if kind == "halves":
                home = func.name.removesuffix("_rows")
                s[func].compute_at(home, "y")
            else:
                s[func].compute_root().parallel("k" if func.name.startswith("copies") else "y")
            s[func].split("x", "xo", "xi", LANES).vectorize("xi")
    s["copies_0"].compute_inline()
    return pipeline, s


def halide_laplacian(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    source = hl.ImageParam(hl.Float(32), 2, "source")
    edge = hl.BoundaryConditions.repeat_edge(source)
    k, y, x = hl.Var("k"), hl.Var("y"), hl.Var("x")
    lang = Language(hl.Func, lambda place: place[::-1], hl.f32, hl.i32, hl.clamp, hl.exp)
    stages = algorithm(lang, edge, k, y, x)
    homes = [*stages["copies"][1:], *stages["image"][1:]]
    by_name = {func.name(): func for func in homes}
    for kind, funcs in stages.items() if by_hand else ():
        for func in funcs:
            if kind == "halves":
                func.compute_at(by_name[func.name().removesuffix("_rows")], y)
            elif func.name() == "copies_0":
                continue
            else:
                func.compute_root().parallel(k if func.name().startswith("copies") else y)
            func.vectorize(x, LANES)
    return stages["out"][0], [source]


def laplacian_of(image: Any) -> Any:
    """By whole arrays, on a border wide enough that no level sees its end."""
    border = 4 << LEVELS
    h, w = image.shape
    full = [2 * border + -(-n // (1 << LEVELS)) * (1 << LEVELS) for n in (h, w)]
    wide = np.pad(
        image, [(border, f - border - n) for f, n in zip(full, (h, w), strict=True)], "edge"
    )
    number = image.dtype.type
    copies = []
    for k in range(COPIES):
        offset = wide - number(k * ALPHA)
        copies.append(_pyramid(wide + number(0.2) * offset * np.exp(number(-12.5) * offset**2)))
    inner, out = _pyramid(wide), None
    for level in reversed(range(LEVELS)):
        brightness = inner[level] * number(COPIES - 1)
        below = np.clip(brightness.astype(np.int64), 0, COPIES - 2)
        part = brightness - below
        details = np.stack([_detail(c, level) for c in copies])
        low = np.take_along_axis(details, below[None], 0)[0]
        high = np.take_along_axis(details, below[None] + 1, 0)[0]
        value = low * (1 - part) + high * part
        out = value if out is None else _upsampled(out) + value
    return out[border : border + h, border : border + w]


def _pyramid(image: Any) -> list[Any]:
    levels = [image]
    for _ in range(1, LEVELS):
        levels.append(_downsampled(_downsampled(levels[-1]).T).T)
    return levels


def _downsampled(a: Any) -> Any:
    before, after = np.concatenate([a[:1], a[1:-2:2]]), np.concatenate([a[2::2], a[-1:]])
    three, eighth = a.dtype.type(3), a.dtype.type(0.125)
    return (before + three * (a[::2] + a[1::2]) + after) * eighth


def _upsampled(a: Any) -> Any:
    for _ in range(2):
        near = np.repeat(a, 2, axis=0)
        far = np.empty_like(near)
        far[::2], far[1::2] = np.concatenate([a[:1], a[:-1]]), np.concatenate([a[1:], a[-1:]])
        a = (a.dtype.type(0.75) * near + a.dtype.type(0.25) * far).T
    return a


def _detail(pyramid: list[Any], level: int) -> Any:
    fine = pyramid[level]
    return fine - _upsampled(pyramid[level + 1]) if level + 1 < LEVELS else fine
