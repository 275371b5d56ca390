"""Vectorising and partitioning are loop IR to loop IR: the interpreter computes the same after."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tensorlang.backends import interpreter
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.partition import partition
from tensorlang.backends.c.program import translate
from tensorlang.backends.c.vectorize import vectorize
from tensorlang.ir.expr import Const
from tensorlang.ir.printer import print_program
from tensorlang.ir.stmt import For, If, LoopKind, Program, Store, walk
from tensorlang.ir.verify import verify
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

AVX2 = Machine(vector_bytes=32, has_fma=True, has_openmp=True)
MATMUL = """
program matmul(M, N, K; A: f32[M, K], B: f32[K, N]) -> C: f32[M, N]:
  for io in [0, (M + 7)//8):
    for jo in [0, (N + 15)//16):
      vectorized ii in [0, 8):
        vectorized ji in [0, 16):
          if (io*8 + ii < M) & (jo*16 + ji < N):
            C[io*8 + ii, jo*16 + ji] = 0.0:f32
      for reduction ko in [0, (K + 3)//4):
        vectorized ii in [0, 8):
          vectorized ji in [0, 16):
            vectorized reduction ki in [0, 4):
              let k = ko*4 + ki
              if (k < K) & (io*8 + ii < M) & (jo*16 + ji < N):
                C[io*8 + ii, jo*16 + ji] = C[io*8 + ii, jo*16 + ji] + A[io*8 + ii, k]*B[k, jo*16 + ji]
"""  # noqa: E501
BLUR = """
program blur(W; A: f32[W]) -> B: f32[W]:
  vectorized x in [0, W):
    B[x] = A[min(max(x - 1, 0), W - 1)] + A[x] + A[min(max(x + 1, 0), W - 1)]
"""
DOT = """
program dot(K; A: f32[K], B: f32[K]) -> C: f32[1]:
  C[0] = 0.0:f32
  vectorized reduction k in [0, K):
    C[0] = C[0] + A[k]*B[k]
"""
NESTED = """
program nested(K; A: f32[K]) -> C: f32[1]:
  C[0] = 0.0:f32
  for reduction ko in [0, (K + 47)//48):
    for reduction kio in [0, 2):
      vectorized reduction kii in [0, 32):
        let ki = kio*32 + kii
        if (ki < 48) & (ko*48 + ki < K):
          C[0] = C[0] + A[ko*48 + ki]
"""


def after(text: str, *, split: bool = True) -> Program:
    program = parse_program(text)
    body = vectorize(program.body, AVX2)
    made = replace(program, body=partition(body, AVX2) if split else body)
    verify(made)
    return made


def run(program: Program, arrays: list[np.ndarray], out: tuple[int, ...], **sizes: int):
    made = np.zeros(out, np.float32)
    interpreter.compile_program(program, Target("interpreter")).run(sizes, {}, arrays, [made])
    return made


def integers(*shape: int) -> np.ndarray:
    """Small whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(len(shape)).integers(-9, 9, shape).astype(np.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(17, 35, 11), (8, 16, 4), (1, 1, 1), (9, 1, 6)])
def test_a_tiled_matmul_keeps_its_values(m: int, n: int, k: int) -> None:
    a, b = integers(m, k), integers(k, n)
    assert (run(after(MATMUL), [a, b], (m, n), M=m, N=n, K=k) == a @ b).all()


@pytest.mark.parametrize("w", [1, 2, 7, 8, 9, 16, 17, 40])
def test_a_clamped_stencil_keeps_its_values(w: int) -> None:
    a = integers(w)
    padded = np.pad(a, 1, mode="edge")
    assert (run(after(BLUR), [a], (w,), W=w) == padded[:-2] + a + padded[2:]).all()


@pytest.mark.parametrize("k", [0, 1, 7, 8, 31, 32, 33, 100])
def test_a_dot_product_keeps_its_value(k: int) -> None:
    a, b = integers(k), integers(k)
    assert run(after(DOT), [a, b], (1,), K=k)[0] == a @ b


@pytest.mark.parametrize("k", [100, 96, 97, 49, 47, 1, 0])
def test_a_lane_whose_guards_leave_less_than_nothing_adds_nothing(k: int) -> None:
    # Of 100 the last block holds 4: its second half has min(32, 48 - 32, 100 - 96 - 32) = -28 left.
    a = integers(k)
    assert run(after(NESTED), [a], (1,), K=k)[0] == a.sum()


@pytest.mark.parametrize("text", [MATMUL, BLUR, DOT], ids=["matmul", "blur", "dot"])
def test_every_vectorized_loop_is_one_vector(text: str) -> None:
    extents = [
        s.extent for s in walk(after(text).body)
        if isinstance(s, For) and s.kind is LoopKind.VECTORIZED
    ]  # fmt: skip
    assert extents
    assert all(isinstance(e, Const) and e.value in (2, 4, 8) for e in extents)


def test_a_program_without_vectorized_loops_is_left_alone() -> None:
    program = parse_program("""
program p(N; A: f32[N]) -> B: f32[N]:
  for x in [0, N):
    B[x] = A[x]
""")
    assert partition(vectorize(program.body, AVX2), AVX2) is program.body


@pytest.mark.parametrize("text", [BLUR, DOT], ids=["blur", "dot"])
def test_what_vectorize_makes(text: str, golden: Callable[[str], None]) -> None:
    golden(print_program(after(text, split=False)))


def test_what_partition_makes(golden: Callable[[str], None]) -> None:
    golden(print_program(after(BLUR)))


GUARDED = """
program guarded(M, N; A: f32[N]) -> B: f32[N]:
  for z in [0, N):
    B[z] = 0.0:f32
  for x in [0, N):
    if x < M:
      let y = x + 2
      if y < N:
        B[x] = A[y]
"""


@pytest.mark.parametrize(("m", "n"), [(9, 6), (3, 6), (0, 4), (4, 1)])
def test_where_guards_in_each_other_and_under_a_name_hold_none_is_tested(m: int, n: int) -> None:
    made, a = after(GUARDED), integers(n)
    there = np.arange(n) < min(m, n - 2)
    assert (run(made, [a], (n,), M=m, N=n) == np.where(there, np.roll(a, -2), 0)).all()
    loops = [s for s in walk(made.body) if isinstance(s, For)]
    tested = [any(isinstance(inner, If) for inner in walk(loop)) for loop in loops]
    assert tested == [False, False, True]


TAILS = """
program tails(N, M; A: f32[N]) -> B: f32[N]:
  for z in [0, N):
    B[z] = 0.0:f32
  vectorized x in [0, N):
    if x < M:
      B[x] = VALUE
"""


@pytest.mark.parametrize("value", ["tanh(A[x])", "exp(A[min(max(x + 1, 0), N - 1)]) + A[x]"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 9), (8, 8), (9, 3), (31, 30), (0, 0), (5, 0)])
def test_what_no_vector_covers_of_a_function_runs_in_masked_lanes(
    value: str, n: int, m: int
) -> None:
    made, a = after(TAILS.replace("VALUE", value)), integers(n)
    serial = parse_program(TAILS.replace("VALUE", value).replace("vectorized", "for"))
    assert np.array_equal(run(made, [a], (n,), N=n, M=m), run(serial, [a], (n,), N=n, M=m))
    lanes = [s for s in walk(made.body) if isinstance(s, For) and s.kind is LoopKind.VECTORIZED]
    stores = [s for s in walk(made.body) if isinstance(s, Store)]
    assert all(any(s in walk(lane) for lane in lanes) for s in stores[1:])


@pytest.mark.parametrize("value", ["A[x]*A[x] + 1.0:f32", "sqrt(A[x])"])
def test_what_no_vector_covers_of_a_sum_runs_one_by_one(value: str) -> None:
    loops = [s for s in walk(after(TAILS.replace("VALUE", value)).body) if isinstance(s, For)]
    assert LoopKind.SERIAL in {s.kind for s in loops if s.var == "x"}


def test_a_masked_tail_is_two_instructions_in_c() -> None:
    program = parse_program(TAILS.replace("VALUE", "tanh(A[x])"))
    source = translate(program, AVX2, (True, True)).source
    tail = source[source.index("int tensorlang_tails") :]
    assert tail.count("tanh_f32x8(") == 4
    assert tail.count("store_where_f32x8(first_i32x8(") == 2
