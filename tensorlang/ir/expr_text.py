"""Expressions as text with the fewest parentheses; `printer` has the grammar.

A part that stands in an expression many times is written once, where the whole would be long:
`{ t0 = a + b; t0*t0 }`.  So the text is never longer than a few times the number of nodes.
"""

import re

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
from tensorlang.ir.types import DType, Kind, round_float
from tensorlang.ir.walk import fold, postorder

RESERVED = frozenset(
    (
        *("program", "for", "parallel", "unrolled", "vectorized", "gpu_block", "reduction", "in"),
        *("let", "allocate", "fold", "if", "stage", "assert", "else", "pass", "true", "false"),
    )
)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")

# Operator -> its text, and how tightly it binds.
INFIX = {
    "lt": (" < ", 1), "le": (" <= ", 1), "eq": (" == ", 1), "ne": (" != ", 1),
    "or": (" | ", 2), "xor": (" ^ ", 3), "and": (" & ", 4), "shl": (" << ", 5), "shr": (" >> ", 5),
    "add": (" + ", 6), "sub": (" - ", 6),
    "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "mod": ("%", 7),
}  # fmt: skip
PREFIX = {"neg": "-", "not": "~"}
_PREFIX_BINDS, _ATOM = 8, 9

# An expression no longer than this is written without braces, however often a part stands in it.
_SHORT_WHOLE = 160
# A part shorter than this is no easier to read under a name.
_SHORT_PART = 24
# Where counting characters stops: the text of a shared expression may be exponentially long.
_LONG = 1_000_000

# A piece of text: words, or an operand and how tightly it has to bind to stand there bare.
Piece = str | tuple[Expr, int]


def print_expr(e: Expr) -> str:
    """The expression as text that parses back to the same object."""
    named = _parts_to_name(e)
    if not named:
        return _text(e, named)
    parts = [f"{name} = {_text(part, named, opened=part)}; " for part, name in named.items()]
    return "{ " + "".join(parts) + _text(e, named) + " }"


def print_name(name: str) -> str:
    """The name, between backquotes where it is a word of the grammar."""
    bare = name not in RESERVED and _PLAIN_NAME.fullmatch(name)
    return name if bare else f"`{name}`"


def _text(e: Expr, named: dict[Expr, str], opened: Expr | None = None) -> str:
    """The text of `e`, with `named` parts (but `opened`) as their names; never recursive."""
    words: list[str] = []
    stack: list[Piece] = [(e, 0)]
    while stack:
        piece = stack.pop()
        if isinstance(piece, str):
            words.append(piece)
            continue
        part, needed = piece
        if part in named and part is not opened:
            words.append(named[part])
            continue
        binds, pieces = _pieces(part)
        stack.extend(reversed(pieces if binds >= needed else ["(", *pieces, ")"]))
    return "".join(words)


def _parts_to_name(e: Expr) -> dict[Expr, str]:
    """The parts of `e` to write once, operands first, with a name that nothing in `e` has."""

    def length(part: Expr, operands: list[int]) -> int:
        words = sum(len(piece) for piece in _pieces(part)[1] if isinstance(piece, str))
        return min(words + sum(operands), _LONG)

    if not e.children or fold(e, length) <= _SHORT_WHOLE:
        return {}
    order = list(postorder(e))
    uses: dict[Expr, int] = {}
    for part in order:
        for child in part.children:
            uses[child] = uses.get(child, 0) + 1
    lengths: dict[Expr, int] = {}
    free_names = (name for k in range(len(order) + len(e.free)) if (name := f"t{k}") not in e.free)
    named: dict[Expr, str] = {}
    for part in order:
        lengths[part] = length(part, [lengths[child] for child in part.children])
        if uses.get(part, 0) > 1 and lengths[part] >= _SHORT_PART:
            named[part] = next(free_names)
            lengths[part] = len(named[part])
    return named


def _pieces(e: Expr) -> tuple[int, list[Piece]]:
    """How tightly the text of `e` binds, and its pieces."""
    match e:
        case Const():
            return _ATOM, [print_constant(e)]
        case Name():
            return _ATOM, [print_name(e.name)]
        case Unary(op, a):
            # Parentheses keep -(3) apart from the constant -3.
            merges = op == "neg" and isinstance(a, Const) and not print_constant(a).startswith("-")
            needed = _ATOM + 1 if merges else _PREFIX_BINDS
            return _PREFIX_BINDS, [PREFIX[op], (a, needed)]
        case Binary(op, a, b) if op in ("min", "max"):
            return _ATOM, _listed(f"{op}(", (a, b), ")")
        case Binary(op, a, b):
            words, binds = INFIX[op]
            return binds, [(a, binds), words, (b, binds + 1)]
        case Compare(op, a, b):
            words, binds = INFIX[op]
            return binds, [(a, binds + 1), words, (b, binds + 1)]
        case Select(condition, a, b):
            return _ATOM, _listed("select(", (condition, a, b), ")")
        case Promise(a, lo, hi):
            return _ATOM, _listed("promise(", (a, lo, hi), ")")
        case Cast(dtype, a):
            return _ATOM, _listed(f"{dtype}(", (a,), ")")
        case Call(function, args, _):
            return _ATOM, _listed(f"{function}(", args, ")")
        case Load(buffer, indices, component, _):
            close = f"].{component}" if component else "]"
            return _ATOM, _listed(f"{print_name(buffer)}[", indices, close)
        case _:
            raise TypeError(f"{type(e).__name__} is not a node of the expression language")


def _listed(head: str, operands: tuple[Expr, ...], tail: str) -> list[Piece]:
    pieces: list[Piece] = [head]
    for k, operand in enumerate(operands):
        pieces += [", ", (operand, 0)] if k else [(operand, 0)]
    return [*pieces, tail]


def print_constant(e: Const) -> str:
    """A short text that reads back to the same bits."""
    if e.dtype.is_bool:
        return "true" if e.value else "false"
    if e.dtype.kind is Kind.INDEX:
        return str(e.value)
    text = _decimal(float(e.value), e.dtype) if e.dtype.is_float else str(e.value)
    return f"{text}:{e.dtype}"


def _decimal(value: float, dtype: DType) -> str:
    """The value itself, or a shorter number that rounds to it: 0.1, not 0.0999755859375, in f16."""
    exact = repr(value)
    for digits in range(1, 17):
        near = float(f"{value:.{digits}g}")
        if round_float(near, dtype) == value:
            return min(exact, repr(near), key=len)
    return exact
