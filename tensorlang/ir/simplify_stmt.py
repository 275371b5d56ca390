"""Simplifying statements: every expression under what the loops, Lets and Ifs around it say."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Name, Param, Size, Unary
from tensorlang.ir.facts import Facts
from tensorlang.ir.mentions import mentioning, mentions
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Assert,
    Block,
    For,
    If,
    Let,
    Stmt,
    block,
    exprs_of,
    map_children,
    map_exprs,
    walk,
)
from tensorlang.ir.types import bool_
from tensorlang.ir.walk import substitute

_NOTHING = Block(())
# The names that are replaced further inside, by expressions over names that are not.
Values: TypeAlias = Mapping[str, Expr]


def simplify_stmt(stmt: Stmt, facts: Facts = Facts.none) -> Stmt:
    """A statement that does what `stmt` does wherever `facts` hold; itself when nothing changes.

    if true: s                    -> s
    if false: s; assert true      -> nothing
    for x in [a, +0): s           -> nothing
    for x in [a, +1): s           -> let x = a: s
    let x = v: s                  -> s[x := v]   where v is a name and a constant, or x occurs once
    """
    while True:
        stmt = _simplified(stmt, facts, {})
        # A body may now mention a name less often than before.
        if not any(isinstance(s, Let) and _is_inlined(s) for s in walk(stmt)):
            return stmt


def _simplified(stmt: Stmt, facts: Facts, values: Values) -> Stmt:
    """Once, from the outside in."""
    stmt = map_exprs(stmt, lambda e: simplify(substitute(e, values), facts))
    match stmt:
        case For():
            return _for(stmt, facts, values)
        case Let():
            return _let(stmt, facts, values)
        case If():
            return _if(stmt, facts, values)
        case Block():
            return _block(stmt, facts, values)
        case Assert(condition=Const(value=True)):
            return _NOTHING
        case _:
            return _around(stmt, facts, values)


def _around(stmt: Stmt, facts: Facts, values: Values) -> Stmt:
    """`stmt` over its simplified body; nothing when that is nothing."""
    if isinstance(stmt, For | Let) and stmt.var in values:
        values = {name: value for name, value in values.items() if name != stmt.var}
    result = map_children(stmt, lambda child: _simplified(child, facts, values))
    body = getattr(result, "body", None)
    return _NOTHING if isinstance(body, Block) and not body.statements else result


def _for(stmt: For, facts: Facts, values: Values) -> Stmt:
    if isinstance(stmt.extent, Const):
        count = int(stmt.extent.value)
        if count <= 0:
            return _NOTHING
        if count == 1:
            return _let(Let(stmt.var, stmt.min, stmt.body), facts, values)
    elif facts.holds(facts.simplified(stmt.extent <= 0)):
        return _NOTHING
    return _around(stmt, facts.with_range(stmt.var, stmt.min, stmt.extent), values)


def _if(stmt: If, facts: Facts, values: Values) -> Stmt:
    if isinstance(stmt.condition, Const):
        return _simplified(stmt.body, facts, values) if stmt.condition.value else _NOTHING
    fixed = dict(_fixed_names(stmt.condition))
    if fixed:
        values = {name: substitute(value, fixed) for name, value in values.items()} | fixed
    return _around(stmt, facts.assume(stmt.condition), values)


def _fixed_names(condition: Expr) -> Iterator[tuple[str, Const]]:
    """The Sizes and Params that are one number where a condition holds."""
    for part in conjuncts_of(condition):
        match part:
            case Compare(op="eq", a=(Size() | Param()) as name, b=Const() as value):
                # Of a float 0 the sign is not known.
                if value.dtype is name.dtype and (not value.dtype.is_float or value.value):
                    yield name.name, value
            case Param() if part.dtype.is_bool:
                yield part.name, Const(True, bool_)
            case Unary(op="not", a=Param() as name):
                yield name.name, Const(False, bool_)
            case _:
                pass


def _block(stmt: Block, facts: Facts, values: Values) -> Stmt:
    parts: list[Stmt] = []
    for part in stmt.statements:
        parts.append(_simplified(part, facts, values))
        if isinstance(part, Assert):
            # It holds for all that follows.
            facts = facts.assume(substitute(part.condition, values))
    nested = any(isinstance(s, Block) for s in parts)
    same = all(a is b for a, b in zip(parts, stmt.statements, strict=True))
    return stmt if same and not nested and len(parts) != 1 else block(*parts)


def _let(stmt: Let, facts: Facts, values: Values) -> Stmt:
    """Args: stmt: its value is simplified and its body is not."""
    if _is_inlined(stmt):
        return _simplified(stmt.body, facts, {**values, stmt.var: stmt.value})
    result = _around(stmt, facts.with_value(stmt.var, stmt.value), values)
    if isinstance(result, Let) and not _occurrences(result.body, result.var):
        return result.body
    return result


def _is_inlined(let: Let) -> bool:
    """Whether a Let goes: its value is worth no name, and means the same wherever it is used."""
    value, body = let.value, let.body
    worth_no_name = (
        _is_cheap(value)
        or _occurrences(body, let.var) <= 1
        or (_is_extremum(value) and _stands_in_guards(body, let.var))
    )
    return worth_no_name and not value.reads and not _captures(let)


def _is_cheap(value: Expr) -> bool:
    """A name, a constant, or one of each added: worth no name of its own."""
    match value:
        case Binary(op="add" | "sub", a=Name(), b=Const()):
            return True
        case _:
            return isinstance(value, (Name, Const))


def _is_extremum(value: Expr) -> bool:
    return isinstance(value, Binary) and value.op in ("min", "max")


def _stands_in_guards(body: Stmt, name: str) -> bool:
    """Whether only Ifs mention the name: there one side of a min or max is often decided."""
    here = (s for s in mentioning(body, name) if any(name in e.free for e in exprs_of(s)))
    return all(isinstance(s, If) for s in here)


def _occurrences(body: Stmt, name: str) -> int:
    """How many operands of the statement's expressions are the name."""
    return mentions(body).get(name, 0)


def _captures(let: Let) -> bool:
    """Whether the name is mentioned below a loop or Let that binds a name of its value."""
    if not let.value.free:
        return False
    inside = mentioning(let.body, let.var)
    return any(isinstance(s, (For, Let)) and s.var in let.value.free for s in inside)
