"""Reads what `tensorlang.algorithm_text` writes, by writing the algorithm as a user would.

What a definition means, and what is wrong with one, is said in one place: `tensorlang.func`.
"""

from collections.abc import Iterator
from typing import Any

from lark import Token

from tensorlang.algorithm import Algorithm, reads_of
from tensorlang.closing import close_algorithm, close_records
from tensorlang.domain import Reduction, RVar
from tensorlang.errors import ParseError
from tensorlang.func import Func, Input, define_reduced, define_update
from tensorlang.ir.expr import Expr, Operand, Param, Size, Var, arithmetic, divide
from tensorlang.scanning import scans_of
from tensorlang.span import reading
from tensorlang.text.expressions import (
    OPERATORS,
    Node,
    dtype_named,
    subtrees,
    unknown_name,
    unquoted,
    words,
)
from tensorlang.text.source import Source
from tensorlang.text.surface import Surface, axes_of


def read_algorithm(tree: Node, source: Source) -> Algorithm:
    """The algorithm that a tree is.

    Raises: ParseError: unknown-name, name-twice, unused-name, bad-constant, bad-reduction,
        not-indexed, no-such-component, wrong-count, not-defined-first, not-an-output;
        DefinitionError: as the same definitions in Python.  All point into the text.
    """
    return _Reader(source).algorithm(tree)


