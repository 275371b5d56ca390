"""`cache("streaming")` in C: vectors that are aligned are stored past the caches, with a fence."""

import numpy as np
import pytest

from tensorlang import Func, Input, Kernel, Pipeline, Schedule, Size, Var, f32
from tensorlang.backends.c import find_toolchain

pytestmark = pytest.mark.cc

N, M = Size("N"), Size("M")
FENCE = "__builtin_ia32_sfence();"


def doubled(*, parallel: bool = False, vector: bool = True, workspace: bool = False) -> Kernel:
    """out = 2*a + 1, and what is streamed is out, or a workspace of 2*a at root."""
    i, j, a, out, f = Var("i"), Var("j"), Input("a", f32, [N, M]), Func("out"), Func("f")
    f[i, j] = a[i, j] * 2
    out[i, j] = f[i, j] + 1
    s = Schedule(p := Pipeline("doubled", inputs=[a], outputs={out: [N, M]}))
    s[f].compute_root().vectorize(j) if workspace else s[f].compute_inline()
    streamed = s[f] if workspace else s[out]
    streamed.cache("streaming")
    if vector:
        s[out].vectorize(j)
    if parallel:
        s[out].parallel(i)
    return p.compile(s, target="c")


def aligned(shape: tuple[int, int], off: int) -> np.ndarray:
    """An array whose first element is `off` bytes behind a multiple of 64."""
    size = shape[0] * shape[1] * 4
    room = np.zeros(size + 128, np.uint8)
    start = -room.ctypes.data % 64 + off
    return room[start : start + size].view(np.float32).reshape(shape)


@pytest.mark.parametrize("off", [0, 4, 16, 32])
@pytest.mark.parametrize("shape", [(5, 64), (3, 7), (4, 37), (1, 8)])
@pytest.mark.parametrize("parallel", [False, True])
def test_values_stay_whatever_is_aligned(shape: tuple[int, int], off: int, parallel: bool) -> None:
    a, out = np.random.default_rng(0).random(shape, np.float32), aligned(shape, off)
    doubled(parallel=parallel)(a, out=out)
    assert np.array_equal(out, a * 2 + 1)


def test_each_thread_ends_with_a_fence_and_so_does_the_function() -> None:
    if not find_toolchain().machine.has_openmp:
        pytest.skip("the C compiler has no OpenMP")
    kernel = doubled(parallel=True)
    inside, _, after = kernel.source.partition("#pragma omp for nowait")[2].partition("\n    }\n")
    assert "stream_f32x" in inside
    assert FENCE in inside
    assert FENCE in after
    assert "stream" not in "".join(kernel.notes)


def test_a_workspace_is_streamed_too() -> None:
    kernel = doubled(workspace=True)
    assert kernel.source.count("stream_f32x") == 2
    a = np.random.default_rng(1).random((9, 33), np.float32)
    assert np.array_equal(kernel(a), a * 2 + 1)


def test_what_is_not_stored_in_vectors_is_not_streamed_and_says_so() -> None:
    kernel = doubled(vector=False)
    assert FENCE not in kernel.source
    assert "the hint cache=streaming of 'out' is ignored by the target c" in kernel.notes
