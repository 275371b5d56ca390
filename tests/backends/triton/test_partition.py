"""Which loops are programs, what the host does between launches, and how kernels are named."""

import torch

from tensorlang.backends.triton import launches
from tensorlang.backends.triton.partition import (
    HostIf,
    HostLet,
    HostLoop,
    Launch,
    Workspace,
    partition,
)
from tensorlang.text.loop_ir import parse_program
from tests.backends.triton import programs
from tests.backends.triton.running import compiled, nan, run

HOST_LOOP = """
program steps(N, T; A: f32[N]) -> out: f32[N]:
  allocate x: f32[0 : +(T + 1), N]
  stage x.0:
    gpu_block x.i in [0, N):
      x[0, x.i] = A[x.i]
  stage x.1:
    for x.t in [1, +T):
      gpu_block x.io in [0, (N + 3)//4):
        vectorized x.ii in [0, 4):
          let x.i = x.io*4 + x.ii
          if x.i < N:
            x[x.t, x.i] = x[x.t - 1, x.i]*0.5:f32
  let last = T*1 + 0*N
  if 1 <= N:
    stage out.0:
      gpu_block out.i in [0, N):
        out[out.i] = x[last, out.i]
"""


def test_a_serial_loop_outside_the_grid_runs_on_the_host() -> None:
    workspace, first, loop, let, condition = partition(parse_program(HOST_LOOP))
    assert isinstance(workspace, Workspace)
    assert isinstance(first, Launch)
    assert isinstance(loop, HostLoop)
    assert isinstance(let, HostLet)
    assert isinstance(condition, HostIf)
    a, out = torch.randn(6), nan(6)
    run(HOST_LOOP, {"N": 6, "T": 3}, [a], [out])
    assert torch.equal(out, a / 8)


def test_kernels_are_named_after_their_func_and_update() -> None:
    names = [k.name for k in compiled(HOST_LOOP).kernels]
    assert names == ["steps_x", "steps_x_update0", "steps_out"]


def test_a_stage_without_a_grid_is_one_program() -> None:
    [first, second] = launches(partition(parse_program(programs.BLUR_AT_ROOT)))
    assert [loop.var for loop in first.grid] == ["bx.y"]
    assert second.grid == ()


def test_parallel_outermost_is_a_grid_and_inside_is_serial_and_said() -> None:
    text = """
program inner(M, N; A: f32[M, N]) -> out: f32[M, N]:
  stage out.0:
    {outer} out.i in [0, M):
      {inner} out.j in [0, N):
        out[out.i, out.j] = A[out.i, out.j]
"""
    a, out = torch.randn(3, 5), nan(3, 5)
    both = run(text.format(outer="parallel", inner="parallel"), {"M": 3, "N": 5}, [a], [out])
    assert torch.equal(out, a)
    assert both.source.count("tl.program_id(0)") == 1
    assert "out_j = program % N" in both.source
    ragged = text.format(outer="parallel", inner="parallel").replace("[0, N):", "[0, N - out.i):")
    out.fill_(-1)
    executable = run(ragged, {"M": 3, "N": 5}, [a], [out])
    assert out[2].tolist() == [*a[2, :3].tolist(), -1, -1]
    assert executable.notes == ("the parallel loop 'out.j' is not outermost: serial",)


def test_an_empty_grid_launches_nothing() -> None:
    run(programs.SCALE, {"M": 0, "N": 5}, [torch.empty(0, 5)], [torch.empty(0, 5)])


def test_each_kernel_of_one_func_has_a_name_of_its_own() -> None:
    block = """    if {condition}:
      gpu_block out.i{k} in [0, N):
        out[out.i{k}] = A[out.i{k}]*{k}.0:f32
"""
    conditions = ("N < 3", "(3 <= N) & (N < 5)", "5 <= N")
    parts = "".join(block.format(k=k, condition=c) for k, c in enumerate(conditions))
    text = f"program p(N; A: f32[N]) -> out: f32[N]:\n  stage out.0:\n{parts}"
    assert [k.name for k in compiled(text).kernels] == ["p_out", "p_out_1", "p_out_2"]
    for n in (2, 4, 6):
        a, out = torch.randn(n), nan(n)
        run(text, {"N": n}, [a], [out])
        assert torch.equal(out, a * {2: 0, 4: 1, 6: 2}[n])


def test_a_condition_on_data_stands_inside_the_grid() -> None:
    text = """
program chosen(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      out[out.i] = 0.0:f32
  stage out.1:
    if 0.0:f32 < A[0]:
      gpu_block out.i in [0, N):
        out[out.i] = A[out.i]
"""
    [_, second] = launches(partition(parse_program(text)))
    assert [loop.var for loop in second.grid] == ["out.i"]
    for first in (1.0, -1.0):
        a, out = torch.tensor([first, 2.0, 3.0]), nan(3)
        run(text, {"N": 3}, [a], [out])
        assert torch.equal(out, a if first > 0 else torch.zeros(3))


def test_what_a_condition_of_the_host_says_needs_no_mask() -> None:
    text = """
program p(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    if 8 <= N:
      gpu_block out.t in [0, 1):
        vectorized out.i in [0, 8):
          if out.i < N:
            out[out.i] = A[out.i]
"""
    a, out = torch.randn(9), nan(9)
    assert "mask=" not in run(text, {"N": 9}, [a], [out]).source
    assert torch.equal(out[:8], a[:8])
