"""The C text of small programs, for a fixed machine; what it computes is tested elsewhere."""

from collections.abc import Callable

import pytest

from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.program import translate
from tensorlang.text.loop_ir import parse_program

AVX2 = Machine(vector_bytes=32, has_fma=True, has_openmp=True)
PLAIN = Machine(vector_bytes=16, has_fma=False, has_openmp=False)

ADD = """
program add(N; A: f32[N], s: f32) -> B: f32[N]:
  stage B.0:
    vectorized B.x in [0, N):
      B[B.x] = A[B.x] + s
"""
LINEAR_RELU = """
program linear_relu(M, N, K; A: f16[M, K], B: f16[K, N], bias: f16[N]) -> D: f16[M, N]:
  stage D.0:
    gpu_block D.t in [0, (M + 3)//4*((N + 15)//16)):
      let D.io = D.t//((N + 15)//16)
      let D.jo = D.t%((N + 15)//16)
      allocate C: f32[D.io*4 : +4, D.jo*16 : +16]
      stage C.0:
        vectorized C.i in [D.io*4, +4):
          vectorized C.j in [D.jo*16, +16):
            if (C.i < M) & (C.j < N):
              C[C.i, C.j] = 0.0:f32
      stage C.1:
        for reduction C.k in [0, K):
          vectorized C.i in [D.io*4, +4):
            vectorized C.j in [D.jo*16, +16):
              if (C.i < M) & (C.j < N):
                C[C.i, C.j] = C[C.i, C.j] + f32(A[C.i, C.k])*f32(B[C.k, C.j])
      vectorized D.ii in [0, 4):
        vectorized D.ji in [0, 16):
          let D.i = D.io*4 + D.ii
          let D.j = D.jo*16 + D.ji
          if (D.i < M) & (D.j < N):
            D[D.i, D.j] = f16(max(C[D.i, D.j] + f32(bias[D.j]), 0.0:f32))
"""
BLUR = """
program blur(H, W; A: f32[H, W]) -> B: f32[H, W]:
  stage B.0:
    parallel B.y in [0, H):
      allocate T: f32[0 : +W + 2]
      stage T.0:
        vectorized T.x in [0, W + 2):
          T[T.x] = A[B.y, min(max(T.x - 1, 0), W - 1)]
      vectorized B.x in [0, W):
        B[B.y, B.x] = T[B.x] + T[B.x + 1] + T[B.x + 2]
"""


def source_of(text: str, machine: Machine = AVX2, *contiguous: bool) -> str:
    program = parse_program(text)
    count = len(program.inputs) + len(program.outputs)
    return translate(program, machine, contiguous or (True,) * count).source


def body_of(source: str) -> str:
    """The struct and the function, without the prelude."""
    return source[source.index("struct arguments {") :]


def test_add(golden: Callable[[str], None]) -> None:
    golden(source_of(ADD))


def test_linear_relu(golden: Callable[[str], None]) -> None:
    golden(body_of(source_of(LINEAR_RELU)))


def test_blur(golden: Callable[[str], None]) -> None:
    golden(body_of(source_of(BLUR)))


def test_arrays_that_are_not_contiguous_are_read_one_by_one() -> None:
    source = body_of(source_of(ADD, AVX2, False, True))
    assert "A[" in source
    assert "load_f32x8(A" not in source
    assert "store_f32x8(B" in source


def test_another_machine_gets_its_own_vectors() -> None:
    source = source_of(ADD, PLAIN)
    assert "f32x4" in source
    assert "f32x8" not in source


def test_no_openmp_is_noted_with_its_remedy() -> None:
    program = parse_program(BLUR)
    translation = translate(program, PLAIN, (True, True))
    assert "omp" not in translation.source
    assert any("OpenMP" in note and "libomp" in note for note in translation.notes)


def test_a_nested_parallel_loop_is_serial_and_noted() -> None:
    translation = translate(
        parse_program("""
program p(N; A: f32[N, N]) -> B: f32[N, N]:
  parallel i in [0, N):
    parallel j in [0, i + 1):
      B[i, j] = A[i, j]
"""),
        AVX2,
        (True, True),
    )
    assert translation.source.count("#pragma omp") == 1
    assert any("'j' runs serially" in note for note in translation.notes)


def test_no_choice_is_left_inside_the_steady_loop_of_a_matmul() -> None:
    source = body_of(source_of(LINEAR_RELU))
    start = source.index("for (int64_t k = 0")
    inner = source[start : source.index("store_f32x8", start)]
    assert inner.count("fma_f32x8") == 8
    assert "if" not in inner.split("{", 1)[1].split("C_held =")[0]


@pytest.mark.parametrize("terms", [2000])
def test_long_expressions_do_not_nest_deeply(terms: int) -> None:
    total = " + ".join(f"A[{k % 7}]*{k}.0:f32" for k in range(terms))
    source = source_of(f"program long(N; A: f32[7]) -> B: f32[1]:\n  B[0] = {total}\n")
    assert max(line.count("(") for line in source.splitlines()) < 20
    assert max(map(len, source.splitlines())) < 200


def test_hints_that_are_not_used_are_noted() -> None:
    translation = translate(
        parse_program("""
program p(N; A: f32[N] load_with="descriptor") -> B: f32[N]:
  for reduction k in [0, N) stages=3:
    B[k] = A[k]
"""),
        AVX2,
        (True, True),
    )
    assert translation.notes == (
        "the hint load_with=descriptor of 'A' is ignored by the target c",
        "the hint stages=3 of 'k' is ignored by the target c",
    )


def test_aligned_storage_is_padded() -> None:
    source = source_of("""
program p(N; A: f32[N, 5]) -> B: f32[N, 5]:
  allocate T: f32[3, 5] align1=8
  for j in [0, 5):
    T[1, j] = A[0, j]
    B[0, j] = T[1, j]
""")
    assert "float T[24]" in source
    assert "T[j + 8]" in source
