"""`import tensorlang` is cheap and needs only numpy and lark."""

import os
import subprocess
import sys
from pathlib import Path

# Seconds of the importing thread on a processor that makes a hundred data classes in UNIT seconds:
# neither other processes nor the threads that a BLAS library starts count, and what slows the
# import (a slower processor, caches shared with other jobs) slows the making of classes as much.
LIMIT = 0.3
UNIT = 1 / 15
RUNS = 10

MEASURE = """
import time
from dataclasses import make_dataclass

def seconds_of(work):
    start = time.thread_time()
    work()
    return time.thread_time() - start

def make_classes():
    for k in range(100):
        make_dataclass(f"Made{k}", ["a", "b", "c", "d"], frozen=True, slots=True)

def load():
    import tensorlang

unit = seconds_of(make_classes)
print(seconds_of(load) / unit)
"""

WITHOUT_THE_REST = """
import sys
before = set(sys.modules)  # what site-packages' .pth files bring is not ours
from tensorlang import *
heavy = {"torch", "triton", "hypothesis", "matplotlib", "rich", "skimage", "PIL", "ml_dtypes"}
loaded = heavy & (set(sys.modules) - before)
print(*loaded)
"""


def _run(program: str, bytecode: Path) -> str:
    """What the program prints; modules are compiled once, as in any environment but a sandbox's."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_takes_less_than_the_limit(tmp_path: Path) -> None:
    _run("import tensorlang", tmp_path)
    # Another job may come or go between the two; one run under the limit is enough.
    assert any(float(_run(MEASURE, tmp_path)) < LIMIT / UNIT for _ in range(RUNS))


def test_import_brings_nothing_that_may_be_absent(tmp_path: Path) -> None:
    assert _run(WITHOUT_THE_REST, tmp_path) == ""
