"""Expressions as text with the fewest parentheses; `printer` has the grammar.

A part that stands in an expression many times is written once, where the whole would be long:
`{ t0 = a + b; t0*t0 }`.  So the text is never longer than a few times the number of nodes.
"""

import re
from collections.abc import Callable

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
from tensorlang.ir.types import DType, Kind, index, round_float
from tensorlang.ir.walk import fold, postorder

RESERVED = frozenset(
    (
        *("program", "for", "parallel", "unrolled", "vectorized", "gpu_block", "reduction", "in"),
        *("let", "allocate", "fold", "if", "stage", "assert", "else", "pass", "true", "false"),
        *("over", "where", "atomic"),
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
Pieces = Callable[[Expr], tuple[int, list[Piece]]]


def print_expr(e: Expr, *, told: bool = False) -> str:
    """The expression as text that parses back to the same object.

    Args: told: leave out the dtype of a constant that the operands beside it tell, as an algorithm
        does: `x + 1`, not `x + 1:i32`.
    """
    pieces = _told_pieces if told else _pieces
    named = _parts_to_name(e, pieces)
    if not named:
        return _text(e, named, pieces)
    parts = [
        f"{name} = {_text(part, named, pieces, opened=part)}; " for part, name in named.items()
    ]
    return "{ " + "".join(parts) + _text(e, named, pieces) + " }"


def print_index(e: Expr) -> str:
    """An index of an algorithm: a bare int, and data without the cast that an index implies."""
    match e:
        case Const():
            return str(e.value)
        case Cast(a=Expr() as a) if (
            e.dtype is index and a.dtype.is_integer and not isinstance(a, Const)
        ):
            return print_expr(a, told=True)
        case _:
            return print_expr(e, told=True)


def print_name(name: str) -> str:
    """The name, between backquotes where it is a word of the grammar."""
    bare = name not in RESERVED and _PLAIN_NAME.fullmatch(name)
    return name if bare else f"`{name}`"


def _text(
    e: Expr,
    named: dict[Expr, str],
    pieces_of: Pieces,
    opened: Expr | None = None,
) -> str:
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
        binds, pieces = pieces_of(part)
        stack.extend(reversed(pieces if binds >= needed else ["(", *pieces, ")"]))
    return "".join(words)


def _parts_to_name(e: Expr, pieces_of: Pieces) -> dict[Expr, str]:
    """The parts of `e` to write once, operands first, with a name that nothing in `e` has."""

    def length(part: Expr, operands: list[int]) -> int:
        words = sum(len(piece) for piece in pieces_of(part)[1] if isinstance(piece, str))
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


def _told_pieces(e: Expr) -> tuple[int, list[Piece]]:
    """The pieces of `e` in an algorithm, whose constants have a dtype only where nothing tells it.

    A bare int is an index in brackets; elsewhere it takes the dtype of its partners.
    """
    if isinstance(e, Const) and e.dtype is index:
        return _ATOM, [f"{e.value}:index"]
    binds, pieces = _pieces(e)
    if isinstance(e, Load):
        return binds, [p if isinstance(p, str) else _index_piece(p) for p in pieces]
    operands = _partners(e)
    if all(isinstance(o, Const) for o in operands):
        return binds, pieces
    told = {o: print_bare(o) for o in operands if isinstance(o, Const)}
    return binds, [p if isinstance(p, str) else told.get(p[0], p) for p in pieces]  # type: ignore[arg-type]


def _partners(e: Expr) -> tuple[Expr, ...]:
    """The operands that are of one dtype, which any of them tells."""
    match e:
        case Binary() | Compare():
            return e.children
        case Select(_, a, b):
            return (a, b)
        case Promise(a=a) if not isinstance(a, Const):
            return e.children
        case _:
            return ()


def _index_piece(piece: tuple[Expr, int]) -> Piece:
    e, binds = piece
    match e:
        case Const():
            return str(e.value)
        case Cast(a=Expr() as a) if (
            e.dtype is index and a.dtype.is_integer and not isinstance(a, Const)
        ):
            return (a, binds)
        case _:
            return piece


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


def print_bare(e: Const) -> str:
    """A constant without its dtype, where it has digits."""
    digits = print_constant(e).partition(":")[0]
    return digits if digits.lstrip("-")[0].isdigit() else print_constant(e)


def _decimal(value: float, dtype: DType) -> str:
    """The value itself, or a shorter number that rounds to it: 0.1, not 0.0999755859375, in f16."""
    exact = repr(value)
    for digits in range(1, 17):
        near = float(f"{value:.{digits}g}")
        if round_float(near, dtype) == value:
            return min(exact, repr(near), key=len)
    return exact
