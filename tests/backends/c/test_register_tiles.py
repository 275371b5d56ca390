"""Small buffers in registers: no memory where their guards hold, and the same values anywhere."""

from dataclasses import replace

import numpy as np
import pytest

from tensorlang.backends import interpreter
from tensorlang.backends.c import compile_program
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.partition import partition
from tensorlang.backends.c.program import translate
from tensorlang.backends.c.reuse import reuse_names
from tensorlang.backends.c.vectorize import vectorize
from tensorlang.ir.printer import print_program
from tensorlang.ir.stmt import Program
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

AVX2 = Machine(vector_bytes=32, has_fma=True, has_openmp=True)
MATMUL = """
program matmul(M, N, K; A: f32[M, K], B: f32[K, N]) -> D: f32[M, N]:
  for io in [0, (M + 1)//2):
    for jo in [0, (N + 15)//16):
      allocate C: f32[io*2 : +2, jo*16 : +16]
      stage C.0:
        for i in [io*2, +2):
          vectorized j in [jo*16, +16):
            if (i < M) & (j < N):
              C[i, j] = 0.0:f32
      stage C.1:
        for reduction k in [0, K):
          vectorized j in [jo*16, +16):
            if j < N:
              C[io*2, j] = C[io*2, j] + A[io*2, k]*B[k, j]
          if io*2 + 1 < M:
            vectorized j in [jo*16, +16):
              if j < N:
                C[io*2 + 1, j] = C[io*2 + 1, j] + A[io*2 + 1, k]*B[k, j]
      stage D.0:
        for ii in [0, 2):
          vectorized ji in [0, 16):
            let j = jo*16 + ji
            if (io*2 + ii < M) & (j < N):
              D[io*2 + ii, j] = C[io*2 + ii, j] + 1.0:f32
"""
READ_BY_DATA = """
program p(N; A: f32[N], I: i32[N]) -> B: f32[N]:
  for o in [0, N//8):
    allocate t: f32[0 : +8]
    stage t.0:
      vectorized i in [0, 8):
        t[i] = A[o*8 + i]
    stage B.0:
      vectorized i in [0, 8):
        B[o*8 + i] = t[index(I[o*8 + i])]
"""


def shaped(text: str) -> Program:
    program = parse_program(text)
    body = partition(vectorize(reuse_names(program.body), AVX2), AVX2)
    return replace(program, body=body)


def run(program: Program, target: str, arrays: list[np.ndarray], out: tuple[int, ...]):
    made = np.full(out, np.nan, np.float32)
    sizes = {"M": out[0], "N": out[-1], "K": arrays[0].shape[-1]}
    compiler = interpreter.compile_program if target == "interpreter" else compile_program
    sizes = {size.name: sizes[size.name] for size in program.sizes}
    compiler(program, Target(target)).run(sizes, {}, arrays, [made])
    return made


def test_a_tile_that_fits_the_registers_is_nowhere_in_memory() -> None:
    source = translate(parse_program(MATMUL), AVX2, [True] * 3).source
    fast, *slow = source.split("float C[32]")
    assert fast.count("f32x8 C_held") == 4
    assert "f32x8(C +" not in fast
    assert all("store_f32x8(C +" in part for part in slow)


@pytest.mark.cc
@pytest.mark.parametrize(("m", "n", "k"), [(4, 32, 3), (5, 33, 2), (1, 7, 1), (2, 16, 0)])
@pytest.mark.parametrize("target", ["interpreter", "c"])
def test_a_tile_keeps_its_values(target: str, m: int, n: int, k: int) -> None:
    whole = np.random.default_rng(m).integers(-9, 9, (m + n, m + n + k)).astype(np.float32)
    a, b = whole[:m, :k].copy(), whole[:k, :n].copy()
    program = shaped(MATMUL) if target == "interpreter" else parse_program(MATMUL)
    assert (run(program, target, [a, b], (m, n)) == a @ b + 1).all()


