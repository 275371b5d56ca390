"""Prints how many threads are started by a call alone, beside others, and in a parallel region.

Run as a module, by a test there, with OMP_NUM_THREADS=4.
"""

import ctypes
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tensorlang.backends.c import compile_program
from tensorlang.backends.c.calls import IN_FLIGHT
from tensorlang.backends.c.toolchain import find_toolchain
from tensorlang.target import Target
from tensorlang.text.loop_ir import parse_program

PROGRAM = """
program p(N; A: f32[N]) -> B: f32[N]:
  parallel x in [0, N):
    B[x] = A[x] + 1.0:f32
"""
REGION = """
typedef void (*call)(void);
void in_region(call f) {
    #pragma omp parallel num_threads(2)
    {
        #pragma omp critical
        f();
    }
}
"""


# A team lives as long as the thread that called for it.
DONE = threading.Event()


def started(work: Callable[[], None]) -> int:
    """How many threads the work leaves, done by a thread of its own that stays."""
    worked = threading.Event()

    def waiting() -> None:
        try:
            work()
        finally:
            worked.set()
        DONE.wait()

    before = len(list(Path("/proc/self/task").iterdir()))
    threading.Thread(target=waiting).start()
    worked.wait()
    return len(list(Path("/proc/self/task").iterdir())) - before - 1


def region(folder: Path) -> ctypes.CDLL:
    """A library that calls a function in a parallel region of two threads."""
    source, made = folder / "region.c", folder / "region.so"
    source.write_text(REGION)
    toolchain = find_toolchain()
    command = (*toolchain.command, *toolchain.flags, str(source), "-o", str(made))
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(made))


def main(folder: Path) -> None:
    compiled = compile_program(parse_program(PROGRAM), Target("c"))
    a = np.arange(1000, dtype=np.float32)

    def call() -> None:
        out = np.zeros_like(a)
        compiled.run({"N": a.size}, {}, [a], [out])
        assert np.array_equal(out, a + 1)

    print("alone", started(call))
    IN_FLIGHT.append(None)
    print("two", started(call))
    IN_FLIGHT.extend([None] * 6)
    print("eight", started(call))
    IN_FLIGHT.clear()
    inside = ctypes.CFUNCTYPE(None)(call)
    library = region(folder)
    print("region", started(lambda: library.in_region(inside)))
    DONE.set()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
