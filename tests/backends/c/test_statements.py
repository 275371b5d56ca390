"""Small loop programs, with what vector code can get wrong, in C and in the interpreter."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorlang.backends import interpreter
from tensorlang.backends.c import compile_program
from tensorlang.ir.stmt import Program
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program
from tests.backends.c.programs import PARAMS, PROGRAMS, SIZES, array_of, outputs_of

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.cc


def agree(program: Program, sizes: dict[str, int], inputs: list[np.ndarray]) -> None:
    """The C backend gives what the interpreter gives; sums within rounding."""
    sizes = {size.name: sizes[size.name] for size in program.sizes}
    params = {param.name: PARAMS[param.name] for param in program.params}
    got, want = outputs_of(program, sizes), outputs_of(program, sizes)
    compile_program(program, Target("c")).run(sizes, params, inputs, got)
    interpreter.compile_program(program, Target("interpreter")).run(sizes, params, inputs, want)
    for a, b in zip(got, want, strict=True):
        if program.name == "sum":
            np.testing.assert_allclose(a, b, rtol=1e-5)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_c_computes_what_the_interpreter_computes(name: str) -> None:
    program = parse_program(PROGRAMS[name])
    for sizes in SIZES:
        agree(program, sizes, [array_of(b, sizes, k) for k, b in enumerate(program.inputs)])


@pytest.mark.parametrize("name", ["a tail that no vector fits", "a clamped index", "a histogram"])
def test_arrays_of_any_strides(name: str) -> None:
    program = parse_program(PROGRAMS[name])
    sizes = {"N": 37, "K": 151}
    for view in (lambda a: np.repeat(a, 3)[::3], lambda a: a[::-1]):
        inputs = [view(array_of(b, sizes, k)) for k, b in enumerate(program.inputs)]
        agree(program, sizes, inputs)


def test_an_input_of_stride_zero() -> None:
    program = parse_program(PROGRAMS["a tail that no vector fits"])
    agree(program, {"N": 37}, [np.broadcast_to(np.float32(2.5), (37,))])


def test_a_load_whose_guard_needs_the_load() -> None:
    """Neither of two loads can be made before the other's guard is known: branches decide."""
    program = parse_program("""
program p(N; A: bool[N], C: bool[N], X: f32[N]) -> B: f32[N], D: f32[N]:
  vectorized i in [0, N):
    let a = A[i]
    let c = C[i]
    let s = select(a, select(c, X[i], 1.0:f32), 2.0:f32)
    let t = select(c, select(a, X[i], 3.0:f32), 4.0:f32)
    B[i] = select(X[i] < 0.5:f32, s, t)
  for i in [0, N):
    D[i] = select(X[i] < 0.5:f32, select(A[i], select(C[i], 1.0:f32, 5.0:f32), 2.0:f32), \
select(C[i], select(A[i], 3.0:f32, 6.0:f32), 4.0:f32))
""")
    for sizes in SIZES:
        agree(program, sizes, [array_of(b, sizes, k) for k, b in enumerate(program.inputs)])


def test_what_no_lane_changes_is_stored_once() -> None:
    text = """
program p(N; A: f32[N]) -> B: f32[N], C: f32[1]:
  vectorized x in [0, 8):
    B[x] = A[x]
    C[0] = A[0] + 1.0:f32
"""
    made = compile_program(parse_program(text), Target("c"))
    assert "C[0] = A[0] + 1.0f;" in made.source
    assert "for (" not in made.source
    a, b, c = np.arange(8, dtype=np.float32), np.zeros(8, np.float32), np.zeros(1, np.float32)
    made.run({"N": 8}, {}, [a], [b, c])
    assert np.array_equal(b, a)
    assert c[0] == 1


GUARDED_SUM = """
program p(N, M; A: f32[M]) -> B: f32[N]:
  for i in [0, 8):
    for reduction k in [0, 4):
      if CONDITION:
        B[i] = B[i] + A[i + k]
"""


@pytest.mark.parametrize("condition", ["i + k < N", "k % 3 == 0", "A[k] < 0.5:f32"])
def test_what_a_guard_may_keep_from_being_touched_is_not_held_in_a_variable(condition: str) -> None:
    """Of N = 3 elements 3 to 7 are not there, though `i + k < N` depends on the loop that adds."""
    program = parse_program(GUARDED_SUM.replace("CONDITION", condition))
    source = compile_program(program, Target("c")).source
    # The version for where the guard holds in all iterations, or else the only one.
    assert source.count("float B_held") == 1
    if condition == "i + k < N":
        assert "float B_held" in source.split("if (0 < N - 10) {")[1].split("} else {")[0]


@pytest.mark.parametrize(
    "guard",
    ["let m = i + k\n      if m < N:", "for q in [0, N - i - k):"],
    ids=["through a name", "as the extent of an inner loop"],
)
def test_a_guard_is_seen_in_any_form(guard: str) -> None:
    program = parse_program(GUARDED_SUM.replace("if CONDITION:", guard))
    *_, slow = compile_program(program, Target("c")).source.split("for (int64_t i = 0;")
    assert "B_held" not in slow.split("for (int64_t k = 0;")[0]
    b = np.zeros(3, np.float32)
    compile_program(program, Target("c")).run({"N": 3, "M": 12}, {}, [np.ones(12, "f4")], [b])
    assert b[2] == 1


def test_what_a_select_guards_is_not_loaded_ahead_for_several_statements() -> None:
    sums = "".join(
        f"""
    vectorized j in [0, 8):
      C[{i}, j] = C[{i}, j] {sign} select(A[k] < 0.5:f32, B[k, j], 0.0:f32)*A[k]"""
        for i, sign in enumerate("+-")
    )
    text = f"""
program p(N, M; A: f32[N], B: f32[M, 8]) -> C: f32[2, 8]:
  for reduction k in [0, N):{sums}
"""
    guarded = compile_program(parse_program(text), Target("c")).source
    assert "B_held" not in guarded
    free = text.replace("select(A[k] < 0.5:f32, B[k, j], 0.0:f32)", "B[k, j]")
    assert "B_held" in compile_program(parse_program(free), Target("c")).source


def test_nothing_beyond_an_array_is_read_or_written() -> None:
    command = [sys.executable, "-m", "tests.backends.c.walled"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert asked.stdout.endswith("done\n"), f"{asked.stdout[-100:]}\n{asked.stderr[-2000:]}"
