"""Room for programs that nest deeply: a chain of hundreds of stages is hundreds of scopes deep."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

# Frames of Python functions live on the heap, so that a high limit costs nothing until it is used.
_FRAMES = 100_000


@contextmanager
def deep_recursion() -> Generator[None, None, None]:
    """Let passes recurse over statements however deep they nest; the limit is put back after."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
