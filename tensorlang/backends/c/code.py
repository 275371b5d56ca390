"""Lines of C, indented as they are nested."""

from collections.abc import Generator
from contextlib import contextmanager


class Code:
    """C text under construction."""

    def __init__(self, depth: int = 1) -> None:
        self._lines: list[str] = []
        self._depth = depth

    def line(self, text: str) -> None:
        """One line (or several, for a text that has newlines)."""
        for part in text.split("\n"):
            self._lines.append("    " * self._depth + part if part else "")

    @contextmanager
    def block(self, head: str = "", tail: str = "") -> Generator[None]:
        """`head { ... } tail`"""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}" + (f" {tail}" if tail else ""))

    @contextmanager
    def else_block(self) -> Generator[None]:
        """`else { ... }`, joined to the brace that the last line closed."""
        assert self._lines[-1].strip() == "}"
        self._lines[-1] += " else {"
        self._depth += 1
        yield
        self._depth -= 1
        self.line("}")

    def pragma(self, text: str) -> None:
        """A preprocessor line."""
        self.line(f"#pragma {text}")

    def text(self) -> str:
        """All lines."""
        return "\n".join(self._lines) + "\n"
