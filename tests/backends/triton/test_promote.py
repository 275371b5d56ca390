"""An accumulator in memory is in registers while its loop runs, where that is safe."""

import torch

from tests.backends.triton import programs
from tests.backends.triton.running import nan, run


def test_a_sum_into_an_output_touches_memory_once() -> None:
    a, s = torch.randn(5, 37), nan(5)
    executable = run(programs.ROW_SUMS, {"M": 5, "N": 37}, [a], [s])
    update = next(k.text for k in executable.kernels if k.name == "sums_s_update0")
    loop = update[update.index("for ") : update.index("tl.debug_barrier")]
    assert "s_ptr" not in loop
    assert "s = s + rt.sum(" in loop
    torch.testing.assert_close(s, a.sum(1))


def test_an_element_that_exists_only_if_the_loop_runs_stays_in_it() -> None:
    text = """
program last(N; A: f32[N]) -> s: f32[N]:
  stage s.0:
    vectorized s.i in [0, N):
      s[s.i] = 0.0:f32
  stage s.1:
    for reduction s.r in [0, N):
      s[N - 1] = s[N - 1] + A[s.r]
"""
    a, s = torch.randn(6), nan(6)
    run(text, {"N": 6}, [a], [s])
    torch.testing.assert_close(s[-1], a.sum())
    run(text, {"N": 0}, [torch.empty(0)], [torch.empty(0)])


def test_an_element_that_the_loop_also_reads_elsewhere_stays_in_memory() -> None:
    c, a = nan(3, 9), torch.randn(3, 9)
    executable = run(programs.CUMSUM, {"M": 3, "N": 9}, [a], [c])
    update = next(k.text for k in executable.kernels if k.name == "scan_c_update0")
    assert "tl.store(c_at" in update[update.index("for ") :]
    torch.testing.assert_close(c, a.cumsum(1))
