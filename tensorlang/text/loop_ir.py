"""Reads what `tensorlang.ir.printer` writes: `parse_program(print_program(p))` is `p` again.

The grammar (grammar.lark) gives a tree of words.  Statements are read from the top down, since
what a name means was bound above it; expressions, which may be deep, without recursion.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Literal

from tensorlang.ir.expr import Const, Expr, Name, Param, Size, Var
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Buffer,
    Dim,
    For,
    Hints,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    block,
)
from tensorlang.ir.types import index
from tensorlang.ir.verify import fault_of
from tensorlang.text.expressions import (
    Node,
    buffer_named,
    dtype_named,
    read_expression,
    subtrees,
    unquoted,
    words,
)
from tensorlang.text.source import Source

_ZERO = Const(0, index)
_ERRORS: dict[str, Literal["ShapeError", "BoundsError"]] = {
    "ShapeError": "ShapeError",
    "BoundsError": "BoundsError",
}


def parse_program(text: str, path: str = "<loop IR>") -> Program:
    """The program that a text is.

    Args: path: what errors call the text.
    Raises: ParseError: unexpected-text, bad-indentation, unknown-name, ill-typed, bad-constant,
        no-such-component, wrong-count, not-from-zero, not-a-program (grammatical, but not valid).
    """
    source = Source(text, path)
    return _Reader(source).program(source.tree("program"))


def parse_expr(text: str, names: Mapping[str, Name | Buffer], path: str = "<expression>") -> Expr:
    """The expression that a text is, its names and buffers being those of `names`.

    Raises: ParseError: as parse_program.
    """
    source = Source(text.strip(), path)
    return read_expression(subtrees(source.tree("alone"))[0], names, source)


class _Reader:
    """Trees -> statements; `scope` holds what the statements around one have bound."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scope: dict[str, Name | Buffer] = {}

    def program(self, tree: Node) -> Program:
        header = words(tree)[0]
        parts = {kind: [t for t in subtrees(tree) if t.data == kind] for kind in _PARTS}
        sizes = tuple(Size(unquoted(words(t)[0])) for t in parts["size"])
        params = tuple(self._param(t) for t in parts["param"])
        self.scope.update((scalar.name, scalar) for scalar in (*sizes, *params))
        inputs = tuple(self._buffer(t) for t in parts["buffer"])
        outputs = tuple(self._buffer(t) for part in parts["outputs"] for t in subtrees(part))
        self.scope.update((buffer.name, buffer) for buffer in (*inputs, *outputs))
        body = self._suite(parts["suite"][0])
        program = Program(unquoted(header), sizes, params, inputs, outputs, body)
        fault = fault_of(program)
        if fault is not None:
            raise self.source.error(
                "not-a-program",
                f"`{header}` is not valid loop IR",
                header,
                why=fault,
                fix="the rules are those of tensorlang.ir.verify",
            )
        return program

    def _param(self, tree: Node) -> Param:
        name, dtype = words(tree)
        return Param(unquoted(name), dtype_named(dtype, self.source))

    def _suite(self, tree: Node) -> Stmt:
        return self._statements(subtrees(tree))

    def _statements(self, trees: list[Node]) -> Stmt:
        """The statements in order; a Let or Allocate with no suite of its own has the rest."""
        done: list[Stmt] = []
        for k, tree in enumerate(trees):
            if tree.data in ("let", "allocate"):
                own = subtrees(tree)[-1]
                rest = trees[k + 1 :] if own.data != "suite" else subtrees(own)
                done.append(
                    self._let(tree, rest) if tree.data == "let" else self._allocate(tree, rest)
                )
                if own.data != "suite":
                    break
            else:
                done.append(self._statement(tree))
        return block(*done)

    def _let(self, tree: Node, rest: list[Node]) -> Stmt:
        name = unquoted(words(tree)[0])
        value = self._expr(subtrees(tree)[0])
        with self._bound(name, Var(name, value.dtype)):
            return Let(name, value, self._statements(rest))

    def _allocate(self, tree: Node, rest: list[Node]) -> Stmt:
        buffer = self._buffer(subtrees(tree)[0])
        with self._bound(buffer.name, buffer):
            return Allocate(buffer, self._statements(rest))

    def _statement(self, tree: Node) -> Stmt:
        match tree.data:
            case "loop":
                return self._loop(tree)
            case "if":
                condition, suite = subtrees(tree)
                return If(self._expr(condition), self._suite(suite))
            case "stage":
                func, number = words(tree)
                return Stage(unquoted(func), int(number), self._suite(subtrees(tree)[0]))
            case "store":
                indices, values = subtrees(tree)
                *atomic, name = words(tree)
                buffer = buffer_named(name, self.scope, self.source)
                stored = self._exprs(indices), self._exprs(values)
                return Store(buffer.name, *stored, bool(atomic))
            case _:
                return self._assert(tree)

    def _loop(self, tree: Node) -> For:
        kind_tree, extent_tree, *hints, suite = subtrees(tree)
        word = words(kind_tree)[0]
        kind = LoopKind.SERIAL if word == "for" else LoopKind(str(word))
        *reduction, name = words(tree)
        low, extent = self._exprs(extent_tree)
        if extent_tree.data == "from_zero" and low is not _ZERO:
            raise self.source.error(
                "not-from-zero",
                f"the range of `{name}` begins at another place than 0",
                name,
                why="[0, n) has n iterations, and [min, +n) has n from min on",
                fix="write the extent with a plus: [min, +extent)",
            )
        var = Var(unquoted(name))
        with self._bound(var.name, var):
            body = self._suite(suite)
        return For(var.name, low, extent, kind, body, bool(reduction), self._hints(hints))

    def _assert(self, tree: Node) -> Assert:
        error, *texts = words(tree)
        if error not in _ERRORS:
            raise self.source.error(
                "unknown-error",
                f"an assert does not raise `{error}`",
                error,
                why="it checks the sizes and the bounds of a call",
                fix=f"one of {', '.join(_ERRORS)}",
            )
        condition, *values = subtrees(tree)
        code, what, why, fix = (json.loads(text) for text in texts)
        exprs = tuple(e for t in values for e in self._exprs(t))
        return Assert(self._expr(condition), _ERRORS[error], code, what, why, fix, exprs)

    def _buffer(self, tree: Node) -> Buffer:
        parts = subtrees(tree)
        dtypes = tuple(dtype_named(word, self.source) for word in words(parts[0]))
        dims = tuple(self._dim(t) for t in parts if t.data == "dim")
        memory = next((unquoted(words(t)[0]) for t in parts if t.data == "memory"), "auto")
        fold = tuple(int(word) for t in parts if t.data == "fold" for word in words(t))
        hints = self._hints([t for t in parts if t.data == "hint"])
        return Buffer(unquoted(words(tree)[0]), dtypes, dims, memory, fold, hints)

    def _dim(self, tree: Node) -> Dim:
        *low, extent = self._exprs(tree)
        return Dim(low[0] if low else _ZERO, extent)

    def _hints(self, trees: list[Node]) -> Hints:
        pairs = (words(t) for t in trees)
        return tuple((unquoted(name), json.loads(value)) for name, value in pairs)

    def _exprs(self, tree: Node) -> tuple[Expr, ...]:
        return tuple(self._expr(t) for t in subtrees(tree))

    def _expr(self, tree: Node) -> Expr:
        return read_expression(tree, self.scope, self.source)

    @contextmanager
    def _bound(self, name: str, what: Name | Buffer) -> Generator[None]:
        shadowed = self.scope.get(name)
        self.scope[name] = what
        yield
        if shadowed is None:
            del self.scope[name]
        else:
            self.scope[name] = shadowed


_PARTS = ("size", "param", "buffer", "outputs", "suite")