class _Reader:
    """Trees -> Inputs, Funcs and their definitions."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.scalars: dict[str, Size | Param] = {}
        self.arrays: dict[str, Func | Input] = {}
        self.homes: list[Token] = []
        self.surface = Surface(source, self.arrays)

    def algorithm(self, tree: Node) -> Algorithm:
        name = words(tree)[0]
        arguments = [t for t in subtrees(tree) if t.data == "argument"]
        declared = [t for t in arguments if not subtrees(t)]
        for argument in declared:
            self._scalar(*words(argument))
        inputs = [self._input(t) for t in arguments if subtrees(t)]
        for definition in (t for t in subtrees(tree) if t.data == "definition"):
            self._definition(definition)
        for home in self.homes:
            self._func(home)
        results = [t for t in subtrees(tree) if t.data == "result"]
        outputs = {self._func(words(t)[0]): self._shape(subtrees(t)[0]) for t in results}
        if len(outputs) < len(results):
            raise self._twice(words(results[-1])[0], "an output")
        with reading(self.source.span(name)):
            made = self._in_order(close_algorithm(unquoted(name), inputs, outputs))
        self._check_used(made, declared)
        return made

    def _in_order(self, made: Algorithm) -> Algorithm:
        """The Funcs as the text has them, where producers come first there too."""
        funcs = {f.name: f for f in made.funcs}
        kept = tuple(funcs[name] for name in self.arrays if name in funcs)
        known = {a.name for a in made.inputs}
        for f in kept:
            if not reads_of(f) <= known | {f.name}:
                return made
            known.add(f.name)
        if len(kept) < len(funcs):
            return made  # Others were lifted out of definitions.
        return close_records(made.name, made.inputs, kept, made.outputs)

    def _scalar(self, name: Token, kind: Token) -> None:
        """A Param, or a Size that no shape of an Input has."""
        if unquoted(name) in self.scalars:
            raise self._twice(name, "an argument")
        with reading(self.source.span(name)):
            made = (
                Size(unquoted(name))
                if kind == "size"
                else Param(unquoted(name), dtype_named(kind, self.source))
            )
        self.scalars[made.name] = made

    def _input(self, tree: Node) -> Input:
        name, dtype = words(tree)
        if unquoted(name) in self.arrays or unquoted(name) in self.scalars:
            raise self._twice(name, "an argument")
        for word in (words(t)[0] for t in tree.find_data("name")):
            with reading(self.source.span(word)):
                self.scalars.setdefault(unquoted(word), Size(unquoted(word)))
        with reading(self.source.span(name)):
            shape = self._shape(subtrees(tree)[0])
            made = Input(unquoted(name), dtype_named(dtype, self.source), shape)
        self.arrays[made.name] = made
        return made

    def _shape(self, tree: Node) -> list[Operand]:
        return [self.surface.extent(t, self.scalars, "an array") for t in subtrees(tree)]

    def _definition(self, tree: Node) -> None:
        name, *operator = words(tree)
        parts = {child.data: child for child in subtrees(tree)}
        func = self.arrays.get(unquoted(name))
        if isinstance(func, Input):
            raise self._twice(name, "both an Input and a Func")
        if func is None:
            self._first(tree, name, operator, parts)
        else:
            self._update(tree, func, operator, parts)

    def _first(
        self, tree: Node, name: Token, operator: list[Token], parts: dict[str, Node]
    ) -> None:
        if operator or "domain" in parts:
            raise self.source.error(
                "not-defined-first",
                f"`{name}` is updated before it is defined",
                name,
                why="the first definition of a Func gives every point a value",
                fix=f"{name}[i, j] = ... first, over no domain",
            )
        pure = {n: Var(n) for n in _bare_indices(parts)}
        key, values = self._sides(parts, {**self.scalars, **pure})
        scanned = {scan.domain.names[0]: RVar(scan.domain, 0) for scan in scans_of(values)}
        key = tuple(scanned.get(e.name, e) if isinstance(e, Var) else e for e in key)
        with reading(self.source.span(tree)):
            func = Func(unquoted(name))
            if "home" in parts and len(values) == 1 and isinstance(values[0], Reduction):
                define_reduced(func, key, values[0])
            else:
                func[key] = values[0] if len(values) == 1 else values
        self.arrays[func.name] = func
        if "home" in parts:
            home = words(parts["home"])[0]
            func.home = unquoted(home)
            self.homes.append(home)

    def _update(
        self, tree: Node, func: Func, operator: list[Token], parts: dict[str, Node]
    ) -> None:
        over = parts.get("domain")
        axes = axes_of(over) if over is not None else {}
        pure = {n: Var(n) for n in _bare_indices(parts) if n not in axes | self.scalars}
        scope = {**self.scalars, **pure}
        domain = None if over is None else self.surface.domain(over, scope)
        key, values = self._sides(parts, {**scope, **axes})
        with reading(self.source.span(tree)):
            if operator:
                values = (_combined(operator[0], func[key], values),)
            define_update(func, key, values, domain)

    def _sides(
        self, parts: dict[str, Node], scope: dict[str, Any]
    ) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
        """The indices and the values of a definition."""
        return (
            tuple(self.surface.operand(t, scope) for t in subtrees(parts["indices"])),
            tuple(self.surface.operand(t, scope) for t in subtrees(parts["values"])),
        )

    def _check_used(self, made: Algorithm, declared: list[Node]) -> None:
        used = {e.name for e in (*made.sizes, *made.params)}
        for name in (words(t)[0] for t in declared):
            if unquoted(name) not in used:
                raise self.source.error(
                    "unused-name",
                    f"`{name}` is declared and stands nowhere",
                    name,
                    why="a call would have to give it a value that nothing depends on",
                    fix="leave it out",
                )

    def _twice(self, name: Token, what: str) -> ParseError:
        return self.source.error(
            "name-twice",
            f"`{name}` is {what} twice" if what.startswith("an ") else f"`{name}` is {what}",
            name,
            why="names are unique in an algorithm: directives and generated code use them",
            fix="rename one of them",
        )

    def _func(self, name: Token) -> Func:
        found = self.arrays.get(unquoted(name))
        if not isinstance(found, Func):
            funcs = (n for n, array in self.arrays.items() if isinstance(array, Func))
            raise unknown_name("Func", name, funcs, self.source)
        return found


def _bare_indices(parts: dict[str, Node]) -> Iterator[str]:
    """The indices on the left that are a name alone."""
    for index in subtrees(parts["indices"]):
        (operation,) = subtrees(index)
        if operation.data == "name":
            yield unquoted(words(operation)[0])


def _combined(operator: Token, current: Any, values: tuple[Operand, ...]) -> Expr:
    """current + value, of `+=`."""
    op = OPERATORS[operator.removesuffix("=")]
    value = values[0] if len(values) == 1 else values
    return divide(current, value) if op == "div" else arithmetic(op, current, value)
