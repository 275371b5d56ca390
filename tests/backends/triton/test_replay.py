"""A warm call launches what a cold one does, with its own addresses, and refuses what it does."""

import gc
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import pytest
import torch

import tensorlang as tl
from tensorlang import Func, Input, Param, Pipeline, Schedule, Size, Var
from tensorlang.errors import ShapeError, TargetError
from tensorlang.kernel import Kernel
from tests.backends.triton.fake_gpu import FakeGpu, fake_gpu
from tests.backends.triton.running import compiled

__all__ = ["fake_gpu"]

N, i = Size("N"), Var("i")


def add(scale: bool = False) -> Kernel:
    """c = a + b, or a + s*b."""
    a, b, c = Input("a", tl.f32, [N]), Input("b", tl.f32, [N]), Func("c")
    c[i] = a[i] + (Param("s", tl.f32) * b[i] if scale else b[i])
    pipeline = Pipeline("add", inputs=[a, b], outputs={c: [N]})
    s = Schedule(pipeline)
    s[c].split(i, "io", "ii", 64).gpu_blocks("io").vectorize("ii")
    return pipeline.compile(s, target="triton")


def two_kernels() -> Kernel:
    """t = 2*a through a workspace, c = t + 1."""
    a, t, c = Input("a", tl.f32, [N]), Func("t"), Func("c")
    t[i] = a[i] * 2.0
    c[i] = t[i] + 1.0
    pipeline = Pipeline("two", inputs=[a], outputs={c: [N]})
    s = Schedule(pipeline)
    s[t].compute_root()
    for func in (t, c):
        s[func].split(i, "io", "ii", 64).gpu_blocks("io").vectorize("ii")
    return pipeline.compile(s, target="triton")


def test_a_warm_call_launches_what_the_cold_one_did(fake_gpu: FakeGpu) -> None:
    kernel, a, b, other = add(), *(torch.zeros(160) for _ in range(3))
    cold = kernel(a, b)
    warm = kernel(a, other)
    [(name, programs, arguments)] = fake_gpu.cold
    assert (name, programs) == ("add_c", 3)
    assert arguments[:3] == (a.data_ptr(), b.data_ptr(), cold.data_ptr())
    assert fake_gpu.warm == [
        (3, 5, (a.data_ptr(), other.data_ptr(), warm.data_ptr(), *arguments[3:]))
    ]
    assert warm.shape == (160,)
    assert warm.data_ptr() != cold.data_ptr()


def test_one_array_for_two_inputs_says_nothing_of_the_next_call(fake_gpu: FakeGpu) -> None:
    kernel, a, b = add(), torch.zeros(64), torch.zeros(64)
    kernel(a, a)
    kernel(a, b)
    assert fake_gpu.warm[0][2][:2] == (a.data_ptr(), b.data_ptr())


def test_new_sizes_compile_nothing_new(fake_gpu: FakeGpu) -> None:
    kernel = add()
    for n in (64, 128, 1024, 64):
        kernel(torch.zeros(n), torch.zeros(n))
    assert len(fake_gpu.compiled) == 1
    assert not fake_gpu.compiled[0][1].wide
    kernel(torch.zeros(63), torch.zeros(63))
    assert len(fake_gpu.compiled) == 2


def test_addresses_that_are_less_aligned_have_a_kernel_of_their_own(fake_gpu: FakeGpu) -> None:
    kernel, base, b = add(), torch.zeros(65), torch.zeros(64)
    kernel(base[:64], b)
    kernel(base[1:], b)
    assert [key.divisors[:3] for _, key in fake_gpu.compiled] == [(16, 16, 16), (4, 16, 16)]
    for a in (base[:64], base[1:]):
        fake_gpu.warm.clear()
        kernel(a, b)
        assert fake_gpu.warm[0][2][0] == a.data_ptr()
    assert len(fake_gpu.cold) == len(fake_gpu.compiled) == 2


def test_params_are_those_of_each_call(fake_gpu: FakeGpu) -> None:
    kernel, a = add(scale=True), torch.zeros(64)
    for s in (1.0, 2.0, 3.0):
        kernel(a, a, s=s)
    assert len(fake_gpu.cold) == 1
    assert [arguments[3] for _, _, arguments in fake_gpu.warm] == [2.0, 3.0]


def test_a_param_that_decides_what_is_launched_is_looked_at(fake_gpu: FakeGpu) -> None:
    text = """
program some(N; A: f32[N], p: i32) -> c: f32[N]:
  if 0:i32 < p:
    stage c.0:
      gpu_block c.i in [0, N):
        c[c.i] = A[c.i]
"""
    call = compiled(text).prepare({"N": 64}, "cpu")
    for p in (0, 1, 0, 1, 2):
        call({"p": p}, [torch.zeros(64)], [torch.zeros(64)])
    assert len(fake_gpu.cold) == 2
    assert len(fake_gpu.warm) == 1


