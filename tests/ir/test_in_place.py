"""One array as an Input and an output: where it is right, and where it is refused."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, ShapeError, Size, Var, f32, sum
from tensorlang.ir.in_place import hazard_of

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")
TARGETS = ("reference", "interpreter", pytest.param("c", marks=pytest.mark.cc), "triton")


def axpy() -> Pipeline:
    x, y, z = Input("x", f32, [M, N]), Input("y", f32, [N]), Func("z")
    z[i, j] = x[i, j] * 2 + y[j]
    return Pipeline("axpy", inputs=[x, y], outputs={z: [M, N]})


def tiled(p: Pipeline) -> Schedule:
    s = Schedule(p)
    s["z"].tile(i, j, "io", "jo", "ii", "ji", 4, 8).gpu_blocks("io", "jo")
    s["z"].vectorize("ii").vectorize("ji")
    return s


def array_of(a, target):
    if target != "triton":
        return a
    torch = pytest.importorskip("torch")
    return torch.from_numpy(a)


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_is_replaced_element_by_element(target):
    p = axpy()
    rng = np.random.default_rng(0)
    a, y = (rng.standard_normal(n).astype(np.float32) for n in ((7, 19), 19))
    expected = a * 2 + y
    x, y = array_of(a.copy(), target), array_of(y, target)
    assert p.compile(tiled(p), target)(x, y, out=x) is x
    assert np.array_equal(np.asarray(x), expected)


@pytest.mark.cc
def test_c_does_not_tell_its_compiler_that_the_two_are_apart():
    p = axpy()
    kernel = p.compile(target="c")
    x = np.ones((3, 4), np.float32)
    kernel(x, np.zeros(4, np.float32), out=x)
    assert "restrict" in kernel.source
    assert (x == 2).all()


def shifted(z, x):
    z[i] = x[i + 1] + x[i]


def reversed_(z, x):
    z[i] = x[N - i]


def updated(z, x):
    r = RDom("r", N)
    z[i] = x[i]
    z[r] = z[r] + 1


def summed(z, x):
    r = RDom("r", N)
    z[i] = sum(x[r], over=r)


HAZARDS = {
    shifted: "at other points",
    reversed_: "at other points",
    updated: "in 2 steps",
    summed: "in 2 steps",
}


@pytest.mark.parametrize("define", HAZARDS)
def test_what_could_be_replaced_before_it_is_read_is_refused(define):
    x, z = Input("x", f32, [N + 1]), Func("z")
    define(z, x)
    p = Pipeline("p", inputs=[x], outputs={z: [N + 1 if define is not shifted else N]})
    why = hazard_of(p.lower(), "x", "z")
    assert why is not None
    assert HAZARDS[define] in why


def test_another_reader_is_a_hazard():
    x, f, z = Input("x", f32, [N]), Func("f"), Func("z")
    z[i] = x[i] + 1
    f[i] = x[N - 1 - i]
    p = Pipeline("p", inputs=[x], outputs={z: [N], f: [N]})
    a, other = np.ones(4, np.float32), np.empty(4, np.float32)
    with pytest.raises(ShapeError, match="out-overlaps") as caught:
        p.compile(target="interpreter")(a, out=(a, other))
    assert "'f' reads 'x' as well" in caught.value.why


def test_points_that_a_schedule_computes_twice_are_a_hazard():
    p = axpy()
    s = Schedule(p)
    s["z"].split(j, "jo", "ji", 8, tail="shift_inwards")
    assert hazard_of(p.lower(), "x", "z") is None
    assert "twice" in (hazard_of(p.lower(s), "x", "z") or "")


def test_an_array_that_only_overlaps_is_refused():
    p = axpy()
    a = np.ones((4, 4), np.float32)
    with pytest.raises(ShapeError, match="out-overlaps"):
        p.compile(target="interpreter")(a[1:], np.ones(4, np.float32), out=a[:3])
