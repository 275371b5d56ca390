"""A total order on expressions that is the same in every process.

It sorts the terms of a sum and the operands of what commutes, so that equal values become one
expression whatever order they were written in.  It reads as text: `i` comes before `j`.
"""

from hashlib import blake2b

from tensorlang.ir.expr import (
    SYMBOLS,
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Select,
    Unary,
)
from tensorlang.ir.walk import fold

OrderKey = tuple[str, bytes]

_SHOWN = 40
_REMEMBERED = 1 << 16
_keys: dict[Expr, OrderKey] = {}


def order_key(e: Expr) -> OrderKey:
    """The beginning of `e` as text, and a digest of all of it that decides between equal texts."""
    found = _keys.get(e)
    if found is None:
        if len(_keys) > _REMEMBERED:
            _keys.clear()
        found = fold(e, _key, _keys)
    return found


def _key(e: Expr, operands: list[OrderKey]) -> OrderKey:
    head = _head(e)
    digest = blake2b(f"{type(e).__name__} {head} {e.dtype}".encode(), digest_size=16)
    for operand in operands:
        digest.update(operand[1])
    return _text(e, head, [text for text, _ in operands])[:_SHOWN], digest.digest()


def _head(e: Expr) -> str:
    """What tells `e` from another node of its class with the same operands."""
    match e:
        case Name():
            return e.name
        case Const():
            return repr(e.value)
        case Unary() | Binary() | Compare():
            return e.op
        case Call():
            return e.function
        case Load():
            return f"{e.buffer}.{e.component}"
        case _:
            return ""


def _text(e: Expr, head: str, operands: list[str]) -> str:
    match e:
        case Name() | Const():
            return head
        case Binary(op="min" | "max") | Unary() | Call() | Load():
            return f"{head}({','.join(operands)})"
        case Binary() | Compare():
            return SYMBOLS[head].join(operands)
        case Cast():
            return f"{e.dtype}({operands[0]})"
        case Select():
            return f"select({','.join(operands)})"
        case _:
            return f"{type(e).__name__}({','.join(operands)})"
