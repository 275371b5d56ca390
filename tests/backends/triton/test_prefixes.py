"""Scans over tiles: their text, and that they are right."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Target, Var, f32, i64
from tensorlang.autodiff import gradients

M, N = Size("M"), Size("N")
i, j, k = Var("i"), Var("j"), RDom("k", N)
SHAPES = [(3, 1), (5, 7), (4, 16), (2, 35), (2, 0)]
SCANS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "cumsum": (tl.cumsum, np.cumsum),
    "cumprod": (tl.cumprod, np.cumprod),
    "cummax": (tl.cummax, np.maximum.accumulate),
}


def scan(kind: str) -> Pipeline:
    x, y = Input("x", f32, [M, N]), Func("y")
    y[i, k] = SCANS[kind][0](x[i, k], over=k)
    return Pipeline(kind, inputs=[x], outputs={y: [M, N]})


def whole_rows(s: Schedule) -> None:
    s["y"].update(0).gpu_blocks(i).vectorize("k")


def tiles(s: Schedule) -> None:
    update = s["y"].update(0).split("k", "ko", "ki", 8).split(i, "io", "ii", 4)
    update.reorder("io", "ko", "ki", "ii").gpu_blocks("io").vectorize("ki").vectorize("ii")
    update.pipeline("ko", 3)


def tiles_of_no_power_of_two(s: Schedule) -> None:
    s["y"].update(0).split("k", "ko", "ki", 6).gpu_blocks(i).vectorize("ki")


def a_row_inside_a_tile(s: Schedule) -> None:
    update = s["y"].update(0).split("k", "ko", "ki", 8).split(i, "io", "ii", 4)
    update.reorder("io", "ko", "ii", "ki").gpu_blocks("io").vectorize("ki")


SCHEDULES = (whole_rows, tiles, tiles_of_no_power_of_two, a_row_inside_a_tile)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", SCANS)
def test_scans_over_tiles_are_right(kind: str, schedule: Callable[[Schedule], None]) -> None:
    p = scan(kind)
    s = Schedule(p)
    schedule(s)
    kernel = p.compile(s, target="triton")
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        x = rng.normal(size=shape).astype(np.float32)
        want = SCANS[kind][1](x, axis=1) if shape[1] else x
        got = np.asarray(kernel(torch.from_numpy(x)))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)


@pytest.mark.parametrize("schedule", [whole_rows, tiles, tiles_of_no_power_of_two])
def test_the_text_of_a_scan(schedule: Callable[[Schedule], None], golden: Any) -> None:
    p = scan("cumsum")
    s = Schedule(p)
    schedule(s)
    golden(p.compile(s, target=Target("triton", arch="sm_90")).source, schedule.__name__)


def test_a_prefix_that_goes_through_memory_is_noted() -> None:
    p = scan("cumsum")
    s = Schedule(p)
    tiles_of_no_power_of_two(s)
    (note,) = p.compile(s, target=Target("triton", arch="sm_90")).notes
    assert "a power of two" in note


def affine() -> Pipeline:
    x, z, y, out = Input("x", i64, [M, N]), Input("z", i64, [M, N]), Func("y"), Func("out")
    r = RDom("k", (1, N - 1))
    y[i, j] = (x[i, j], z[i, j])
    y[i, r] = (y[i, r - 1][0] * x[i, r], y[i, r - 1][1] * x[i, r] + z[i, r])
    out[i, j] = y[i, j][0] + y[i, j][1] * 3
    return Pipeline("affine", inputs=[x, z], outputs={out: [M, N]})


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_scan_of_tuples_is_exact(schedule: Callable[[Schedule], None]) -> None:
    p = affine()
    s = Schedule(p)
    s["y"].compute_root()
    schedule(s)
    kernel = p.compile(s, target="triton")
    rng = np.random.default_rng(0)
    for shape in SHAPES[:4]:
        a, b = (rng.integers(-3, 4, size=shape) for _ in range(2))
        x, y = a.copy(), b.copy()
        for t in range(1, shape[1]):
            x[:, t], y[:, t] = x[:, t - 1] * a[:, t], y[:, t - 1] * a[:, t] + b[:, t]
        got = kernel(torch.from_numpy(a), torch.from_numpy(b))
        np.testing.assert_array_equal(np.asarray(got), x + 3 * y)


def test_a_scan_backwards_has_its_lanes_in_reverse(golden: Any) -> None:
    p = gradients(scan("cumsum"), ["x"])
    s = tl.autoschedule(p, "triton", {"M": 64, "N": 100})
    golden(p.compile(s, target=Target("triton", arch="sm_90")).source)
    kernel = p.compile(s, target="triton")
    for shape in SHAPES[:4]:
        g = torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float32))
        want = torch.flip(torch.cumsum(torch.flip(g, [1]), 1), [1])
        torch.testing.assert_close(kernel(g), want)


def test_a_scan_backwards_over_tiles_carries_what_comes_after() -> None:
    p = gradients(scan("cumsum"), ["x"])
    (name,) = (f.name for f in p.algorithm.funcs if len(f.definitions) == 2)
    s = Schedule(p)
    s[name].compute_root().update(0).split("k", "ko", "ki", 8).gpu_blocks(i).vectorize("ki")
    kernel = p.compile(s, target="triton")
    assert "carry" in kernel.source
    for shape in SHAPES[:4]:
        g = torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float32))
        want = torch.flip(torch.cumsum(torch.flip(g, [1]), 1), [1])
        torch.testing.assert_close(kernel(g), want)
