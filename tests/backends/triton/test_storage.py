"""Registers when every access is a lane or a constant point of each dimension, else scratch."""

import pytest
import torch

from tensorlang.backends.triton.build import build
from tensorlang.backends.triton.partition import partition
from tensorlang.backends.triton.spans import measure_spans
from tensorlang.backends.triton.storage import InRegisters, InScratch, Placement, place_buffers
from tensorlang.ir.facts import Facts
from tensorlang.text.loop_ir import parse_program
from tests.backends.triton import programs
from tests.backends.triton.running import nan, run

TILE = """
program copy(N; A: f32[N, N]) -> out: f32[N, N]:
  stage out.0:
    gpu_block out.t in [0, (N + 7)//8):
      allocate f: f32[out.t*8 : +8, 8]
      stage f.0:
        vectorized f.i in [out.t*8, +8):
          vectorized f.j in [0, 8):
            if (f.i < N) & (f.j < N):
              f[f.i, f.j] = A[f.i, f.j] + 1.0:f32
      {consumer}
"""


def placement(consumer: str) -> Placement:
    program = parse_program(TILE.format(consumer=consumer))
    return place_buffers(program.body, measure_spans(program.body, frozenset("N"), Facts.none))["f"]


@pytest.mark.parametrize(
    "consumer",
    [
        # At the same coordinates, from a loop of its own.
        """vectorized out.i in [0, 8):
        vectorized out.j in [0, 8):
          out[out.t*8 + out.i, out.j] = f[out.t*8 + out.i, out.j]""",
        # Transposed.
        """vectorized out.j in [0, 8):
        vectorized out.i in [0, 8):
          out[out.j, out.t*8 + out.i] = f[out.t*8 + out.i, out.j]""",
        # Under a serial loop that does not index it.
        """for out.k in [0, N):
        vectorized out.i in [0, 8):
          vectorized out.j in [0, 8):
            out[out.k, out.j] = f[out.t*8 + out.i, out.j]""",
    ],
    ids=["same", "transposed", "in a loop"],
)
def test_whole_dimensions_are_registers(consumer: str) -> None:
    assert placement(consumer) == InRegisters((0, 1))


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("out.t*8 + out.i, out.i", "two of its dimensions"),
        ("out.t*8 + out.i, 7 - out.i", "not indexed by a lane"),
        ("out.t*8 + out.i, out.s", "serial loop"),
        ("out.t*8 + out.i, 3", "both as a whole and at a point"),
        ("out.t*8 + out.i, out.h + 2", "not indexed by a lane"),
        ("out.t*8 + out.h, out.w", "another extent"),
    ],
)
def test_other_accesses_are_scratch(index: str, why: str) -> None:
    found = placement(f"""for out.s in [0, 8):
        vectorized out.i in [0, 8):
          vectorized out.h in [0, 4):
            vectorized out.w in [0, 16):
              out[out.t*8 + out.i, out.h] = f[{index}]""")
    assert isinstance(found, InScratch)
    assert why in found.why


@pytest.mark.parametrize("part", ["out.h", "out.h + 4"])
def test_an_aligned_part_of_a_dimension_is_in_registers(part: str) -> None:
    found = placement(f"""vectorized out.i in [0, 8):
        vectorized out.h in [0, 4):
          out[out.t*8 + out.i, {part}] = f[out.t*8 + out.i, {part}]""")
    assert found == InRegisters((0, 1))


def test_constant_points_are_variables_of_their_own() -> None:
    text = """
program pair(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      allocate f: f32[2]
      stage f.0:
        f[0] = A[out.i] + 1.0:f32
        f[1] = A[out.i]*2.0:f32
      out[out.i] = f[0]*f[1]
"""
    a, out = torch.randn(5), nan(5)
    executable = run(text, {"N": 5}, [a], [out])
    assert torch.equal(out, (a + 1) * (a * 2))
    assert executable.notes == ()
    assert "f_1 = " in executable.source


@pytest.mark.parametrize("extent", ["N", "4"])
def test_a_point_that_may_lie_outside_the_region_is_in_no_register(extent: str) -> None:
    program = parse_program(f"""
program pair(N; A: f32[N]) -> out: f32[N]:
  stage out.0:
    gpu_block out.i in [0, N):
      allocate f: f32[{extent}]
      stage f.0:
        f[4] = A[out.i]
      out[out.i] = f[4]
""")
    spans = measure_spans(program.body, frozenset("N"), Facts.none)
    found = place_buffers(program.body, spans)["f"]
    assert isinstance(found, InScratch)
    assert "outside its region" in found.why


def test_a_transposed_read_gives_the_values() -> None:
    consumer = """vectorized out.j in [0, 8):
        vectorized out.i in [0, 8):
          if (out.t*8 + out.i < N) & (out.j < N):
            out[out.j, out.t*8 + out.i] = f[out.t*8 + out.i, out.j]"""
    a, out = torch.randn(7, 7), nan(7, 7)
    executable = run(TILE.format(consumer=consumer), {"N": 7}, [a], [out])
    assert torch.equal(out, (a + 1).T)
    assert "tl.trans(f)" in executable.source


def test_scratch_has_a_part_for_each_program_and_says_why() -> None:
    [launch] = partition(parse_program(programs.BLUR_AT_TILE))
    kernel = build(launch)
    [scratch] = kernel.scratch
    assert scratch.memory.parameter == "bx"
    [note] = kernel.notes
    assert "'bx' is kept in scratch memory" in note
