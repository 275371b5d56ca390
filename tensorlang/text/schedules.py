"""Reading the text of a schedule into calls of directives, without knowing any directive."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedInput, v_args

from tensorlang.errors import ParseError
from tensorlang.span import Span


@dataclass(frozen=True, slots=True)
class DirectiveCall:
    """`s[func].update(n).keyword(*args, **named)`; number 0 is the pure definition."""

    func: str
    number: int
    keyword: str
    args: tuple[str | int, ...]
    named: dict[str, str | int]
    span: Span


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("schedules.lark").read_text()
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse_directives(text: str, path: str = "<schedule>") -> list[DirectiveCall]:
    """The directive calls of a schedule's text, in order.

    Raises: ParseError (syntax) with the line, a caret and what was expected.
    """
    lines = text.splitlines()
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as unexpected:
        raise _syntax_error(unexpected, path, lines) from None
    chains: list[list[DirectiveCall]] = _Calls(path, lines).transform(tree)
    return [call for chain in chains for call in chain]


def _syntax_error(unexpected: UnexpectedInput, path: str, lines: list[str]) -> ParseError:
    line = max(1, min(unexpected.line, len(lines)))
    source = lines[line - 1] if lines else ""
    start = min(max(unexpected.column - 1, 0), len(source))
    expected = getattr(unexpected, "accepts", None) or getattr(unexpected, "expected", set())
    names = {"LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "DOT": ".", "COMMA": ","}
    wanted = ", ".join(sorted(names.get(str(e), str(e)) for e in expected))
    return ParseError(
        "syntax",
        "this is not the text of a schedule",
        why=f"expected one of: {wanted}" if wanted else "the text ends too early",
        fix="write chains such as  s[C].update(0).split(k, ko, ki, 64).vectorize(ki)",
        span=Span(path, line, start, start + 1, source),
    )


class _Calls(Transformer[Token, Any]):
    """Parse tree -> DirectiveCalls."""

    def __init__(self, path: str, lines: list[str]) -> None:
        super().__init__()
        self._path, self._lines = path, lines

    def name(self, items: list[Token]) -> str:
        return str(items[0])

    def number(self, items: list[Token]) -> int:
        return int(items[0])

    def string(self, items: list[Token]) -> str:
        return str(items[0])[1:-1]

    def keyword(self, items: list[Token]) -> tuple[str, str | int]:
        key, value = items
        if value.type == "SIGNED_INT":
            return str(key), int(value)
        return str(key), str(value).strip("\"'")

    @v_args(meta=True)
    def call(self, meta: Any, items: list[Any]) -> tuple[str, list[Any], Span]:
        source = self._lines[meta.line - 1]
        end = meta.end_column - 1 if meta.end_line == meta.line else len(source)
        span = Span(self._path, meta.line, meta.column - 1, end, source)
        return str(items[0]), [a for a in items[1:] if a is not None], span

    def chain(self, items: list[Any]) -> list[DirectiveCall]:
        # The name before `=` is the one that the directive gives in any case.
        func, number, calls = str(items[1]), 0, list[DirectiveCall]()
        for keyword, arguments, span in items[2:]:
            args = tuple(a for a in arguments if not isinstance(a, tuple))
            named = dict(a for a in arguments if isinstance(a, tuple))
            if keyword == "update":
                number = 1 + (args[0] if args and isinstance(args[0], int) else 0)
                continue
            calls.append(DirectiveCall(func, number, keyword, args, named, span))
        return calls

    def start(self, items: list[list[DirectiveCall]]) -> list[list[DirectiveCall]]:
        return items
