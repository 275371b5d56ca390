"""Loop programs that several tests run, as text."""

LINEAR_RELU = """
program linear_relu(M, N, K; A: f16[M, K], B: f16[K, N], bias: f16[N]) -> D: f16[M, N]:
  stage D.0:
    gpu_block D.t in [0, (M + 31)//32*((N + 31)//32)) warps=8:
      let D.io = D.t//((N + 31)//32)
      let D.jo = D.t%((N + 31)//32)
      allocate C: f32[D.io*32 : +32, D.jo*32 : +32]
      stage C.0:
        vectorized C.i in [D.io*32, +32):
          vectorized C.j in [D.jo*32, +32):
            if (C.i < M) & (C.j < N):
              C[C.i, C.j] = 0.0:f32
      stage C.1:
        for reduction C.ko in [0, (K + 15)//16) stages=3:
          vectorized C.i in [D.io*32, +32):
            vectorized C.j in [D.jo*32, +32):
              vectorized reduction C.ki in [0, 16):
                let C.k = C.ko*16 + C.ki
                if (C.k < K) & (C.i < M) & (C.j < N):
                  C[C.i, C.j] = C[C.i, C.j] + f32(A[C.i, C.k])*f32(B[C.k, C.j])
      vectorized D.ii in [0, 32):
        vectorized D.ji in [0, 32):
          let D.i = D.io*32 + D.ii
          let D.j = D.jo*32 + D.ji
          if (D.i < M) & (D.j < N):
            D[D.i, D.j] = f16(max(C[D.i, D.j] + f32(bias[D.j]), 0.0:f32))
"""


def with_tiles(text: str, side: int, depth: int) -> str:
    """LINEAR_RELU with tiles of side x side x depth instead of 32 x 32 x 16."""
    text = text.replace("+ 31)//32", f"+ {side - 1})//{side}").replace("*32", f"*{side}")
    text = text.replace("+32", f"+{side}").replace("[0, 32)", f"[0, {side})")
    text = text.replace("+ 15)//16", f"+ {depth - 1})//{depth}").replace("*16 ", f"*{depth} ")
    return text.replace("[0, 16)", f"[0, {depth})")


SCALE = """
program scale(M, N; A: f32[M, N]) -> D: f32[M, N]:
  stage D.0:
    gpu_block D.i in [0, M):
      for D.jo in [0, (N + 15)//16):
        vectorized D.ji in [0, 16):
          let D.j = D.jo*16 + D.ji
          if D.j < N:
            D[D.i, D.j] = A[D.i, D.j]*2.0:f32 + 1.0:f32
"""

SOFTMAX = """
program softmax(M, N; A: f32[M, N]) -> out: f32[M, N]:
  stage out.0:
    gpu_block out.i in [0, M):
      allocate m: f32[out.i : +1]
      stage m.0:
        for m.i in [out.i, +1):
          m[m.i] = -inf:f32
      stage m.1:
        for m.i in [out.i, +1):
          vectorized reduction m.j in [0, N):
            m[m.i] = max(m[m.i], A[m.i, m.j])
      allocate l: f32[out.i : +1]
      stage l.0:
        l[out.i] = 0.0:f32
      stage l.1:
        vectorized reduction l.j in [0, N):
          l[out.i] = l[out.i] + exp(A[out.i, l.j] - m[out.i])
      vectorized out.j in [0, N):
        out[out.i, out.j] = exp(A[out.i, out.j] - m[out.i])/l[out.i]
"""

ROW_SUMS = """
program sums(M, N; A: f32[M, N]) -> s: f32[M]:
  stage s.0:
    gpu_block s.io in [0, (M + 3)//4):
      vectorized s.ii in [0, 4):
        let s.i = s.io*4 + s.ii
        if s.i < M:
          s[s.i] = 0.0:f32
  stage s.1:
    gpu_block s.io in [0, (M + 3)//4):
      for reduction s.jo in [0, (N + 7)//8):
        vectorized s.ii in [0, 4):
          vectorized reduction s.ji in [0, 8):
            let s.i = s.io*4 + s.ii
            let s.j = s.jo*8 + s.ji
            if (s.i < M) & (s.j < N):
              s[s.i] = s[s.i] + A[s.i, s.j]
"""

