"""A text: the tree of words that the grammar finds in it, and errors that point into it."""

import re
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex
from lark.lexer import PatternStr

from tensorlang.errors import ParseError
from tensorlang.span import Span

_ENDS = {"$END": "the end of the text", "_NL": "the end of the line", "_DEDENT": "the suite's end"}
_TERMINALS = {
    **_ENDS,
    **dict.fromkeys(("COMPARE", "OR", "XOR", "AND", "SHIFT", "SUM", "PRODUCT"), "an operator"),
    "UPDATE": "`+=`",
    "NAME": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
    "STRING": 'a "string"',
    "TYPED": "a constant as 1.5:f32",
    "PREFIX": "`-` or `~`",
    "_INDENT": "an indented line",
}

# What is written where the ends of lines mean nothing, with a short text of each.
_EXAMPLES = {
    "module": "write algorithm p(a: f32[N]) -> f[N] { f[i] = a[i]*2 }, and "
    "schedule fast for p { s[f].vectorize(i) }",
    "schedule": "write chains such as s[C].update(0).split(k, ko, ki, 64).vectorize(ki)",
}
_FREE = frozenset(_EXAMPLES)

# A line that is a comment: its indentation means nothing.
_NOTE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)

# A line longer than this is shown in part, around the word that is wrong.
_SHOWN = 100


class Source:
    """A text to parse; an indentation that all its lines share does not count."""

    def __init__(self, text: str, path: str) -> None:
        without_notes = _NOTE.sub("", text)
        self.text, self.path = textwrap.dedent(without_notes).rstrip() + "\n", path
        self.lines = self.text.split("\n")

    def tree(self, start: str) -> Tree[Token]:
        """The tree of words that the rule `start` finds."""
        # Lark's own annotations leave the kind of its tokens open.
        parser: Any = _parser(start)
        try:
            return parser.parse(self.text)
        except UnexpectedToken as error:
            found: Token = error.token  # pyright: ignore[reportUnknownMemberType]
            accepted = error.accepts
        except UnexpectedCharacters as error:
            found = Token("", self.lines[error.line - 1][error.column - 1 :][:1])
            found.line, found.column, accepted = error.line, error.column, error.allowed or set()
        raise self._unexpected(found, accepted, start)

    def span(self, at: Token | Tree[Token]) -> Span:
        """The place of a word, or of all the words of a tree that stand in its first line."""
        if isinstance(at, Tree):
            first, column = at.meta.line, at.meta.column
            end = at.meta.end_column if at.meta.end_line == first else None
        else:
            first, column = at.line or len(self.lines), at.column
            end = None if column is None else column + len(at.split("\n", maxsplit=1)[0])
        line = min(first, len(self.lines))
        text = self.lines[line - 1]
        start = min((column or len(text) + 1) - 1, len(text))
        stop = max(start + 1, len(text) if end is None else end - 1)
        if len(text) > _SHOWN:
            cut = max(0, start - _SHOWN // 2)
            text, start, stop = text[cut : cut + _SHOWN], start - cut, stop - cut
        return Span(self.path, line, start, stop, text)

    def error(
        self, code: str, what: str, at: Token | Tree[Token], *, why: str, fix: str
    ) -> ParseError:
        """A ParseError whose caret points at a word, or at the words of a tree."""
        return ParseError(code, what, why=why, fix=fix, span=self.span(at))

    def _unexpected(self, found: Token, accepted: Iterable[str], start: str) -> ParseError:
        if found.type == "_NO_SUITE":
            return self.error(
                "bad-indentation",
                "this line is indented like none above it",
                found,
                why="a line belongs to the suite whose lines begin in its column",
                fix="give it the indentation of a line above it",
            )
        what = _ENDS.get(found.type) or f"`{found}`"
        accepted = set(accepted) - ({"_NL"} if start in _FREE else set())
        *others, last = sorted({_shown(terminal, start) for terminal in accepted}) or ["nothing"]
        choice = f"{', '.join(others)} or {last}" if others else last
        return self.error(
            "unexpected-text",
            f"{what} cannot stand here",
            found,
            why=f"what may stand here is {choice}",
            fix=_EXAMPLES.get(start, "compare with what printing such a thing gives"),
        )


class _Indentation(PostLex):
    """Puts _INDENT and _DEDENT where the indentation of lines changes, but not within brackets."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        columns, depth, token = [0], 0, Token("_NL", "")
        for token in stream:
            depth += (token.type in ("LPAR", "LSQB", "LBRACE")) - (
                token.type in ("RPAR", "RSQB", "RBRACE")
            )
            if token.type != "_NL":
                yield token
            elif depth <= 0:
                yield token
                yield from _indents(token, columns)
        for _ in columns[1:]:
            yield _at_end_of(token, "_DEDENT")


def _indents(newline: Token, columns: list[int]) -> Iterator[Token]:
    """The tokens for the indentation after a newline; `columns` holds those of the open suites."""
    column = len(newline.rsplit("\n", 1)[1].expandtabs())
    if column > columns[-1]:
        columns.append(column)
        yield _at_end_of(newline, "_INDENT")
    while column < columns[-1]:
        columns.pop()
        yield _at_end_of(newline, "_DEDENT" if column <= columns[-1] else "_NO_SUITE")


def _at_end_of(token: Token, kind: str) -> Token:
    return Token(kind, "", line=token.end_line, column=token.end_column)


class _FreeLines(PostLex):
    """Drops the ends of lines."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        return (token for token in stream if token.type != "_NL")


@cache
def _parser(start: str) -> Lark:
    grammar = (files("tensorlang.text") / "grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        start=start,
        postlex=_FreeLines() if start in _FREE else _Indentation(),
        propagate_positions=True,
        maybe_placeholders=False,
    )


def _shown(terminal: str, start: str) -> str:
    if terminal in _TERMINALS:
        return _TERMINALS[terminal]
    pattern = _parser(start).get_terminal(terminal).pattern
    return f"`{pattern.value}`" if isinstance(pattern, PatternStr) else terminal.lower()
