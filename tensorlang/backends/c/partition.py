"""Loops split where a condition inside them changes: no test runs in the steady state.

    for x in [0, n): if 0 < x & x < n - 1: A else: B
->  for x in [0, 1): B;  for x in [1, n - 1): A;  for x in [n - 1, n): B
    for x: if c: A else: B   ->   if c: for x: A  else: for x: B        (c the same in every x)
"""

from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.backends.c.corners import slack_of
from tensorlang.backends.c.rewriting import all_of, either, larger, less, otherwise, smaller, total
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Expr, Var
from tensorlang.ir.linear import Linear, integer, to_expr
from tensorlang.ir.stmt import (
    Allocate,
    Block,
    For,
    If,
    Let,
    LoopKind,
    Stage,
    Stmt,
    Store,
    block,
    map_children,
    walk,
)
from tensorlang.ir.walk import substitute


def partition(stmt: Stmt) -> Stmt:
    """Split every serial loop whose body is one choice, innermost loops first."""
    stmt = map_children(stmt, partition)
    if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        return _split(stmt)
    return stmt


# A loop with more stores in it than this is not written a second time.
_MOST_STORES = 64


@dataclass(frozen=True, slots=True)
class _Choice:
    """if condition: fast  else: slow"""

    condition: Expr
    fast: Stmt
    slow: Stmt


def _choice_of(stmt: Stmt) -> _Choice | None:
    """A statement as one choice: where all conditions in it hold, and otherwise."""
    match stmt:
        case If() if not stmt.condition.reads:
            inner = _choice_of(stmt.body)
            if inner is None:
                return _Choice(stmt.condition, stmt.body, stmt)
            return _Choice(Binary("and", stmt.condition, inner.condition), inner.fast, stmt)
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


def _around(stmt: Let | Stage | Allocate) -> _Choice | None:
    """The choice in its body, with the statement itself around both sides."""
    inner = _choice_of(stmt.body)
    if inner is None:
        return None
    fast, slow = (replace(stmt, body=side) for side in (inner.fast, inner.slow))
    return _Choice(inner.condition, fast, slow)


def _choice_of_block(stmt: Block) -> _Choice | None:
    """All choices of a block together; two Ifs that are one choice count as one."""
    conditions: list[Expr] = []
    fast: list[Stmt] = []
    slow: Stmt | None = None
    previous: Stmt | None = None
    for s in stmt.statements:
        other = otherwise(previous, s)
        inner = None if other is not None else _choice_of(s)
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
    return _Choice(condition, block(*fast), slow if is_pair and slow is not None else stmt)


def _split(loop: For, depth: int = 0) -> Stmt:
    choice = _choice_of(loop.body)
    if choice is None or _stores(choice.slow) > _MOST_STORES:
        return loop
    fixed: list[Expr] = []
    lows: list[Expr] = []
    ends: list[Expr] = []
    for part in dict.fromkeys(conjuncts_of(choice.condition)):
        form = slack_of(part, frozenset((loop.var,)))
        step = form.terms.get(Var(loop.var), 0) if form else 0
        if loop.var not in part.free:
            fixed.append(part)
        elif form is None:
            return loop
        elif step > 0:
            lows.append(_first_above(form.without(Var(loop.var)), step))
        else:
            ends.append(_end_below(form.without(Var(loop.var)), -step))
    fast = replace(loop, body=choice.fast)
    whole = _pieces(fast, choice.slow, lows, ends, depth) if lows or ends else _split(fast, depth)
    return either(all_of(fixed), whole, replace(loop, body=choice.slow))


def _first_above(rest: Linear, step: int) -> Expr:
    """The first x with step*x + rest > 0."""
    return total(_floor(-rest, step), integer(1))


def _end_below(rest: Linear, step: int) -> Expr:
    """The first x that no longer has rest - step*x > 0."""
    return _floor(rest.shifted(step - 1), step)


def _floor(form: Linear, by: int) -> Expr:
    if by == 1:
        return to_expr(form)
    if not form.terms:
        return integer(form.constant // by)
    return Binary("floordiv", to_expr(form), integer(by))


def _pieces(fast: For, slow: Stmt, lows: list[Expr], ends: list[Expr], depth: int) -> Stmt:
    """slow up to where the choice begins to hold, fast while it does, slow from there on."""
    end = total(fast.min, fast.extent)
    name = f"{fast.var}_steady{depth or ''}"
    begin, stop = Var(name), Var(f"{name}_end")
    first = smaller(reduce(larger, lows, fast.min), end)
    last = larger(reduce(smaller, ends, end), begin if lows else fast.min)
    start, finish = begin if lows else fast.min, stop if ends else end
    steady = replace(fast, min=start, extent=less(finish, start))
    parts: list[Stmt] = [_split(steady, depth + 1)]
    if lows:
        parts.insert(0, replace(fast, extent=less(begin, fast.min), body=slow))
    if ends:
        parts.append(replace(fast, min=stop, extent=less(end, stop), body=slow))
    body = block(*parts)
    if ends:
        body = Let(stop.name, last, body)
    return Let(begin.name, first, body) if lows else body


def _stores(stmt: Stmt) -> int:
    return sum(isinstance(s, Store) for s in walk(stmt))