def test_every_call_has_workspaces_of_its_own(fake_gpu: FakeGpu) -> None:
    kernel, a = two_kernels(), torch.zeros(64)
    for _ in range(3):
        kernel(a)
    assert len(fake_gpu.cold) == 2
    (_, _, first), (_, _, second) = fake_gpu.warm[:2]
    assert first[0] == a.data_ptr()
    assert first[1] in second[:2]


def test_memory_that_triton_wants_for_a_kernel_is_a_workspace(fake_gpu: FakeGpu) -> None:
    fake_gpu.scratch = 128
    kernel, a = two_kernels(), torch.zeros(200)
    for _ in range(2):
        kernel(a)
    replay = next(iter(kernel._plans.values())).run._aligned
    # One allocation, each part aligned as if it were one.
    assert replay.workspaces.offsets == (0, 1024, 1024 + 512)
    assert replay.workspaces.size == 1024 + 2 * 512
    assert len(fake_gpu.warm) == 2


def test_what_is_given_for_out_is_written(fake_gpu: FakeGpu) -> None:
    kernel, a, out = add(), torch.zeros(64), torch.zeros(64)
    for _ in range(2):
        assert kernel(a, a, out=out) is out
    assert fake_gpu.warm[0][2][2] == out.data_ptr()
    base = torch.zeros(80)
    with pytest.raises(ShapeError, match="out-overlaps"):
        kernel(base[:64], a, out=base[16:])


def test_a_warm_kernel_refuses_what_a_cold_one_does(fake_gpu: FakeGpu) -> None:
    a = torch.zeros(64)
    bad = {
        "argument-count": (a,),
        "wrong-dtype": (a, a.double()),
        "wrong-rank": (a, a.reshape(8, 8)),
        "size-conflict": (a, torch.zeros(65)),
        "mixed-kinds": (a, a.numpy()),
        "bad-layout": (a, a.to_sparse()),
        "not-an-array": (a, 1.0),
    }
    kernel = add()
    for _ in range(2):
        kernel(a, a)
        for code, arguments in bad.items():
            with pytest.raises(ShapeError, match=code):
                kernel(*arguments)
    with pytest.raises(ShapeError, match="out-not-writable"):
        kernel(a, a, out=torch.zeros(64, requires_grad=True))
    with pytest.raises(ShapeError, match="unknown-param"):
        kernel(a, a, s=1.0)


def test_another_current_device_does_not_take_the_short_way(fake_gpu: FakeGpu) -> None:
    kernel, a = add(), torch.zeros(64)
    kernel(a, a)
    entered: list[int] = []
    fake_gpu.device = 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tensorlang.backends.triton.gpu.on", _entering(entered))
        kernel(a, a)
    assert entered == [0]


def _entering(entered: list[int]) -> Callable[[int], AbstractContextManager[None]]:
    def on(device: int) -> AbstractContextManager[None]:
        entered.append(device)
        return nullcontext()

    return on


def test_a_cold_call_while_a_graph_is_captured_is_refused(fake_gpu: FakeGpu) -> None:
    kernel, a = add(), torch.zeros(64)
    fake_gpu.is_capturing = True
    with pytest.raises(TargetError, match="cold-in-capture"):
        kernel(a, a)
    fake_gpu.is_capturing = False
    kernel(a, a)
    fake_gpu.is_capturing = True
    kernel(a, a)
    assert len(fake_gpu.warm) == 1


def test_a_profiler_sees_every_launch(fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, a = add(), torch.zeros(64)
    kernel(a, a)
    monkeypatch.setattr("tensorlang.backends.triton.replay.is_watched", lambda: True)
    kernel(a, a)
    assert (len(fake_gpu.cold), len(fake_gpu.warm)) == (2, 0)


def test_an_empty_output_launches_nothing(fake_gpu: FakeGpu) -> None:
    kernel = add()
    for _ in range(2):
        assert kernel(torch.zeros(0), torch.zeros(0)).shape == (0,)
    assert not fake_gpu.cold


def test_a_warm_call_is_a_few_python_functions(fake_gpu: FakeGpu) -> None:
    kernel, a, b = add(), torch.zeros(64), torch.zeros(64)
    kernel(a, b)
    entered: list[str] = []

    def look(frame, event, argument) -> None:
        if event == "call":
            entered.append(frame.f_code.co_name)

    gc.disable()
    sys.setprofile(look)
    kernel(a, b)
    sys.setprofile(None)
    gc.enable()
    # Two for the fake's own current_device and current_stream, one for its launch.
    assert len(entered) <= 12, entered


def test_numpy_arrays_run_interpreted() -> None:
    kernel, a = add(), np.arange(70, dtype=np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(kernel(a, a), 2 * a)
