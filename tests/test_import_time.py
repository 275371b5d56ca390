"""`import tensorlang` is cheap and needs only numpy and lark."""

import subprocess
import sys

# Of the processor, not of the clock: other processes on the machine do not count.
LIMIT = 0.3
RUNS = 10

MEASURE = """
import time
start = time.process_time()
import tensorlang
print(time.process_time() - start)
"""

WITHOUT_THE_REST = """
import sys
before = set(sys.modules)  # what site-packages' .pth files bring is not ours
import tensorlang
heavy = {"torch", "triton", "hypothesis", "matplotlib", "rich", "skimage", "PIL", "ml_dtypes"}
print(*sorted(heavy & (set(sys.modules) - before)))
"""


def _run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_takes_less_than_the_limit() -> None:
    # A processor shared with other jobs has cold caches, so one run under the limit is enough.
    assert any(float(_run(MEASURE)) < LIMIT for _ in range(RUNS))


def test_import_brings_nothing_that_may_be_absent() -> None:
    assert _run(WITHOUT_THE_REST) == ""
