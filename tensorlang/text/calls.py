"""The words of a schedule as they were read: calls of directives, without knowing any directive."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.ir.expr import Expr, Operand
from tensorlang.span import Span

VERSION = "1"
HEADER = f"# tensorlang schedule {VERSION}"


@dataclass(frozen=True, slots=True)
class Written:
    """An argument that is more than a name, a number or a string.

    Args: read: gives the expression, from Sizes and Params by name.
    """

    read: Callable[[Mapping[str, Expr]], Operand]


Argument: TypeAlias = str | int | Written


@dataclass(frozen=True, slots=True)
class DirectiveCall:
    """`s[func].update(n).keyword(*args, **named)`; number 0 is the pure definition.

    `inside`: the calls of `specialize` before it in its chain.
    """

    func: str
    number: int
    keyword: str
    args: tuple[Argument, ...]
    named: dict[str, Argument]
    span: Span
    inside: "tuple[DirectiveCall, ...]" = ()
