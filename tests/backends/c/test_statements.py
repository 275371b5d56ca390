"""Small loop programs, with what vector code can get wrong, in C and in the interpreter."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlang.backends import interpreter, numerics
from tensorlang.backends.c import compile_program
from tensorlang.ir.linear import integer, to_linear
from tensorlang.ir.stmt import Buffer, Program
from tensorlang.ir.types import f64
from tensorlang.ir.walk import substitute
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.cc

PROGRAMS = {
    "a tail that no vector fits": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[x]*2.0:f32
""",
    "a guard in one vectorized loop": """
program p(N; A: f32[N]) -> B: f32[N]:
  parallel xo in [0, (N + 15)//16):
    vectorized xi in [0, 16):
      let x = xo*16 + xi
      if x < N:
        B[x] = A[x] + f32(i32(x))
""",
    "guards in two loops and an offset": """
program p(N, M; A: f32[N, M]) -> B: f32[N, M]:
  for io in [0, (N + 4)//5):
    for jo in [0, (M + 11)//12):
      vectorized ii in [0, 5):
        vectorized ji in [0, 12):
          let i = io*5 + ii
          let j = jo*12 + ji
          if (i < N) & (j < M):
            B[i, j] = A[i, j] - f32(i - j)
""",
    "a guard that depends on data": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = 1.0:f32
  vectorized x in [0, N):
    if A[x] < 0.5:f32:
      B[x] = A[x]
""",
    "a select whose other side is out of bounds": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = select(0 < x, A[x - 1], 0.0:f32) + select(x < N - 1, A[x + 1], -1.0:f32)
""",
    "a clamped index": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[min(max(x - 2, 0), N - 1)] + A[min(max(x + 3, 0), N - 1)]
""",
    "a reduction whose bounds differ from lane to lane": """
program p(N, K; A: f32[N]) -> B: f32[N]:
  parallel y in [0, 1):
    vectorized x in [0, N):
      B[x] = 1.0:f32
    vectorized x in [0, N):
      for reduction o in [0, K):
        for reduction r in [0, min(x + 1, 3)):
          B[x] = B[x] + A[x - r]
""",
    "gathers: strided, divided, by data": """
