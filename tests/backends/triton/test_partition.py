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
