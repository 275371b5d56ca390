"""The tree of an expression's words -> the expression; never recursive."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

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

_INFIX = {words.strip(): op for op, (words, _) in INFIX.items()}
_PREFIX = {word: op for op, word in PREFIX.items()}
_ARITIES = {"min": 2, "max": 2, "select": 3, "promise": 3} | dict.fromkeys(DTYPES, 1)

Scope = Mapping[str, Name | Buffer]


def read_expression(tree: Tree[Token], scope: Scope, source: Source) -> Expr:
    """The expression, its parts in braces first."""
    *parts, whole = subtrees(tree)
    named: dict[str, Expr] = {}
    for part in parts:
        name, (value,) = words(part)[0], subtrees(part)
        named[unquoted(name)] = _read(value, scope, named, source)
    return _read(whole, scope, named, source)


def subtrees(tree: Tree[Token]) -> list[Tree[Token]]:
    """The children that are trees."""
    return [child for child in tree.children if isinstance(child, Tree)]


def words(tree: Tree[Token]) -> list[Token]:
    """The children that are words."""
    return [child for child in tree.children if isinstance(child, Token)]


def unquoted(name: Token) -> str:
    """A name without its backquotes."""
    return name.strip("`")


def dtype_named(word: Token, source: Source) -> DType:
    """The dtype of that name."""
    if word not in DTYPES:
        raise _unknown("dtype", word, DTYPES, source)
    return DTYPES[word]


def buffer_named(word: Token, scope: Scope, source: Source) -> Buffer:
    """The buffer of that name in scope."""
    found = scope.get(unquoted(word))
    if not isinstance(found, Buffer):
        raise _unknown(
            "buffer", word, (n for n, b in scope.items() if isinstance(b, Buffer)), source
        )
    return found


def _read(root: Tree[Token], scope: Scope, named: Mapping[str, Expr], source: Source) -> Expr:
    order: list[Tree[Token]] = []
    stack = [root]
    while stack:
        tree = stack.pop()
        order.append(tree)
        stack.extend(subtrees(tree))
    # Every operand comes after what uses it, so backwards is operands first.
    made: dict[int, Expr] = {}
    for tree in reversed(order):
        operands = tuple(made[id(child)] for child in subtrees(tree))
        made[id(tree)] = _node(tree, operands, scope, named, source)
    return made[id(root)]


def _node(
    tree: Tree[Token],
    operands: tuple[Expr, ...],
    scope: Scope,
    named: Mapping[str, Expr],
    source: Source,
) -> Expr:
    match tree.data:
        case "true" | "false":
            return Const(tree.data == "true", bool_)
        case "constant":
            return _constant(words(tree)[0], source)
        case "name":
            return _name(words(tree)[0], scope, named, source)
        case "unary":
            e = Unary(_PREFIX[words(tree)[0]], *operands)
        case "binary":
            e = Binary(_INFIX[words(tree)[0]], *operands)
        case "compare":
            e = Compare(_INFIX[words(tree)[0]], *operands)
        case "load":
            e = _load(words(tree), operands, scope, source)
        case _:
            e = _call(words(tree)[0], operands, source)
    fault = type_fault(e)
    if fault is not None:
        raise source.error(
            "ill-typed",
            f"no expression is {fault}",
            words(tree)[0],
            why="only a cast and a function change a dtype; all else takes operands of one",
            fix="cast an operand, as in f32(e), or give a constant its dtype, as in 1:i32",
        )
    return e


def _constant(word: Token, source: Source) -> Const:
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
    if dtype.is_bool or not digits.lstrip("-").isdigit():
        return None
    value = int(digits)
    return value if dtype is index or dtype.lowest <= value <= dtype.highest else None


def _name(word: Token, scope: Scope, named: Mapping[str, Expr], source: Source) -> Expr:
    name = unquoted(word)
    found = named[name] if name in named else scope.get(name)
    if not isinstance(found, Expr):
        known = [*named, *(n for n, what in scope.items() if isinstance(what, Name))]
        raise _unknown("name", word, known, source)
    return found


def _load(given: list[Token], indices: tuple[Expr, ...], scope: Scope, source: Source) -> Expr:
    buffer = buffer_named(given[0], scope, source)
    component = int(given[1]) if len(given) > 1 else 0
    if component >= len(buffer.dtypes):
        raise source.error(
            "no-such-component",
            f"`{buffer.name}` has no component {component}",
            given[1],
            why=f"it has {len(buffer.dtypes)}, counted from 0",
            fix="name one of them",
        )
    return Load(buffer.name, indices, component, buffer.dtypes[component])


def _call(word: Token, args: tuple[Expr, ...], source: Source) -> Expr:
    name = str(word)
    if name not in _ARITIES and name not in FUNCTIONS:
        raise _unknown("function or dtype", word, (*FUNCTIONS, *_ARITIES), source)
    arity = _ARITIES[name] if name in _ARITIES else FUNCTIONS[name].arity
    if len(args) != arity:
        raise source.error(
            "wrong-count",
            f"`{name}` is given {len(args)} operands",
            word,
            why=f"it takes {arity}",
            fix="separate operands by commas",
        )
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


def _unknown(what: str, word: Token, known: Iterable[str], source: Source) -> ParseError:
    near = get_close_matches(unquoted(word), known := sorted(known), n=3) or known[:8]
    return source.error(
        "unknown-name",
        f"there is no {what} `{unquoted(word)}` here",
        word,
        why="a name stands only below what binds it" if near else f"no {what} is bound here",
        fix=f"one of {', '.join(near)}" if near else "bind it in the header or above",
    )