program p(N; A: f32[N], I: i32[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[x//2] + A[(x*3) % N] + A[index(min(max(I[x], 0:i32), i32(N - 1)))] + A[N - 1 - x]
""",
    "elements at steps: halves, doubles, of bytes and bools": """
program p(N, M; A: f32[N], U: u8[N], T: bool[N]) -> B: f32[N]:
  vectorized x in [0, N):
    B[x] = A[x//2] + A[x//2 + x % 2] + select(T[x//2 + x//4], 1.0:f32, 2.0:f32)
    B[x] = B[x] + f32(U[x//4])*f32(x % 8)
  for o in [0, N//16):
    vectorized x in [0, 8):
      B[o*16 + x*2 + 1] = B[o*16 + x*2] + A[o*16 + x*2 + 1] + A[o*16 + 15 - x*2]
""",
    "a transposed store": """
program p(N, M; A: f32[M, N]) -> B: f32[N, M]:
  for i in [0, M):
    vectorized j in [0, N):
      B[j, i] = A[i, j]
""",
    "a transposed store, both vectorized": """
program p(N, M; A: f32[M, N]) -> B: f32[N, M]:
  vectorized i in [0, M):
    vectorized j in [0, N):
      B[j, i] = A[i, j]
""",
    "a reduction inside lanes": """
program p(N, K; A: f32[N, K]) -> B: f32[N]:
  vectorized i in [0, N):
    B[i] = 0.0:f32
    for reduction k in [0, K):
      B[i] = B[i] + A[i, k]
""",
    "lanes of a matrix product": """
program sum(N, M, K; A: f32[N, K], B: f32[K, M]) -> C: f32[N, M]:
  for i in [0, N):
    vectorized j in [0, M):
      C[i, j] = 0.0:f32
  for i in [0, N):
    vectorized j in [0, M):
      for reduction k in [0, K):
        C[i, j] = C[i, j] + A[i, k]*B[k, j]
""",
    "guards of two lane loops together, around a reduction": """
program sum(N, K; A: f32[N, K]) -> B: f32[N]:
  vectorized i in [0, N):
    B[i] = 0.5:f32
  vectorized io in [0, (N + 7)//8):
    vectorized ii in [0, 8):
      let i = io*8 + ii
      if i < N:
        for reduction k in [0, K):
          B[i] = B[i] + A[i, k]
""",
    "masked tails: a function of clamped elements, of halves, of a wider type": """
program sum(N; A: f32[N], H: f16[N], D: f64[N], U: u8[N]) -> B: f32[N], C: f64[N], E: f16[N]:
  vectorized x in [0, N):
    B[x] = exp(A[min(max(x + 1, 0), N - 1)]) + tanh(select(x < 3, A[x], A[x//2]))
  vectorized x in [0, N):
    C[x] = D[x] + f64(exp(A[x]))
  vectorized x in [0, N):
    E[x] = exp(H[x]) + f16(U[x])
""",
    "a register tile": """
program sum(N, M, K; A: f32[N, K], B: f32[K, M]) -> C: f32[N, M]:
  vectorized i in [0, N):
    vectorized j in [0, M):
      C[i, j] = 0.0:f32
  for reduction ko in [0, (K + 3)//4):
    vectorized i in [0, N):
      vectorized j in [0, M):
        vectorized reduction ki in [0, 4):
          if ko*4 + ki < K:
            C[i, j] = C[i, j] + A[i, ko*4 + ki]*B[ko*4 + ki, j]
""",
    "a tree reduction": """
program sum(N, K; A: f32[N, K]) -> B: f32[N]:
  for i in [0, N):
    B[i] = 0.0:f32
  for i in [0, N):
    vectorized reduction k in [0, K):
      B[i] = B[i] + A[i, k]
""",
    "a tree maximum with a guard": """
program p(N, K; A: f32[N, K]) -> B: f32[N]:
  for i in [0, N):
    B[i] = -inf:f32
  for i in [0, N):
    for reduction ko in [0, (K + 99)//100):
      vectorized reduction ki in [0, 100):
        let k = ko*100 + ki
        if k < K:
          B[i] = max(B[i], A[i, k])
""",
    "integers with wrapping product": """
program p(N, K; I: i32[N, K]) -> B: i32[N]:
  for i in [0, N):
    B[i] = 1:i32
  for i in [0, N):
    vectorized reduction k in [0, K):
      B[i] = B[i]*I[i, k]
""",
    "argmin": """
program p(N, K; A: f32[N, K]) -> B: (f32, index)[N]:
  vectorized i in [0, N):
    B[i] = (inf:f32, 0)
  vectorized i in [0, N):
    for reduction k in [0, K):
      B[i] = (select(A[i, k] < B[i], A[i, k], B[i]), select(A[i, k] < B[i], k, B[i].1))
""",
    "argmin along the vectorized loop": """
program p(N, K; A: f32[N, K]) -> B: (f32, index)[N]:
  for i in [0, N):
    B[i] = (inf:f32, 0)
  for i in [0, N):
    vectorized reduction k in [0, K):
      B[i] = (select(A[i, k] < B[i], A[i, k], B[i]), select(A[i, k] < B[i], k, B[i].1))
""",
    "a tuple that swaps": """
program p(N; A: f32[N]) -> B: (f32, f32)[N]:
  vectorized i in [0, N):
    B[i] = (A[i], A[i] + 1.0:f32)
  vectorized i in [0, N):
    B[i] = (B[i].1, B[i])
""",
    "a histogram": """
program p(N, K; I: i32[K]) -> B: i32[N]:
  vectorized i in [0, N):
    B[i] = 0:i32
  for reduction k in [0, K):
    let at = index(min(max(I[k], 0:i32), i32(N - 1)))
    B[at] = B[at] + 1:i32
""",
    "a scan along the outer loop": """
program p(N, K; A: f32[K, N]) -> B: f32[K, N]:
  for k in [0, K):
    vectorized i in [0, N):
      B[k, i] = A[k, i]
  for reduction k in [1, +K - 1):
    vectorized i in [0, N):
      B[k, i] = B[k, i] + B[k - 1, i]
""",
    "a scan along the contiguous loop": """
program p(N, K; A: f32[N, K]) -> B: f32[N, K]:
  for i in [0, N):
    vectorized k in [0, K):
      B[i, k] = A[i, k]
  for i in [0, N):
    for reduction k in [1, +K - 1):
      B[i, k] = B[i, k] + B[i, k - 1]
""",
    "a workspace for each row": """
program p(N, M; A: f32[N, M]) -> B: f32[N, M]:
  parallel i in [0, N):
    allocate T: f32[i : +1, -1 : +M + 2]
    vectorized j in [-1, +M + 2):
      T[i, j] = A[i, min(max(j, 0), M - 1)]
    vectorized j in [0, M):
      B[i, j] = T[i, j - 1] + T[i, j] + T[i, j + 1]
""",
    "a workspace for each lane": """
program p(N, K; A: f32[K, N]) -> B: f32[N]:
  vectorized i in [0, N):
    allocate S: f32[i : +1]
    S[i] = 0.0:f32
    for reduction k in [0, K):
      S[i] = S[i] + A[k, i]
    B[i] = S[i]*S[i]
""",
    "a ring": """
program p(N, M; A: f32[N, M]) -> B: f32[N, M]:
  allocate T: f32[-1 : +N + 2, M] fold (3, 0)
  for i in [-1, +N + 2):
    vectorized j in [0, M):
      T[i, j] = A[min(max(i, 0), N - 1), j]
    if 0 < i:
      vectorized j in [0, M):
        B[i - 1, j] = T[i - 2, j] + T[i - 1, j] + T[i, j]
""",
    "bounds that differ by lane": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized i in [0, N):
    B[i] = 0.0:f32
    for reduction k in [0, i):
      B[i] = B[i] + A[k]
""",
    "a bound that is read from memory": """
program p(N, K; A: f32[N, K], I: i32[N]) -> B: f32[N]:
  vectorized i in [0, N):
    B[i] = 0.0:f32
  for i in [0, N):
    vectorized reduction k in [0, K):
      if k < index(I[i]):
        B[i] = max(B[i], A[i, k])
""",
    "a bound that the loop itself changes": """
program p(N; I: i32[N]) -> B: i32[N]:
  for i in [0, N):
    B[i] = I[i]
  for reduction i in [0, N):
    if i < index(B[0]):
      B[N - 1 - i] = B[N - 1 - i]*2:i32
""",
    "bools": """
program p(N; A: f32[N], C: bool[N]) -> B: bool[N]:
  vectorized i in [0, N):
    B[i] = (A[i] < 0.5:f32) & ~C[i] | (C[i] == (0.0:f32 <= A[i]))
""",
    "a reduction in lanes, under guards of its place": """
program p(N, K; A: f32[N, K]) -> B: f32[N]:
  for i0 in [0, N):
    B[i0] = 0.5:f32
  let extent = (N + 2)//3*3
  for io in [0, (extent + 15)//16):
    vectorized ii in [0, 16):
      let i = io*16 + ii
      if i < extent:
        if i < N:
          vectorized reduction k in [0, K):
            B[i] = max(B[i], A[i, k])
""",
    "a reduction in lanes, under a guard of its place and its loop": """
program p(N, K; A: f32[K + 8]) -> B: f32[N]:
  for i0 in [0, N):
    B[i0] = 0.5:f32
  for i in [0, 40):
    vectorized reduction k in [0, 24):
      if (i*2 + k*3 < N) & (k < K):
        B[i] = B[i] + A[k]
""",
    "a reduction in lanes that reaches as far as its place allows": """
program p(N, M; A: f32[M + 40]) -> B: f32[N]:
  for i0 in [0, N):
    B[i0] = 0.5:f32
  for i in [0, 40):
    vectorized reduction k in [0, 24):
      if i + k < N:
        B[i] = max(B[i], A[k])
""",
    "a reduction in lanes within one that may be empty": """
program p(N, M; A: f32[M + 40]) -> B: f32[N]:
  for i0 in [0, N):
    B[i0] = 0.5:f32
  for i in [0, 40):
    vectorized reduction q in [0, 16):
      vectorized reduction k in [0, 24):
        if i + q < N:
          B[i] = max(B[i], A[k + q])
""",
    "any and all": """
program p(N, K; C: bool[N, K]) -> B: (bool, bool)[N]:
  for i in [0, N):
    B[i] = (false, true)
  for i in [0, N):
    for reduction k in [0, K):
      B[i] = (B[i] | C[i, k], B[i].1 & C[i, k])
""",
    "half precision": """
program p(N; H: f16[N], G: bf16[N]) -> B: f16[N]:
  vectorized i in [0, N):
    B[i] = H[i]*H[i] + f16(G[i])
""",
    "a parameter and a let": """
program p(N; s: f32, n: i32; A: f32[N]) -> B: f32[N]:
  vectorized i in [0, N):
    let v = A[i]*s
    B[i] = v*v + f32(n)
""",
    "two sides of a condition that differs from lane to lane": """
program p(N; A: f32[N]) -> B: f32[N]:
  vectorized i in [0, N):
    if i*2 + 1 < N:
      B[i] = A[i] + 1.0:f32
    if ~(i*2 + 1 < N):
      B[i] = A[i]*2.0:f32
""",
    "a vector stage between two that are not": """
program p(N; A: f32[N]) -> B: f32[N]:
  allocate T: f32[N]
  for i in [0, N):
    T[i] = A[i] + 1.0:f32
  vectorized i in [0, N):
    T[i] = T[i]*2.0:f32
  unrolled i in [0, 3):
    if i < N:
      T[i] = T[i] - 5.0:f32
  for i in [0, N):
    B[i] = T[i]
""",
}


SIZES = (
    {"N": 37, "M": 29, "K": 151},
    {"N": 8, "M": 24, "K": 4},
    {"N": 1, "M": 1, "K": 1},
    {"N": 0, "M": 0, "K": 0},
)
PARAMS = {"s": 0.3, "n": -7}


def shape_of(buffer: Buffer, sizes: dict[str, int]) -> tuple[int, ...]:
    values = {name: integer(value) for name, value in sizes.items()}
    return tuple(to_linear(substitute(dim.extent, values)).constant for dim in buffer.dims)


def array_of(buffer: Buffer, sizes: dict[str, int], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape, dtype = shape_of(buffer, sizes), buffer.dtypes[0]
    if dtype.is_bool:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return rng.integers(-50, 50, shape).astype(numerics.storage(dtype))
    return np.asarray(numerics.pack(dtype)(numerics.cast(f64, dtype)(rng.random(shape))))


def outputs_of(program: Program, sizes: dict[str, int]) -> list[np.ndarray]:
    return [
        np.full(shape_of(buffer, sizes), 77, numerics.storage(dtype))
        for buffer in program.outputs
        for dtype in buffer.dtypes
    ]


def agree(program: Program, sizes: dict[str, int], inputs: list[np.ndarray]) -> None:
    """The C backend gives what the interpreter gives; sums within rounding."""
    sizes = {size.name: sizes[size.name] for size in program.sizes}
    params = {param.name: PARAMS[param.name] for param in program.params}
    got, want = outputs_of(program, sizes), outputs_of(program, sizes)
    compile_program(program, Target("c")).run(sizes, params, inputs, got)
    interpreter.compile_program(program, Target("interpreter")).run(sizes, params, inputs, want)
    for a, b in zip(got, want, strict=True):
        if program.name == "sum":
            np.testing.assert_allclose(a, b, rtol=1e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_c_computes_what_the_interpreter_computes(name: str) -> None:
    program = parse_program(PROGRAMS[name])
    for sizes in SIZES:
        agree(program, sizes, [array_of(b, sizes, k) for k, b in enumerate(program.inputs)])


@pytest.mark.parametrize("name", ["a tail that no vector fits", "a clamped index", "a histogram"])
def test_arrays_of_any_strides(name: str) -> None:
    program = parse_program(PROGRAMS[name])
    sizes = {"N": 37, "K": 151}
    for view in (lambda a: np.repeat(a, 3)[::3], lambda a: a[::-1]):
        inputs = [view(array_of(b, sizes, k)) for k, b in enumerate(program.inputs)]
        agree(program, sizes, inputs)


def test_an_input_of_stride_zero() -> None:
    program = parse_program(PROGRAMS["a tail that no vector fits"])
    agree(program, {"N": 37}, [np.broadcast_to(np.float32(2.5), (37,))])


def test_a_load_whose_guard_needs_the_load() -> None:
    """Neither of two loads can be made before the other's guard is known: branches decide."""
    program = parse_program("""
program p(N; A: bool[N], C: bool[N], X: f32[N]) -> B: f32[N], D: f32[N]:
  vectorized i in [0, N):
    let a = A[i]
    let c = C[i]
    let s = select(a, select(c, X[i], 1.0:f32), 2.0:f32)
    let t = select(c, select(a, X[i], 3.0:f32), 4.0:f32)
    B[i] = select(X[i] < 0.5:f32, s, t)
  for i in [0, N):
    D[i] = select(X[i] < 0.5:f32, select(A[i], select(C[i], 1.0:f32, 5.0:f32), 2.0:f32), \
select(C[i], select(A[i], 3.0:f32, 6.0:f32), 4.0:f32))
""")
    for sizes in SIZES:
        agree(program, sizes, [array_of(b, sizes, k) for k, b in enumerate(program.inputs)])


def test_what_no_lane_changes_is_stored_once() -> None:
    text = """
program p(N; A: f32[N]) -> B: f32[N], C: f32[1]:
  vectorized x in [0, 8):
    B[x] = A[x]
    C[0] = A[0] + 1.0:f32
"""
    made = compile_program(parse_program(text), Target("c"))
    assert "C[0] = A[0] + 1.0f;" in made.source
    assert "for (" not in made.source
    a, b, c = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(1, np.float32)
    made.run({"N": 8}, {}, [a], [b, c])
    assert np.array_equal(b, a)
    assert c[0] == 1


GUARDED_SUM = """
program p(N, M; A: f32[M]) -> B: f32[N]:
  for i in [0, 8):
    for reduction k in [0, 4):
      if CONDITION:
        B[i] = B[i] + A[i + k]
"""


@pytest.mark.parametrize("condition", ["i + k < N", "k % 3 == 0", "A[k] < 0.5:f32"])
def test_what_a_guard_may_keep_from_being_touched_is_not_held_in_a_variable(condition: str) -> None:
    """Of N = 3 elements 3 to 7 are not there, though `i + k < N` depends on the loop that adds."""
    program = parse_program(GUARDED_SUM.replace("CONDITION", condition))
    source = compile_program(program, Target("c")).source
    # The version for where the guard holds in all iterations, or else the only one.
    assert source.count("float B_held") == 1
    if condition == "i + k < N":
        assert "float B_held" in source.split("if (0 < N - 10) {")[1].split("} else {")[0]


@pytest.mark.parametrize(
    "guard",
    ["let m = i + k\n      if m < N:", "for q in [0, N - i - k):"],
    ids=["through a name", "as the extent of an inner loop"],
)
def test_a_guard_is_seen_in_any_form(guard: str) -> None:
    program = parse_program(GUARDED_SUM.replace("if CONDITION:", guard))
    *_, slow = compile_program(program, Target("c")).source.split("for (int64_t i = 0;")
    assert "B_held" not in slow.split("for (int64_t k = 0;")[0]
    b = np.zeros(3, np.float32)
    compile_program(program, Target("c")).run({"N": 3, "M": 12}, {}, [np.ones(12, "f4")], [b])
    assert b[2] == 1


def test_what_a_select_guards_is_not_loaded_ahead_for_several_statements() -> None:
    sums = "".join(
        f"""
    vectorized j in [0, 8):
      C[{i}, j] = C[{i}, j] {sign} select(A[k] < 0.5:f32, B[k, j], 0.0:f32)*A[k]"""
        for i, sign in enumerate("+-")
    )
    text = f"""
program p(N, M; A: f32[N], B: f32[M, 8]) -> C: f32[2, 8]:
  for reduction k in [0, N):{sums}
"""
    guarded = compile_program(parse_program(text), Target("c")).source
    assert "B_held" not in guarded
    free = text.replace("select(A[k] < 0.5:f32, B[k, j], 0.0:f32)", "B[k, j]")
    assert "B_held" in compile_program(parse_program(free), Target("c")).source


def test_nothing_beyond_an_array_is_read_or_written() -> None:
    command = [sys.executable, "-m", "tests.backends.c.walled"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert asked.stdout.endswith("done\n"), f"{asked.stdout[-100:]}\n{asked.stderr[-2000:]}"
