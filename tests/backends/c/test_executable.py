"""Calls of compiled programs: layouts, memory, threads."""

import threading

import numpy as np
import pytest

from tensorlang.backends.c import compile_program
from tensorlang.backends.c.addresses import address_of
from tensorlang.backends.executable import Executable
from tensorlang.errors import ShapeError
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

pytestmark = pytest.mark.cc

DOUBLE = """
program double(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[x]*2.0:f32
"""


def compiled(text: str) -> Executable:
    return compile_program(parse_program(text), Target("c"))


def test_a_workspace_that_is_refused_is_a_memory_error() -> None:
    kernel = compiled("""
program p(N) -> B: f32[1]:
  allocate T: f32[N]
  T[N - 1] = 1.0:f32
  B[0] = T[N - 1]
""")
    out = np.zeros(1, np.float32)
    with pytest.raises(MemoryError, match="p: no memory"):
        kernel.run({"N": 1 << 50}, {}, [], [out])
    kernel.run({"N": 10}, {}, [], [out])
    assert out[0] == 1


def test_a_refusal_inside_a_parallel_loop_is_a_memory_error_too() -> None:
    kernel = compiled("""
program p(N) -> B: f32[4]:
  parallel i in [0, 4):
    allocate T: f32[N]
    T[N - 1] = 1.0:f32
    B[i] = T[N - 1]
""")
    with pytest.raises(MemoryError):
        kernel.run({"N": 1 << 50}, {}, [], [np.zeros(4, np.float32)])


def test_a_stride_of_no_whole_element_is_a_shape_error() -> None:
    records = np.zeros(7, np.dtype([("a", np.uint8), ("b", "<f4")]))
    with pytest.raises(ShapeError, match=r"stride-not-whole.*stride of 5 bytes"):
        compiled(DOUBLE).run({"N": 7}, {}, [records["b"]], [np.zeros(7, np.float32)])


def test_strides_of_dimensions_of_one_element_do_not_matter() -> None:
    kernel = compiled("""
program p(N, M; A: f32[N, M]) -> B: f32[N, M]:
  for i in [0, N):
    vectorized j in [0, M):
      B[i, j] = A[i, j] + 1.0:f32
""")
    a = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (1, 1), (3, 5))
    out = np.zeros((1, 1), np.float32)
    kernel.run({"N": 1, "M": 1}, {}, [a], [out])
    assert out[0, 0] == 2


def test_one_kernel_runs_in_many_threads_at_once() -> None:
    kernel = compiled(DOUBLE)
    inputs = [np.full(1000 + k, k, np.float32) for k in range(8)]
    outputs = [np.zeros_like(a) for a in inputs]

    def work(k: int) -> None:
        for _ in range(50):
            kernel.run({"N": inputs[k].size}, {}, [inputs[k]], [outputs[k]])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((b == 2 * k).all() for k, b in enumerate(outputs))


def test_addresses_are_what_numpy_says() -> None:
    a = np.zeros((5, 6))
    for view in (a, a[2:, 3:], a[::-1, ::-2], a.T, np.broadcast_to(a[0], (3, 6)), a[:0]):
        assert address_of(view) == view.__array_interface__["data"][0]


def test_params_arrive_in_their_dtype() -> None:
    kernel = compiled("""
program p(h: f16, u: u64, b: bool) -> B: f16[1], C: u64[1], D: bool[1]:
  B[0] = h
  C[0] = u
  D[0] = b
""")
    outputs = [np.zeros(1, t) for t in (np.float16, np.uint64, np.bool_)]
    kernel.run({}, {"h": 0.1, "u": 2**64 - 3, "b": True}, [], outputs)
    assert [o[0] for o in outputs] == [np.float16(0.1), 2**64 - 3, True]


def test_names_of_c_and_of_the_prelude_may_be_used() -> None:
    kernel = compiled("""
program main(int, N; for_: f32; exp_f32x8: f32[N], float: f32[N]) -> restrict: f32[N]:
  vectorized double.x in [0, N):
    restrict[double.x] = exp(exp_f32x8[double.x]) + float[double.x]*for_ + f32(int)
""")
    a = np.linspace(0, 1, 19, dtype=np.float32)
    out = np.zeros_like(a)
    kernel.run({"int": 3, "N": 19}, {"for_": 2.0}, [a, a], [out])
    np.testing.assert_allclose(out, np.exp(a) + 2 * a + 3, rtol=1e-6)
