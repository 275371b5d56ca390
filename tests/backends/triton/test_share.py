"""What is used twice or does not change in a loop has a name; reads and mutable tiles stay put."""

import torch

from tensorlang.backends.triton import launches
from tensorlang.backends.triton.addresses import give_addresses
from tensorlang.backends.triton.build import build
from tensorlang.backends.triton.partition import partition
from tensorlang.backends.triton.share import share, walk_tiles
from tensorlang.backends.triton.tiles import Bind, Kernel, Loop, Read
from tensorlang.text.loop_ir import parse_program
from tests.backends.triton import programs
from tests.backends.triton.running import compiled, nan, run


def shared(text: str) -> list[Kernel]:
    steps = partition(parse_program(text))
    return [share(give_addresses(build(launch))) for launch in launches(steps)]


def test_what_a_loop_does_not_change_is_computed_before_it() -> None:
    [kernel] = shared(programs.LINEAR_RELU)
    [loop] = [t for t in kernel.body if isinstance(t, Loop)]
    before = {t.name for t in kernel.body[: kernel.body.index(loop)] if isinstance(t, Bind)}
    assert {"A.at", "B.at", "C.i.ok", "C.j.ok"} <= before


def test_a_read_stays_in_its_loop() -> None:
    # That it is in bounds may be known only because the loop runs an iteration.
    text = """
program repeat(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    for out.i in [0, N):
      out[out.i] = A[0]
"""
    [kernel] = shared(text)
    assert not any(isinstance(t, Read) for t in kernel.body)
    run(text, {"N": 0}, [torch.empty(0)], [torch.empty(0)])


def test_two_names_of_one_value_are_one() -> None:
    [kernel] = shared(programs.LINEAR_RELU)
    names = {t.name for t in walk_tiles(kernel.body) if isinstance(t, Bind)}
    assert "C.i" in names
    assert "D.i" not in names


def test_a_value_of_a_tile_that_changes_is_computed_again() -> None:
    text = """
program twice(N; A: f32[N]) -> out: f32[N], last: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      allocate f: f32[1]
      stage f.0:
        f[0] = A[out.i]
      out[out.i] = exp(f[0])
      stage f.1:
        f[0] = f[0] + 1.0:f32
      last[out.i] = exp(f[0])
"""
    a, out, last = torch.randn(4), nan(4), nan(4)
    run(text, {"N": 4}, [a], [out, last])
    torch.testing.assert_close(out, a.exp())
    torch.testing.assert_close(last, (a + 1).exp())


def test_a_long_sum_and_a_doubled_expression_stay_small() -> None:
    total = " + ".join(["A[out.i]"] * 400)
    text = f"""
program total(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      out[out.i] = {total}
"""
    assert compiled(text).source.count("tl.load") == 1
    doubled = "A[out.i]"
    parts = []
    for k in range(20):
        parts.append(f"t{k} = {doubled} + {doubled}")
        doubled = f"t{k}"
    text = f"""
program doubled(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      out[out.i] = {{ {"; ".join(parts)}; {doubled} }}
"""
    a, out = torch.randn(3), nan(3)
    executable = run(text, {"N": 3}, [a], [out])
    assert torch.equal(out, a * 2.0**20)
    assert len(executable.source.splitlines()) < 60
