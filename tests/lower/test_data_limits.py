"""A rolling loop runs from the first to the last point that data leaves to any row of its tile."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, exp, f32, i32, max, sum
from tensorlang.ir.printer import print_program
from tensorlang.ir.types import index

M, N = Size("M"), Size("N")
i, j, d = Var("i"), Var("j"), Var("d")
TARGETS = ["interpreter", pytest.param("c", marks=pytest.mark.cc), "triton"]
WIDTH = 5


def weighted() -> Pipeline:
    """O[i, d] = sum_j softmax_j(S[i, j]) V[j, d] over first[i] <= j < last[i]"""
    s, v = Input("S", f32, [M, N]), Input("V", f32, [N, WIDTH])
    first, last = Input("first", i32, [M]), Input("last", i32, [M])
    m, p, total, out = Func("m"), Func("p"), Func("l"), Func("O")
    a, b, c = (
        RDom(name, N).where(Var(name) >= index(first[i])).where(Var(name) < index(last[i]))
        for name in "abc"
    )
    m[i] = max(s[i, a], over=a, initial=-np.inf)
    p[i, j] = exp(s[i, j] - m[i])
    total[i] = sum(p[i, b], over=b)
    out[i, d] = sum(p[i, c] * v[c, d], over=c) / total[i]
    return Pipeline("weighted", inputs=[s, v, first, last], outputs={out: [M, WIDTH]})


def in_tiles(p: Pipeline, target: str) -> Schedule:
    s = Schedule(p)
    s["O"].split(i, "io", "ii", 4)
    s["O_sum"].compute_at("O", "io")
    step = s["O_sum"].update().split("c", "co", "ci", 8).reorder("co", i, d, "ci")
    s["m"].rolling_update("O_sum", "co")
    if target == "triton":
        s["O"].gpu_blocks("io").vectorize("ii").vectorize(d)
        for name in ("m", "l", "O_sum"):
            s[name].vectorize(i).update().vectorize(i)
        s["O_sum"].vectorize(d)
        step.vectorize(d)
    return s


def expected(s, v, first, last):
    at = np.arange(s.shape[1])
    keep = (at >= first[:, None]) & (at < last[:, None])
    with np.errstate(invalid="ignore"):
        e = np.exp(np.where(keep, s, -np.inf) - np.where(keep, s, -np.inf).max(1, keepdims=True))
        return e @ v / e.sum(1, keepdims=True)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_see_the_points_that_data_leaves_them(target):
    """Rows with no point, and limits beyond the domain, also at both ends of 32 bits."""
    p = weighted()
    kernel = p.compile(in_tiles(p, target), target)
    rng = np.random.default_rng(0)
    s, v = (rng.standard_normal(n).astype(np.float32) for n in ((11, 45), (45, WIDTH)))
    first = np.array([17, 20, 18, 19, 0, 9, 44, -(2**31), 3, 30, 7], np.int32)
    last = np.array([25, 24, 21, 20, 45, 2**31 - 1, 45, 1, 3, 12, 8], np.int32)
    arrays = (s, v, first, last)
    if target == "triton":
        torch = pytest.importorskip("torch")
        arrays = tuple(map(torch.from_numpy, arrays))
    got = np.asarray(kernel(*arrays))
    np.testing.assert_allclose(got, expected(s, v, first, last), rtol=4e-6, atol=4e-6)


def test_the_loop_is_bounded_by_what_the_rows_of_its_tile_need(golden):
    golden(print_program(weighted().lower(in_tiles(weighted(), "c"))))
