"""No more threads than cores: nested loops, calls from several threads, calls from regions."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from tensorlang.backends import interpreter
from tensorlang.backends.c import compile_program
from tensorlang.backends.c.collapsing import collapse
from tensorlang.backends.c.toolchain import find_toolchain
from tensorlang.ir.facts import Facts
from tensorlang.ir.stmt import For, LoopKind, walk
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

pytestmark = pytest.mark.cc
ROOT = Path(__file__).parents[3]

NESTED = """
program p(N, M; A: f32[N, M]) -> B: f32[N, M]:
  parallel i in [0, N):
    let k = i + 1
    if k < N + 1:
      parallel j in [-1, +M):
        for r in [0, 1):
          B[k - 1, j + 1] = A[i, j + 1]*2.0:f32 + f32(i32(j))
"""


def parallel_loops(text: str) -> tuple[list[str], list[str]]:
    """The parallel loops that are left, and the notes."""
    notes: list[str] = []
    made = collapse(parse_program(text).body, Facts.none, notes.append)
    loops = [s for s in walk(made) if isinstance(s, For) and s.kind is LoopKind.PARALLEL]
    return [loop.var for loop in loops], notes


def test_loops_directly_inside_one_another_are_one_and_say_so() -> None:
    loops, (note,) = parallel_loops(NESTED)
    assert loops == ["i_j"]
    assert "'i' and 'j' are one loop" in note


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[-1, +M)", "[-1, +i)"),
        ("[-1, +M)", "[k, +M)"),
        ("k < N + 1", "0.0:f32 < A[i, 0]"),
        ("        for r in [0, 1):\n          B", "        B"),
    ],
    ids=["bounds of the outer", "bounds of a name", "data", "short"],
)
def test_others_stay_two(old: str, new: str) -> None:
    assert parallel_loops(NESTED.replace(old, new)) == (["i", "j"], [])


@pytest.mark.parametrize(("n", "m"), [(5, 7), (1, 1), (0, 3), (3, 0), (0, 0)])
def test_one_loop_computes_what_two_do(n: int, m: int) -> None:
    a = np.random.default_rng(0).random((n, m), np.float32)
    made = [np.full((n, m), 7, np.float32) for _ in range(2)]
    for backend, out in zip((compile_program, interpreter.compile_program), made, strict=True):
        backend(parse_program(NESTED), Target("c")).run({"N": n, "M": m}, {}, [a], [out])
    assert np.array_equal(*made)


def test_calls_from_several_threads_give_their_own_results() -> None:
    compiled = compile_program(parse_program(NESTED), Target("c"))
    wrong: list[int] = []

    def work(seed: int) -> None:
        a = np.random.default_rng(seed).random((60, 70), np.float32)
        for _ in range(20):
            out = np.zeros_like(a)
            compiled.run({"N": 60, "M": 70}, {}, [a], [out])
            if not np.array_equal(out, a * 2 + np.arange(-1, 69, dtype=np.float32)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux tells")
def test_threads_are_shared_by_calls_and_a_region_of_others_gets_none(tmp_path: Path) -> None:
    if not find_toolchain().machine.has_openmp:
        pytest.skip("the C compiler has no OpenMP")
    env = os.environ | {
        "OMP_NUM_THREADS": "4",
        "OMP_MAX_ACTIVE_LEVELS": "2",
        "OMP_DYNAMIC": "false",
    }
    command = (sys.executable, "-m", "tests.backends.c.teams", str(tmp_path))
    asked = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    # The calling thread is one of them; the region has one more, and its calls none.
    assert asked.stdout.split("\n")[:4] == ["alone 3", "two 1", "eight 0", "region 1"]
