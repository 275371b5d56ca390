"""Copies of an unrolled loop: buffers of their own, statements of their own."""

import torch

from tensorlang import Func, Input, Pipeline, Schedule, Size, Var, f32
from tensorlang.backends.triton.copies import original, tell_copies_apart
from tensorlang.ir.stmt import Allocate, Program, walk
from tensorlang.text.loop_ir import parse_program
from tests.backends.triton import programs
from tests.backends.triton.running import nan, run

# Each copy of f holds more or less than the one before, and is read at points that move.
HEAD = """
program copies(N; A: f32[N]) -> out: f32[4, N]:
  stage out.0:
    gpu_block out.t in [0, 1):
"""
COPY = """\
      if out.t < {i} + 1:
        allocate f: f32[N + {i}]
        stage f.0:
          for f.i in [0, N + {i}):
            f[f.i] = A[f.i % N] + {i}.0:f32
        for out.j in [0, N):
          out[{i}, out.j] = f[out.j + {i}]
"""
COPIES = HEAD + "".join(COPY.format(i=i) for i in (3, 0, 2, 1))


def rows_at_an_unrolled_loop() -> Program:
    """The loop over i is unrolled, and the one around it holds the buffer of f."""
    n, i, j = Size("N"), Var("i"), Var("j")
    a, f, out = Input("A", f32, [n + 8]), Func("f"), Func("out")
    f[i] = a[i] * 2
    out[i, j] = f[i + j] + f[i + j + 1]
    p = Pipeline("rows", inputs=[a], outputs={out: [4, n]})
    s = Schedule(p)
    s[out].unroll(i)
    s[f].compute_at(out, i)
    return p.lower(s)


def test_each_copy_has_a_buffer_of_its_own_extent() -> None:
    a, out = torch.arange(5, dtype=torch.float32), nan(4, 5)
    executable = run(COPIES, {"N": 5}, [a], [out])
    assert torch.equal(out, torch.stack([torch.roll(a, -i) + i for i in range(4)]))
    assert len([note for note in executable.notes if "'f' is kept in scratch" in note]) == 1


def test_names_and_statements_are_told_apart() -> None:
    apart = tell_copies_apart(rows_at_an_unrolled_loop())
    names = [s.buffer.name for s in walk(apart.body) if isinstance(s, Allocate)]
    assert len(set(names)) == 4
    assert {original(name) for name in names} == {"f"}
    statements = list(walk(apart.body))
    assert len(set(statements)) == len(statements)


def test_without_copies_nothing_changes() -> None:
    program = parse_program(programs.LINEAR_RELU)
    assert tell_copies_apart(program) is program
