"""Where in the user's file a thing was written."""

import functools
import linecache
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType

_PACKAGE = str(Path(__file__).parent) + os.sep
# Of the standard library, what stands between a user's line and ours: cached properties.
_BETWEEN = frozenset({functools.__file__})


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a source file: 1-based line, 0-based half-open columns (-1: unknown)."""

    path: str
    line: int
    start: int = -1
    end: int = -1
    # Text that is not on disk (a parsed string, a notebook cell) carries its own line.
    text: str | None = None

    def source(self) -> str:
        """The line of source, without its newline; empty when it cannot be read."""
        line = self.text if self.text is not None else linecache.getline(self.path, self.line)
        return line.rstrip("\n")

    def show(self) -> str:
        """`--> file:line:column`, the line, and carets under the columns."""
        column = f":{self.start + 1}" if self.start >= 0 else ""
        source = self.source()
        shown = f"  --> {_short(self.path)}:{self.line}{column}"
        if not source.strip():
            return shown
        stripped = source.lstrip()
        shown += f"\n      {stripped}"
        if self.start >= 0:
            indent = self.start - (len(source) - len(stripped))
            width = max(1, (self.end if self.end > self.start else len(source)) - self.start)
            width = min(width, max(1, len(stripped) - indent))
            shown += "\n      " + " " * indent + "^" * width
        return shown


_reading: ContextVar[Span | None] = ContextVar("reading", default=None)


@contextmanager
def reading(span: Span) -> Generator[None]:
    """While a text is read, the user's line is a line of that text."""
    token = _reading.set(span)
    try:
        yield
    finally:
        _reading.reset(token)


def caller_span() -> Span | None:
    """The user's line: of the text that is read, else the innermost outside this package."""
    read = _reading.get()
    if read is not None:
        return read
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    if frame is None:
        return None
    return _span_of(frame.f_code, frame.f_lasti, frame.f_lineno)


def _is_ours(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    if package == "torch":
        # It calls the operators that we give it.
        return True
    if path.startswith("<"):
        # No file: the __init__ that dataclasses write, and what a user gives to `python -c`.
        return package == "tensorlang" or path.startswith("<frozen ")
    return path.startswith(_PACKAGE) or path in _BETWEEN


def _span_of(code: CodeType, lasti: int, lineno: int) -> Span:
    # co_positions yields one entry an instruction, two bytes each; columns count UTF-8 bytes.
    for line, end_line, start, end in islice(code.co_positions(), lasti // 2, lasti // 2 + 1):
        if line is None or start is None or end is None:
            break
        source = linecache.getline(code.co_filename, line).encode()
        last = end if end_line == line else len(source.rstrip())
        columns = (len(source[:n].decode(errors="replace")) for n in (start, last))
        return Span(code.co_filename, line, next(columns), next(columns))
    return Span(code.co_filename, lineno)


def _short(path: str) -> str:
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except ValueError:
        return path