BLUR_AT_TILE = """
program blur(H, W; I: f32[H + 2, W + 2]) -> out: f32[H, W]:
  stage out.0:
    gpu_block out.t in [0, (H + 3)//4*((W + 7)//8)):
      let out.yo = out.t//((W + 7)//8)
      let out.xo = out.t%((W + 7)//8)
      allocate bx: f32[out.yo*4 : +6, out.xo*8 : +8]
      stage bx.0:
        vectorized bx.y in [out.yo*4, +6):
          vectorized bx.x in [out.xo*8, +8):
            if (bx.y < H + 2) & (bx.x < W):
              bx[bx.y, bx.x] = I[bx.y, bx.x] + I[bx.y, bx.x + 1] + I[bx.y, bx.x + 2]
      vectorized out.yi in [0, 4):
        vectorized out.xi in [0, 8):
          let out.y = out.yo*4 + out.yi
          let out.x = out.xo*8 + out.xi
          if (out.y < H) & (out.x < W):
            out[out.y, out.x] = bx[out.y, out.x] + bx[out.y + 1, out.x] + bx[out.y + 2, out.x]
"""

BLUR_AT_ROOT = """
program blur(H, W; I: f32[H + 2, W + 2]) -> out: f32[H, W]:
  allocate bx: f32[0 : +(H + 2), W]
  stage bx.0:
    gpu_block bx.y in [0, H + 2):
      vectorized bx.x in [0, W):
        bx[bx.y, bx.x] = I[bx.y, bx.x] + I[bx.y, bx.x + 1] + I[bx.y, bx.x + 2]
  stage out.0:
    for out.y in [0, H):
      for out.x in [0, W):
        out[out.y, out.x] = bx[out.y, out.x] + bx[out.y + 1, out.x] + bx[out.y + 2, out.x]
"""

CUMSUM = """
program scan(M, N; A: f32[M, N]) -> c: f32[M, N]:
  stage c.0:
    gpu_block c.i in [0, M):
      vectorized c.j in [0, N):
        c[c.i, c.j] = A[c.i, c.j]
  stage c.1:
    gpu_block c.io in [0, (M + 3)//4):
      vectorized c.ii in [0, 4):
        let c.i = c.io*4 + c.ii
        for reduction c.r in [1, +(N - 1)):
          if c.i < M:
            c[c.i, c.r] = c[c.i, c.r] + c[c.i, c.r - 1]
"""

_BETTER = """\
(best[best.i].0 < A[best.i, best.r]) | isnan(A[best.i, best.r]) & ~isnan(best[best.i].0)"""

_BEST = f"select({_BETTER}, A[best.i, best.r], best[best.i].0)"
_AT = f"select({_BETTER}, i64(best.r), best[best.i].1)"

ARGMAX = f"""
program rows(M, N; A: f32[M, N]) -> best: (f32, i64)[M]:
  stage best.0:
    gpu_block best.i in [0, M):
      best[best.i] = (-inf:f32, 0:i64)
  stage best.1:
    gpu_block best.i in [0, M):
      for reduction best.ro in [0, (N + 7)//8):
        vectorized reduction best.ri in [0, 8):
          let best.r = best.ro*8 + best.ri
          if best.r < N:
            best[best.i] = ({_BEST}, {_AT})
"""

HISTOGRAM = """
program histogram(N, B; A: i32[N]) -> h: i32[B]:
  stage h.0:
    vectorized h.b in [0, B):
      h[h.b] = 0:i32
  stage h.1:
    vectorized reduction h.r in [0, N):
      h[index(min(max(A[h.r], 0:i32), 3:i32))] = h[index(min(max(A[h.r], 0:i32), 3:i32))] + 1:i32
"""

# The output is accumulated in memory, its axes transposed, from a B whose rows are contiguous.
MATMUL_NT = """
program matmul(M, N, K; A: bf16[M, K], B: bf16[N, K]) -> C: f32[M, N]:
  stage C.0:
    gpu_block C.i in [0, M):
      vectorized C.j in [0, N):
        C[C.i, C.j] = 0.0:f32
  stage C.1:
    gpu_block C.t in [0, (M + 15)//16*((N + 31)//32)):
      let C.io = C.t//((N + 31)//32)
      let C.jo = C.t%((N + 31)//32)
      for reduction C.ko in [0, (K + 15)//16) stages=3:
        vectorized C.ji in [0, 32):
          vectorized C.ii in [0, 16):
            let C.i = C.io*16 + C.ii
            let C.j = C.jo*32 + C.ji
            vectorized reduction C.ki in [0, 16):
              let C.k = C.ko*16 + C.ki
              if (C.k < K) & (C.i < M) & (C.j < N):
                C[C.i, C.j] = C[C.i, C.j] + f32(A[C.i, C.k])*f32(B[C.j, C.k])
"""

NOISE = """
program noise(M; A: f32[M, 64]) -> D: f32[M, 64]:
  gpu_block i in [0, M):
    vectorized j in [0, 64):
      D[i, j] = A[i, j] + random_uniform(263184130787:i64, i64(i*64 + j))
"""