BLOCKED = """
program sums(M, K; A: f32[M, K], B: f32[K, 8]) -> C: f32[M, 8]:
  for i in [0, M):
    vectorized j in [0, 8):
      C[i, j] = 0.0:f32
  for ko in [0, (K + 3)//4):
    for io in [0, M//2):
      for ki in [0, min(4, K - ko*4)):
        let k = ko*4 + ki:
          let i = io*2:
            vectorized j in [0, 8):
              C[i, j] = C[i, j] + A[i, k]*B[k, j]
          let i = io*2 + 1:
            vectorized j in [0, 8):
              C[i, j] = C[i, j] + A[i, k]*B[k, j]
"""


@pytest.mark.cc
def test_a_block_of_a_reduction_holds_what_it_has_names_for() -> None:
    """C[i, j] is a fixed place in the loop over ki: its i is bound inside, but the same for all."""
    source = translate(parse_program(BLOCKED), AVX2, [True] * 3).source
    loop = source.split("ki = 0")[1]
    assert source.count("f32x8 C_held") == 2
    assert loop.count("load_f32x8(C +") == 0
    assert loop.count("load_f32x8(B +") == 1
    a, b = np.ones((4, 7), np.float32), np.ones((7, 8), np.float32)
    assert (run(parse_program(BLOCKED), "c", [a, b], (4, 8)) == 7).all()


@pytest.mark.cc
def test_what_registers_hold_is_not_prefetched() -> None:
    loop = "for reduction k in [0, K)"
    program = parse_program(MATMUL.replace(loop, f"{loop} prefetch.C=1 prefetch.B=1"))
    translation = translate(program, AVX2, [True] * 3)
    fast, *_ = translation.source.split("float C[32]")
    assert "__builtin_prefetch(&B[" in fast
    assert "__builtin_prefetch(&C[" not in fast
    assert "nothing of 'C' is prefetched in 'k': it is held in registers" in translation.notes
    a, b = np.ones((4, 3), np.float32), np.ones((3, 32), np.float32)
    assert (run(program, "c", [a, b], (4, 32)) == 4).all()


def test_a_row_is_prefetched_once_by_a_loop_that_a_compiler_can_count() -> None:
    """Its vectors are read one by one, and none of them has the cache line of another again."""
    loop = "for reduction k in [0, K)"
    program = parse_program(MATMUL.replace(loop, f"{loop} prefetch.B=4"))
    fast, *_ = translate(program, AVX2, [True] * 3).source.split("float C[32]")
    assert fast.count("if (k + 4 < K)") == 1
    assert fast.count("__builtin_prefetch") == 1
    assert "ahead1 = 0; ahead1 <= 15; ahead1 += 16" in fast


def test_what_an_iteration_allocates_is_not_prefetched_by_its_loop() -> None:
    """Its place in another version of the loop, where each lane has one of its own, is no guide."""
    text = """
program p(N; A: f32[N]) -> B: f32[N]:
  for o in [0, 4) prefetch.t=1:
    vectorized i in [0, 8):
      if o*8 + i < N:
        allocate t: f32[0 : +2]
        t[0] = A[o*8 + i]
        B[o*8 + i] = t[0]
  for o in [0, 4) prefetch.t=1:
    allocate t: f32[]
    t[] = A[o]
    B[o] = t[]
"""
    translation = translate(parse_program(text), AVX2, [True] * 2)
    assert "__builtin_prefetch" not in translation.source
    assert "nothing of 't' is prefetched" in " ".join(translation.notes)


@pytest.mark.cc
def test_what_is_read_at_places_from_data_stays_in_memory() -> None:
    assert print_program(shaped(READ_BY_DATA)).count("allocate") == 1
    a, at = np.arange(16, dtype=np.float32), np.arange(16, dtype=np.int32)[::-1] % 8
    made = run(parse_program(READ_BY_DATA), "c", [a, at.astype(np.int32)], (16,))
    assert (made == np.concatenate([a[:8][::-1], a[8:][::-1]])).all()


def test_what_is_larger_than_the_registers_stays_as_it_was() -> None:
    text = MATMUL.replace("C: f32[io*2 : +2", "C: f32[io*2 : +64")
    source = translate(parse_program(text), AVX2, [True] * 3).source
    assert "C_held" not in source.partition("float C[1024]")[0]
