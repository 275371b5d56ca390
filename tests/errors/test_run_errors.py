"""The whole message of what goes wrong when a program is compiled, run or differentiated."""

import numpy as np
import pytest

from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Target, Var, f32, i32, promise
from tensorlang import max as largest
from tensorlang.autodiff import gradients
from tensorlang.backends.c import toolchain
from tests.errors.mistakes import Mistakes

mistake = Mistakes()

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def _gather():
    a, at, f = Input("A", f32, [M]), Input("at", i32, [N]), Func("f")
    f[i] = a[promise(at[i], 0, M - 1)]
    return Pipeline("gather", inputs=[a, at], outputs={f: [N]})


def _shifted():
    a, f = Input("A", f32, [N]), Func("f")
    f[i] = a[i] + a[i + 1]
    return Pipeline("shifted", inputs=[a], outputs={f: [N]})


def _most():
    a, k, f = Input("A", f32, [M, N]), RDom("k", N), Func("f")
    f[i] = largest(a[i, k], over=k)
    return Pipeline("most", inputs=[a], outputs={f: [M]})


gather, shifted, most = _gather(), _shifted(), _most()
a, at = np.zeros(3, np.float32), np.array([0, 3], np.int32)


@mistake
def bound_not_met():
    s = Schedule(most)
    s["f"].bound(i, 0, 8)
    return most.compile(s, target="interpreter")(np.zeros((7, 2), np.float32))


@mistake
def bound_not_met__of_a_func_between():
    x, f, g = Input("x", f32, [N + 2]), Func("f"), Func("g")
    f[i] = x[i] * 2
    g[i] = f[i] + f[i + 2]
    p = Pipeline("p", inputs=[x], outputs={g: [N]})
    s = Schedule(p)
    s[f].compute_root().bound(i, 0, 8)
    return p.compile(s, target="interpreter")(np.zeros(9, np.float32))


@mistake
def no_variant():
    s = Schedule(most)
    s["f"].specialize(M % 8 == 0)
    s["f"].specialize_fail("a multiple of 8 rows")
    return most.compile(s, target="interpreter")(np.zeros((7, 2), np.float32))


@mistake
def no_atomic():
    s = Schedule(most)
    s["f"].update().atomic().gpu_blocks("k")
    return most.compile(s, target="triton")


@mistake
def unknown_target():
    return gather.compile(target="cuda")


@mistake
def unknown_arch():
    return Target("triton", arch="sm_99")


@mistake
def unknown_arch__of_a_cpu():
    return Target("c", arch="avx2")


@mistake
def no_architecture():
    return gather.compile(target="c").ptx


@mistake
def no_graph():
    return gather.compile(target="interpreter").graph(a, at)


@mistake
def no_c_compiler():
    return toolchain.find_toolchain()


@mistake
def promise_broken():
    return gather.compile(target="interpreter")(a, at)


@mistake
def promise_broken__in_the_reference():
    return gather.compile(target="reference")(a, at)


@mistake
def region_outside_array():
    return shifted.compile(target="interpreter")(a)


@mistake
def empty_reduction():
    return most.compile(target="interpreter")(np.zeros((2, 0), np.float32))


@mistake
def tile_too_large():
    s = Schedule(most)
    s["f"].split(i, "io", "ii", 2048).gpu_blocks("io").vectorize("ii")
    s["f"].update().split(i, "io", "ii", 2048).split("k", "ko", "ki", 2048)
    s["f"].update().reorder("io", "ko", "ii", "ki").gpu_blocks("io")
    s["f"].update().vectorize("ii").vectorize("ki")
    return most.compile(s, target="triton")


@mistake
def unknown_name__to_differentiate():
    return gradients(shifted, ["B"])


@mistake
def integer_gradient():
    return gradients(gather, ["at"])


@mistake
def no_gradient():
    x, f, r = Input("x", f32, [N]), Func("f"), RDom("r", N)
    f[()] = f32(0)
    f[()] = f[()] * f[()] + x[r]
    return gradients(Pipeline("squares", inputs=[x], outputs={f: []}), ["x"])


@pytest.mark.parametrize("name", mistake)
def test_the_message_of_what_goes_wrong_later(name, golden, monkeypatch):
    if name == "no-c-compiler":
        monkeypatch.setattr(toolchain, "c_compiler", lambda: None)
    if name in ("tile-too-large", "no-atomic"):
        pytest.importorskip("triton")
    mistake.check(name, golden)
