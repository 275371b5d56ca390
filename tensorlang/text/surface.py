"""The expressions of an algorithm: built by the operators that Python's own expressions call.

A constant without a dtype stays a Python number until an operand beside it tells its dtype.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lark import Token

from tensorlang import reductions
from tensorlang.algorithm import Domain
from tensorlang.domain import RDom, extent_of
from tensorlang.errors import ParseError
from tensorlang.func import Func, Input
from tensorlang.ir.expr import (
    Cast,
    Const,
    Expr,
    Operand,
    Unary,
    Var,
    arithmetic,
    compare,
    divide,
    invert,
    negate,
)
from tensorlang.ir.functions import FUNCTIONS, call, clamp, maximum, minimum, promise, select
from tensorlang.ir.types import DTYPES, DType, bool_
from tensorlang.span import reading
from tensorlang.text.expressions import (
    OPERATORS,
    Expressions,
    Node,
    Scope,
    check_count,
    comparison,
    component_named,
    constant,
    subtrees,
    unknown_name,
    unquoted,
    words,
)
from tensorlang.text.source import Source

_CALLS: dict[str, tuple[int, Callable[..., Expr]]] = {
    **dict.fromkeys(("min", "minimum"), (2, minimum)),
    **dict.fromkeys(("max", "maximum"), (2, maximum)),
    "clamp": (3, clamp),
    "promise": (3, promise),
}
_REDUCTIONS: dict[str, Callable[..., Expr]] = {
    "sum": reductions.sum,
    "prod": reductions.prod,
    "min": reductions.min,
    "max": reductions.max,
    "any": reductions.any,
    "all": reductions.all,
    "argmin": reductions.argmin,
    "argmax": reductions.argmax,
    "cumsum": reductions.cumsum,
    "cumprod": reductions.cumprod,
    "cummax": reductions.cummax,
}
# What a reduction or a scan takes besides its term and its domain.
_OPTIONS = {
    **dict.fromkeys(("sum", "prod"), ("initial", "dtype")),
    **dict.fromkeys(("min", "max"), ("initial",)),
    **dict.fromkeys(("cumsum", "cumprod"), ("dtype",)),
}
# The parts of a reduction that do not know its axes.
_OUTSIDE = ("axis", "axes", "over", "keyword")


class Surface(Expressions):
    """Trees -> expressions over the Funcs and Inputs of `arrays`."""

    def __init__(self, source: Source, arrays: Mapping[str, Func | Input]) -> None:
        super().__init__(source)
        self.arrays = arrays

    def operand(self, tree: Node, scope: Scope) -> Operand:
        """An expression, or a number whose dtype nothing has told."""
        return self.read(tree, scope)

    def extent(self, tree: Node, scope: Scope, what: str) -> Expr:
        """An extent: an index expression."""
        with reading(self.source.span(tree)):
            return extent_of(self.read(tree, scope), what)

    def domain(self, tree: Node, scope: Scope) -> Domain:
        """The domain that `over` names."""
        return self.read(tree, scope)

    def children(self, tree: Node, scope: Scope) -> Iterator[tuple[Node, Scope]]:
        match tree.data:
            case "call" | "over" | "domain":
                # The term and the condition know the axes; their extents and options do not.
                inner = {**scope, **axes_of(tree)}
                for child in subtrees(tree):
                    yield child, scope if child.data in _OUTSIDE else inner
            case "keyword" if words(tree)[0] == "dtype":
                yield subtrees(tree)[0], DTYPES
            case _:
                yield from super().children(tree, scope)

    def name(self, word: Token, value: Any, scope: Scope) -> Any:
        if value is None:
            what = "array" if unquoted(word) in self.arrays else "name"
            if what == "array":
                raise self.source.error(
                    "not-indexed",
                    f"`{unquoted(word)}` stands here without its indices",
                    word,
                    why="an expression reads one element",
                    fix=f"index it: {word}[i, j]",
                )
            raise unknown_name("name", word, scope, self.source)
        return value

    def operation(self, tree: Node, operands: tuple[Any, ...], scope: Scope) -> Any:
        at = words(tree)
        with reading(self.source.span(at[0] if at else tree)):
            return self._operation(tree, operands)

    def _operation(self, tree: Node, operands: tuple[Any, ...]) -> Any:
        match tree.data:
            case "true" | "false":
                return Const(tree.data == "true", bool_)
            case "constant":
                return self._number(words(tree)[0])
            case "unary":
                return self._unary(words(tree)[0], operands[0])
            case "binary":
                op = OPERATORS[words(tree)[0]]
                return divide(*operands) if op == "div" else arithmetic(op, *operands)
            case "compare":
                return compare(*comparison(tree, operands))
            case "load":
                return self._load(words(tree), operands)
            case "call":
                return self._call(tree, operands)
            case "keyword":
                return unquoted(words(tree)[0]), operands[0]
            case "where":
                return operands[0]
            case _:
                return self._part_of_domain(tree, operands)

    def _number(self, word: Token) -> Const | int | float:
        """A constant with its dtype, or a number that waits for one."""
        if ":" in word:
            return constant(word, self.source)
        return int(constant(word, self.source).value) if word.type == "INT" else float(word)

    def _unary(self, word: Token, a: Operand) -> Operand:
        if word == "~":
            return invert(a)
        if isinstance(a, Const) and not a.dtype.is_bool:
            return Unary("neg", a)
        return negate(a) if isinstance(a, Expr) else -a  # type: ignore[operator]

    def _load(self, given: list[Token], indices: tuple[Any, ...]) -> Expr:
        array = self.arrays.get(unquoted(given[0]))
        if array is None:
            raise unknown_name("array", given[0], self.arrays, self.source)
        element = array[indices]
        parts = (element,) if isinstance(element, Expr) else tuple(element)
        return parts[component_named(given, len(parts), self.source)]

    def _call(self, tree: Node, operands: tuple[Any, ...]) -> Expr:
        word = words(tree)[0]
        name = unquoted(word)
        kinds = [child.data for child in subtrees(tree)]
        if "over" in kinds or "keyword" in kinds:
            return self._reduction(tree, operands, kinds)
        if name in DTYPES:
            check_count(word, operands, 1, self.source)
            return self._cast(DTYPES[name], operands[0])
        if name == "select":
            return select(*operands)
        if name in _CALLS:
            arity, function = _CALLS[name]
            check_count(word, operands, arity, self.source)
            return function(*operands)
        if name in FUNCTIONS:
            check_count(word, operands, FUNCTIONS[name].arity, self.source)
            return call(name, *operands)
        known = (*FUNCTIONS, *_CALLS, "select", *DTYPES, *_REDUCTIONS)
        if name not in _REDUCTIONS:
            raise unknown_name("function or dtype", word, known, self.source)
        raise self._bad_reduction(word)

    def _cast(self, dtype: DType, a: Operand) -> Expr:
        # A constant that has a dtype is cast where it stands, and not folded.
        if isinstance(a, Const) and a.dtype is not dtype:
            return Cast(dtype, a)
        return dtype(a)

    def _reduction(self, tree: Node, operands: tuple[Any, ...], kinds: list[str]) -> Expr:
        word = words(tree)[0]
        name = unquoted(word)
        terms = [e for e, kind in zip(operands, kinds, strict=True) if kind not in _OUTSIDE]
        domains = [d for d, kind in zip(operands, kinds, strict=True) if kind == "over"]
        options = dict(o for o, kind in zip(operands, kinds, strict=True) if kind == "keyword")
        known = options.keys() <= set(_OPTIONS.get(name, ()))
        if name not in _REDUCTIONS or len(terms) != 1 or len(domains) != 1 or not known:
            raise self._bad_reduction(word)
        return _REDUCTIONS[name](terms[0], over=RDom.over(domains[0]), **options)

    def _bad_reduction(self, word: Token) -> ParseError:
        name = unquoted(word)
        also = "".join(f", {option}=..." for option in _OPTIONS.get(name, ()))
        shown = f"{name}(e, over=k in [0, K){also})"
        return self.source.error(
            "bad-reduction",
            f"`{word}` does not take these operands",
            word,
            why=f"it takes {shown}" if name in _REDUCTIONS else "it is not a reduction",
            fix="give one term, and over= for the points that it runs over"
            if name in _REDUCTIONS
            else f"one of {', '.join(_REDUCTIONS)}",
        )

    def _part_of_domain(self, tree: Node, operands: tuple[Any, ...]) -> Any:
        match tree.data:
            case "from_zero":
                low, end = operands
                if isinstance(low, int) and (isinstance(end, int) or low == 0):
                    return low, end - low if low else end
                return low, arithmetic("sub", end, low)
            case "from_min":
                return operands
            case "axis":
                name = unquoted(words(tree)[0])
                low, extent = (extent_of(e, f"'{name}'") for e in operands[0])
                return name, low, extent
            case "axes":
                names = words(tree) or ["_".join(name for name, _, _ in operands)]
                return Domain(unquoted(names[0]), operands)
            case _:
                return self._domain(operands)

    def _domain(self, operands: tuple[Any, ...]) -> Domain:
        axes, *where = operands
        domain = axes if isinstance(axes, Domain) else Domain(axes[0], (axes,))
        return RDom.over(domain).where(where[0]).domain if where else domain


def axes_of(tree: Node) -> dict[str, Var]:
    """The variables of the domain that a reduction or an update runs over."""
    over = next((t for t in subtrees(tree) if t.data == "over"), tree)
    axes = [t for t in subtrees(over) if t.data == "axis"]
    axes += [axis for t in subtrees(over) if t.data == "axes" for axis in subtrees(t)]
    return {name: Var(name) for name in (unquoted(words(axis)[0]) for axis in axes)}
