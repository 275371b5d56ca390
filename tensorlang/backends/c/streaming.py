"""Stores past the caches: of what is written once and read by nothing that runs soon.

A cache line that is stored whole need not be read before, and what is not read again need not push
out what is.  `s[f].cache("streaming")` asks for it: nothing else knows that what reads f comes
late, and that the array is aligned and has its pages.  Vectors that are not aligned to their size
are stored as ever.
"""

from tensorlang.backends.c.allocations import is_small
from tensorlang.backends.c.code import Code
from tensorlang.ir.stmt import Allocate, Program, walk

_STREAMING = ("cache", "streaming")


def asked_to_stream(program: Program) -> frozenset[str]:
    """The buffers beyond a thread's stack that the schedule wants stored past the caches."""
    allocated = [s.buffer for s in walk(program.body) if isinstance(s, Allocate)]
    buffers = (*program.outputs, *(b for b in allocated if not is_small(b)))
    return frozenset(b.name for b in buffers if _STREAMING in b.hints)


def write_fence(code: Code) -> None:
    """What was streamed is seen by other threads before what is stored from here on."""
    code.line("#if defined(__SSE__)")
    code.line("__builtin_ia32_sfence();")
    code.line("#endif")
