"""A C function of the prelude, before it has a name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tensorlang.backends.c.types import CType


@dataclass(frozen=True, slots=True)
class Definition:
    """static inline `result` name(`parameters`) { `body` }; no result is void.

    A parameter whose name begins with a star is a pointer to its type.
    """

    result: CType | None
    parameters: tuple[tuple[CType, str], ...]
    body: str
    returns_pointer: bool = False

    def text(self, name: str) -> str:
        """The function as C."""
        result = self.result.name if self.result else "void"
        star = "*" if self.returns_pointer else ""
        parameters = ", ".join(f"{t.name} {p}" for t, p in self.parameters)
        body = "\n".join(
            line if line.startswith("#") or not line else "    " + line
            for line in self.body.splitlines()
        )
        return f"static inline {result} {star}{name}({parameters}) {{\n{body}\n}}"


class Asking(Protocol):
    """What defines the types and helpers that a definition needs."""

    def type(self, t: CType) -> str:
        """The C name of a type."""
        ...

    def helper(self, op: str, t: CType) -> str:
        """The name of the function that does `op` on `t`."""
        ...


Make: TypeAlias = Callable[[Asking, CType], Definition]
Table: TypeAlias = dict[str, Make]
