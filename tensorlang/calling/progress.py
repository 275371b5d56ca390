"""How far a long compilation is, on the terminal."""

import sys

_WIDTH = 30


def show_progress(done: int, total: int) -> None:
    """[###############---------------] 5/10 kernels compiled"""
    full = _WIDTH * done // total
    bar = "#" * full + "-" * (_WIDTH - full)
    end = "\n" if done == total else ""
    sys.stderr.write(f"\r[{bar}] {done}/{total} kernels compiled{end}")
    sys.stderr.flush()
