"""Compiles a program with the compiler that the environment names, and prints how that went.

Run as a module, by tests there, as a process of its own: what OpenMP offers is that of a process.
"""

import numpy as np

from tensorlang.backends.c import compile_program, find_toolchain
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

PROGRAM = """
program p(N, M; A: f32[M, N], H: f16[M, N]) -> B: f32[M, N], C: f64[M, N]:
  parallel i in [0, M):
    vectorized j in [0, N):
      B[i, j] = exp(A[i, j]) + f32(H[i, j])
    vectorized j in [0, N):
      C[i, j] = tanh(f64(A[i, j]))
"""


def main() -> None:
    toolchain = find_toolchain()
    compiled = compile_program(parse_program(PROGRAM), Target("c"))
    a = np.random.default_rng(0).normal(size=(5, 13)).astype(np.float32)
    h = a.astype(np.float16)
    b, c = np.zeros_like(a), np.zeros(a.shape)
    compiled.run({"N": 13, "M": 5}, {}, [a, h], [b, c])
    np.testing.assert_allclose(b, np.exp(a) + h.astype(np.float32), rtol=1e-6)
    np.testing.assert_allclose(c, np.tanh(a.astype(np.float64)), rtol=1e-15)
    print("command:", " ".join(toolchain.command))
    print("OpenMP:", toolchain.machine.has_openmp)
    print("notes:", *compiled.notes)


if __name__ == "__main__":
    main()
