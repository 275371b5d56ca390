"""Loops split where a condition inside them changes: no test runs in the steady state.

    for x in [0, n): if 0 < x & x < n - 1: A else: B
->  for x in [0, 1): B;  for x in [1, n - 1): A;  for x in [n - 1, n): B
    for x: if c: A else: B   ->   if c: for x: A  else: for x: B        (c the same in every x)
"""

from dataclasses import dataclass, replace
from functools import reduce

from tensorlang.backends.c.corners import slack_of
from tensorlang.backends.c.rewriting import all_of, either, larger, less, otherwise, smaller, total
from tensorlang.ir.expr import Binary, Expr, Var
from tensorlang.ir.inequality import conjuncts_of
from tensorlang.ir.linear import Linear, integer, to_expr
from tensorlang.ir.stmt import Block, For, If, Let, LoopKind, Stmt, block, map_children
from tensorlang.ir.walk import substitute


def partition(stmt: Stmt) -> Stmt:
    """Split every serial loop whose body is one choice, innermost loops first."""
    stmt = map_children(stmt, partition)
    if isinstance(stmt, For) and stmt.kind is LoopKind.SERIAL:
        return _split(stmt)
    return stmt


@dataclass(frozen=True, slots=True)
class _Choice:
    """if condition: fast  else: slow"""

    condition: Expr
    fast: Stmt
    slow: Stmt


def _choice_of(stmt: Stmt) -> _Choice | None:
    """The choice that a statement is; a Let in front of it goes into both sides."""
    match stmt:
        case Let() if not stmt.value.reads:
            inner = _choice_of(stmt.body)
            if inner is None:
                return None
            return _Choice(
                substitute(inner.condition, {stmt.var: stmt.value}),
                replace(stmt, body=inner.fast),
                replace(stmt, body=inner.slow),
            )
        case Block(statements=(If() as first, second)):
            slow = otherwise(first, second)
            return None if slow is None else _Choice(first.condition, first.body, slow)
        case _:
            return None


def _split(loop: For, depth: int = 0) -> Stmt:
    choice = _choice_of(loop.body)
    if choice is None or choice.condition.reads:
        return loop
    fixed: list[Expr] = []
    lows: list[Expr] = []
    ends: list[Expr] = []
    for part in conjuncts_of(choice.condition):
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
