"""What is proved of loops and guards is not tested again; nothing else is left out."""

import torch

from tensorlang.backends.triton.masks import Knowledge, conjuncts, knowledge_of
from tensorlang.ir.expr import Size, Var
from tensorlang.ir.linear import integer
from tests.backends.triton.running import compiled, nan, run

i, j, N, M = Var("i"), Var("j"), Size("N"), Size("M")


def test_a_loop_variable_is_in_its_range() -> None:
    known = knowledge_of(["N"]).ranged("i", integer(0), N)
    assert known.proves(i < N)
    assert not known.proves(i + 1 < N)
    assert known.proves(integer(0) <= i)


def test_a_witness_refutes_what_fails_in_the_last_iteration() -> None:
    known = knowledge_of(["N"]).ranged("i", integer(0), (N + 7) // 8).valued("j", i * 8 + 7)
    assert known.fails(j < N)
    assert not known.fails(i < N)


def test_an_assumption_is_known() -> None:
    known = Knowledge().assuming(M <= N).ranged("i", integer(0), M)
    assert known.proves(i < N)


def test_a_quotient_and_a_remainder_by_0_are_0() -> None:
    known = knowledge_of([]).ranged("i", integer(0), integer(9))
    for e in (i // 0, i % 0):
        assert known.fails(integer(0) < e)
        assert not known.fails(e <= 0)


def test_conjuncts_keep_their_order() -> None:
    assert conjuncts((i < N) & (j < N) & (i < j)) == [i < N, j < N, i < j]


def test_only_the_unproved_side_of_a_stencil_is_tested() -> None:
    text = """
program shift(N; A: f32[N + 2]) -> out: f32[N]:
  stage out.0:
    gpu_block out.io in [0, (N + 3)//4):
      vectorized out.ii in [0, 4):
        let out.i = out.io*4 + out.ii
        if out.i < N:
          out[out.i] = A[out.i + 2] - A[out.i]
"""
    source = compiled(text).source
    assert "0 <=" not in source
    assert "N + 2" in source
    a, out = torch.randn(9), nan(7)
    run(text, {"N": 7}, [a], [out])
    assert torch.equal(out, a[2:] - a[:-2])


def test_a_guarded_load_outside_the_array_is_masked() -> None:
    text = """
program edge(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    vectorized out.i in [0, 16):
      if out.i < N:
        out[out.i] = select(1 <= out.i, A[out.i - 1], 0.0:f32)
"""
    a, out = torch.randn(9), nan(9)
    run(text, {"N": 9}, [a], [out])
    assert torch.equal(out, torch.cat([torch.zeros(1), a[:-1]]))
