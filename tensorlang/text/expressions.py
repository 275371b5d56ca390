"""The tree of an expression's words -> the expression; never recursive."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from lark import Token, Tree

from tensorlang.errors import ParseError
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.expr_text import INFIX, PREFIX
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.stmt import Buffer
from tensorlang.ir.typecheck import call_dtype, type_fault
from tensorlang.ir.types import DTYPES, DType, bool_, index
from tensorlang.text.source import Source

OPERATORS = {words.strip(): op for op, (words, _) in INFIX.items()}
_PREFIX = {word: op for op, word in PREFIX.items()}
# a > b is b < a.
_TURNED = {">": "<", ">=": "<="}
_ARITIES = {"min": 2, "max": 2, "select": 3, "promise": 3} | dict.fromkeys(DTYPES, 1)

# Python refuses to read integers of thousands of digits; no dtype holds one of forty.
_MOST_DIGITS = 40

Node: TypeAlias = Tree[Token]
Scope: TypeAlias = Mapping[str, Any]


class Expressions:
    """Trees -> values, operands first.  A subclass says what an operation makes of its operands.

    A scope maps names to what they mean; the tree of a part in braces means what was made of it.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def read(self, root: Node, scope: Scope) -> Any:
        """The value of a tree whose free names are those of the scope."""
        order: list[tuple[Node, Scope]] = []
        stack = [(root, scope)]
        while stack:
            tree, names = stack.pop()
            order.append((tree, names))
            stack.extend(self.children(tree, names))
        # Every operand comes after what uses it, so backwards is operands first.
        made: dict[int, Any] = {}
        for tree, names in reversed(order):
            operands = tuple(made[id(child)] for child in subtrees(tree))
            if tree.data == "name":
                word = words(tree)[0]
                found = names.get(unquoted(word))
                value = made.get(id(found), None if type(found) is Tree else found)
                made[id(tree)] = self.name(word, value, names)
            elif tree.data in ("shared", "part", "expression"):
                made[id(tree)] = operands[-1]
            else:
                made[id(tree)] = self.operation(tree, operands, names)
        return made[id(root)]

    def children(self, tree: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
        """The operands of a node, each with the scope that it is read in."""
        if tree.data == "shared":
            parts = subtrees(tree)[:-1]
            scope = {**scope, **{unquoted(words(part)[0]): part for part in parts}}
        return ((child, scope) for child in subtrees(tree))

    def name(self, word: Token, value: Any, scope: Scope) -> Any:
        """What a name stands for: `value`, or None where the scope has no such name."""
        raise NotImplementedError

    def operation(self, tree: Node, operands: tuple[Any, ...], scope: Scope) -> Any:
        """What a node makes of its operands."""
        raise NotImplementedError


def subtrees(tree: Tree[Token]) -> list[Tree[Token]]:
    """The children that are trees."""
    return [child for child in tree.children if isinstance(child, Tree)]


def words(tree: Tree[Token]) -> list[Token]:
    """The children that are words."""
    return [child for child in tree.children if isinstance(child, Token)]


def unquoted(name: str) -> str:
    """A name without its backquotes."""
    return name.strip("`")


def dtype_named(word: Token, source: Source) -> DType:
    """The dtype of that name."""
    if word not in DTYPES:
        raise unknown_name("dtype", word, DTYPES, source)
    return DTYPES[word]


def buffer_named(word: Token, scope: Mapping[str, Name | Buffer], source: Source) -> Buffer:
    """The buffer of that name in scope."""
    found = scope.get(unquoted(word))
    if not isinstance(found, Buffer):
        raise unknown_name(
            "buffer", word, (n for n, b in scope.items() if isinstance(b, Buffer)), source
        )
    return found


class _Strict(Expressions):
    """The expressions of loop IR: each node as it is written, its types checked."""

    def name(self, word: Token, value: Any, scope: Scope) -> Expr:
        if not isinstance(value, Expr):
            known = (n for n, what in scope.items() if not isinstance(what, Buffer))
            raise unknown_name("name", word, known, self.source)
        return value

    def operation(self, tree: Node, operands: tuple[Any, ...], scope: Scope) -> Expr:
        e = self._node(tree, operands, scope)
        fault = type_fault(e)
        if fault is not None:
            raise self.source.error(
                "ill-typed",
                f"no expression is {fault}",
                words(tree)[0],
                why="only a cast and a function change a dtype; all else takes operands of one",
                fix="cast an operand, as in f32(e), or give a constant its dtype, as in 1:i32",
            )
        return e

    def _node(self, tree: Node, operands: tuple[Any, ...], scope: Scope) -> Expr:
        match tree.data:
            case "true" | "false":
                return Const(tree.data == "true", bool_)
            case "constant":
                return constant(words(tree)[0], self.source)
            case "unary":
                return Unary(_PREFIX[words(tree)[0]], *operands)
            case "binary":
                return Binary(OPERATORS[words(tree)[0]], *operands)
            case "compare":
                op, a, b = comparison(tree, operands)
                return Compare(op, a, b)
            case "load":
                return self._load(words(tree), operands, scope)
            case "call":
                return self._call(words(tree)[0], operands)
            case _:
                raise self.source.error(
                    "not-loop-ir",
                    "a reduction cannot stand in loop IR",
                    tree,
                    why="its loops have been written out",
                    fix="write the loops, with a store that adds to what it reads",
                )

    def _load(self, given: list[Token], indices: tuple[Expr, ...], scope: Scope) -> Expr:
        buffer = buffer_named(given[0], scope, self.source)
        component = component_named(given, len(buffer.dtypes), self.source)
        return Load(buffer.name, indices, component, buffer.dtypes[component])

    def _call(self, word: Token, args: tuple[Expr, ...]) -> Expr:
        name = str(word)
        if name not in _ARITIES and name not in FUNCTIONS:
            raise unknown_name("function or dtype", word, (*FUNCTIONS, *_ARITIES), self.source)
        arity = _ARITIES[name] if name in _ARITIES else FUNCTIONS[name].arity
        check_count(word, args, arity, self.source)
        match name:
            case "min" | "max":
                return Binary(name, *args)
            case "select":
                return Select(*args)
            case "promise":
                return Promise(*args)
            case _ if name in DTYPES:
                return Cast(DTYPES[name], *args)
            case _:
                return Call(name, args, call_dtype(name, args[0].dtype))


def read_expression(tree: Node, scope: Mapping[str, Name | Buffer], source: Source) -> Expr:
    """The expression of loop IR that a tree is."""
    return _Strict(source).read(tree, scope)


def comparison(tree: Node, operands: tuple[Any, ...]) -> tuple[str, Any, Any]:
    """The operator of a comparison and its operands: a > b as b < a."""
    a, b = operands
    word = str(words(tree)[0])
    return (OPERATORS[_TURNED[word]], b, a) if word in _TURNED else (OPERATORS[word], a, b)


def check_count(word: Token, args: tuple[Any, ...], arity: int, source: Source) -> None:
    """Check how many operands a function is given."""
    if len(args) != arity:
        raise source.error(
            "wrong-count",
            f"`{word}` is given {len(args)} operands",
            word,
            why=f"it takes {arity}",
            fix="separate operands by commas",
        )


def component_named(given: list[Token], components: int, source: Source) -> int:
    """The component that a load `name[...].component` picks: 0 where it names none."""
    component = int(given[1]) if len(given) > 1 else 0
    if component >= components:
        raise source.error(
            "no-such-component",
            f"`{unquoted(given[0])}` has no component {component}",
            given[1],
            why=f"it has {components}, counted from 0",
            fix="name one of them",
        )
    return component


def constant(word: Token, source: Source) -> Const:
    """A constant with its dtype; an int without one is an index."""
    digits, _, name = word.partition(":")
    dtype = DTYPES.get(name) if name else index
    value = None if dtype is None else _number(digits, dtype)
    if dtype is None or value is None:
        raise source.error(
            "bad-constant",
            f"`{word}` is not a constant",
            word,
            why="a constant is an int or a float, with a numeric dtype that holds it",
            fix="write 3 (an index), 3:i32, 0.5:f32, inf:f32, true or false",
        )
    return Const(value, dtype)


def _number(digits: str, dtype: DType) -> int | float | None:
    if dtype.is_float:
        return float(digits)
    if dtype.is_bool or not digits.lstrip("-").isdigit() or len(digits) > _MOST_DIGITS:
        return None
    value = int(digits)
    return value if dtype is index or dtype.lowest <= value <= dtype.highest else None


def unknown_name(what: str, word: Token, known: Iterable[str], source: Source) -> ParseError:
    """The error for a name that means nothing, with the names nearest to it."""
    near = get_close_matches(unquoted(word), known := sorted(known), n=3) or known[:8]
    return source.error(
        "unknown-name",
        f"there is no {what} `{unquoted(word)}` here",
        word,
        why="a name stands only below what binds it" if near else f"no {what} is bound here",
        fix=f"one of {', '.join(near)}" if near else "bind it in the header or above",
    )
