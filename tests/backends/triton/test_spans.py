"""How long the axes of tiles and of scratch are."""

import torch

from tests.backends.triton.running import compiled, nan, run

CLIPPED = """
program clipped(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.io in [0, (N + 7)//8):
      let f.i.extent = min(N - out.io*8, 8)
      allocate f: f32[out.io*8 : +f.i.extent]
      stage f.0:
        for f.i in [out.io*8, +f.i.extent):
          f[f.i] = A[f.i] + 1.0:f32
      vectorized out.ii in [0, 8):
        let out.i = out.io*8 + out.ii
        if out.i < N:
          out[out.i] = f[out.i]
"""


def test_scratch_that_varies_in_the_program_has_its_bound() -> None:
    a, out = torch.randn(21), nan(21)
    executable = run(CLIPPED, {"N": 21}, [a], [out])
    assert torch.equal(out, a + 1)
    assert 'host.empty("f32", programs, 8)' in executable.source


def test_a_triangle_runs_to_its_longest_row() -> None:
    text = """
program triangle(N; A: f32[N, N]) -> s: f32[N]:
  stage s.0:
    vectorized s.i in [0, N):
      s[s.i] = 0.0:f32
  stage s.1:
    gpu_block s.io in [0, (N + 3)//4):
      vectorized s.ii in [0, 4):
        let s.i = s.io*4 + s.ii
        if s.i < N:
          for reduction s.j in [0, s.i + 1):
            s[s.i] = s[s.i] + A[s.i, s.j]
"""
    a, s = torch.randn(7, 7), nan(7)
    run(text, {"N": 7}, [a], [s])
    torch.testing.assert_close(s, a.tril().sum(1))
    assert "rt.max(" in compiled(text).source


def test_a_bound_of_a_size_by_a_number_is_the_number() -> None:
    text = """
program few(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    vectorized out.i in [0, min(N, 5)):
      out[out.i] = A[out.i]
"""
    a, out = torch.randn(3), nan(3)
    assert "tl.arange(0, 8)" in run(text, {"N": 3}, [a], [out]).source
    assert torch.equal(out, a)
