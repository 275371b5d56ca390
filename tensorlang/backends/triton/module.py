"""Generated text as Python functions: to be compiled by Triton, or interpreted."""

import hashlib
import linecache
import types
from collections.abc import Callable
from typing import Any

from tensorlang.backends.triton.interpret import library

HEADER = """\
import triton
import triton.language as tl

from tensorlang.backends.triton import runtime as rt
"""


class Module:
    """The functions of one generated text, which debuggers and tracebacks can show."""

    def __init__(self, name: str, text: str) -> None:
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.filename = f"<tensorlang {name} {digest}>"
        linecache.cache[self.filename] = (
            len(text),
            None,
            text.splitlines(keepends=True),
            self.filename,
        )
        self._names: dict[str, Any] = {"__name__": f"tensorlang.generated.{name}"}
        exec(compile(text, self.filename, "exec"), self._names)
        self._interpreted: dict[str, Any] | None = None

    def function(self, name: str) -> Any:
        """A kernel as Triton compiles it, or the host's function."""
        return self._names[name]

    def interpreted(self, name: str) -> Callable[..., None]:
        """A kernel as plain Python, over the interpreter's runtime."""
        if self._interpreted is None:
            self._interpreted = {**self._names, "rt": library()}
        return types.FunctionType(self._names[name].fn.__code__, self._interpreted, name)
