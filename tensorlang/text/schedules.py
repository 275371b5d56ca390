"""Reading the text of a schedule into calls of directives, without knowing any directive."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from tensorlang.errors import ParseError
from tensorlang.span import Span
from tensorlang.text.calls import VERSION, Argument, DirectiveCall, Written
from tensorlang.text.expressions import Node, subtrees, unquoted, words
from tensorlang.text.source import Source
from tensorlang.text.surface import Surface

_HEADER = re.compile(r"\s*# tensorlang (schedule|module)\s+(\S+)")


def parse_directives(text: str, path: str = "<schedule>") -> list[DirectiveCall]:
    """The directive calls of a schedule's text, in order.

    Raises: ParseError: unknown-version, unexpected-text, bad-update.
    """
    source = Source(text, path)
    check_version(text, source)
    return list(read_directives(subtrees(source.tree("schedule")), source))


def check_version(text: str, source: Source) -> None:
    """Refuse a text whose header names another version of the language than this one."""
    header = _HEADER.match(text)
    if header is None or header[2] == VERSION:
        return
    line = text[: header.end()].count("\n") + 1
    whole = text.splitlines()[line - 1]
    raise ParseError(
        "unknown-version",
        f"this is a {header[1]} of version {header[2]}",
        why=f"this tensorlang reads version {VERSION}",
        fix="print it again with the tensorlang that is to read it, or install the one that wrote "
        "it",
        span=Span(source.path, line, whole.rindex(header[2]), len(whole.rstrip()), whole),
    )


def read_directives(chains: list[Node], source: Source) -> Iterator[DirectiveCall]:
    """The directive calls of chains."""
    for chain in chains:
        # The name before `=` is the one that the directive gives in any case.
        func, number = unquoted(words(chain)[-1]), 0
        inside: tuple[DirectiveCall, ...] = ()
        for tree in subtrees(chain):
            call = replace(_call(func, number, tree, source), inside=inside)
            if call.keyword != "update":
                yield call
                inside += (call,) if call.keyword == "specialize" else ()
                continue
            (update,) = call.args if len(call.args) == 1 and not call.named else (-1,)
            if type(update) is not int or update < 0:
                raise source.error(
                    "bad-update",
                    "update does not take these arguments",
                    tree,
                    why="updates are numbered from 0",
                    fix=f"s[{func}].update(0)",
                )
            number, inside = update + 1, ()


def _call(func: str, number: int, tree: Node, source: Source) -> DirectiveCall:
    args = tuple(_value(t, source) for t in subtrees(tree) if t.data == "option")
    given = (t for t in subtrees(tree) if t.data == "given")
    named = {unquoted(words(t)[0]): _value(t, source) for t in given}
    return DirectiveCall(func, number, unquoted(words(tree)[0]), args, named, source.span(tree))


def _value(tree: Node, source: Source) -> Argument:
    """What an option, or what follows the name of one, is."""
    whole = subtrees(tree)
    if not whole:
        return json.loads(words(tree)[-1])
    (inner,) = subtrees(whole[0])
    if inner.data == "name":
        return unquoted(words(inner)[0])
    if inner.data == "constant" and words(inner)[0].type == "INT":
        return int(words(inner)[0])
    tree = whole[0]
    return Written(lambda names: Surface(source, {}).operand(tree, names))
