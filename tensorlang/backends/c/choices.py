"""What stands in a loop as one choice: where all conditions in it hold, and otherwise."""

from dataclasses import dataclass, replace

from tensorlang.backends.c.rewriting import all_of, otherwise
from tensorlang.ir.expr import Binary, Expr
from tensorlang.ir.stmt import Allocate, Block, If, Let, Stage, Stmt, block
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True)
class Choice:
    """if condition: fast  else: slow"""

    condition: Expr
    fast: Stmt
    slow: Stmt


def choice_of(stmt: Stmt) -> Choice | None:
    """A statement as one choice: where all conditions in it hold, and otherwise."""
    match stmt:
        case If() if not stmt.condition.reads:
            inner = choice_of(stmt.body)
            if inner is None:
                return Choice(stmt.condition, stmt.body, stmt)
            return Choice(Binary("and", stmt.condition, inner.condition), inner.fast, stmt)
        case Let() if not stmt.value.reads:
            inner = _around(stmt)
            if inner is None:
                return None
            condition = substitute(inner.condition, {stmt.var: stmt.value})
            return replace(inner, condition=condition)
        case Stage() | Allocate():
            return _around(stmt)
        case Block():
            return _choice_of_block(stmt)
        case _:
            return None


def _around(stmt: Let | Stage | Allocate) -> Choice | None:
    """The choice in its body, with the statement itself around both sides."""
    inner = choice_of(stmt.body)
    if inner is None:
        return None
    fast, slow = (replace(stmt, body=side) for side in (inner.fast, inner.slow))
    return Choice(inner.condition, fast, slow)


def _choice_of_block(stmt: Block) -> Choice | None:
    """All choices of a block together; two Ifs that are one choice count as one."""
    conditions: list[Expr] = []
    fast: list[Stmt] = []
    slow: Stmt | None = None
    previous: Stmt | None = None
    for s in stmt.statements:
        other = otherwise(previous, s)
        inner = None if other is not None else choice_of(s)
        if other is not None:
            slow = other
        elif inner is None:
            fast.append(s)
        else:
            conditions.append(inner.condition)
            fast.append(inner.fast)
        previous = s
    if not conditions:
        return None
    is_pair = slow is not None and len(stmt.statements) == 2
    condition = all_of(list(dict.fromkeys(conditions)))
    assert condition is not None
    return Choice(condition, block(*fast), slow if is_pair and slow is not None else stmt)
