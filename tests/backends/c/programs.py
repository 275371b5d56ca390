"""Small loop programs with what vector code can get wrong, and arrays for them."""

import numpy as np

from tensorlang.backends import numerics
from tensorlang.ir.linear import integer, to_linear
from tensorlang.ir.stmt import Buffer, Program
from tensorlang.ir.types import f64
from tensorlang.ir.walk import substitute

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
