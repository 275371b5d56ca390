"""Loops split where a condition inside them changes: no test runs in the steady state.

    for x in [0, n): if 0 < x & x < n - 1: A else: B
->  for x in [0, 1): B;  for x in [1, n - 1): A;  for x in [n - 1, n): B
    for x: if c: A else: B   ->   if c: for x: A  else: for x: B        (c the same in every x)
    for x in [m, +4): if x < n: A   ->   if m + 3 < n: for x: A  else: for x: if x < n: A
"""

from dataclasses import replace
from functools import reduce

from tensorlang.backends.c.choices import Choice, choice_of
from tensorlang.backends.c.corners import at_worst, slack_of
from tensorlang.backends.c.machine import Machine
from tensorlang.backends.c.nest import range_of
from tensorlang.backends.c.register_tiles import in_registers
from tensorlang.backends.c.rewriting import all_of, either, larger, less, smaller, total
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.linear import Linear, integer, to_expr
from tensorlang.ir.stmt import (
    Allocate,
    For,
    Let,
    LoopKind,
    Stmt,
    Store,
    block,
    map_children,
    walk,
)


def partition(stmt: Stmt, machine: Machine) -> Stmt:
    """Split every serial loop whose body is one choice, innermost loops first."""
    stmt = map_children(stmt, lambda child: partition(child, machine))
    match stmt:
        case For(kind=LoopKind.SERIAL):
            return _split(stmt)
        case Allocate():
            return in_registers(stmt, machine)
        case _:
            return stmt


# Of so few iterations all are in the steady state or none is.
_FEW = 8
# A loop with more stores in it than this is not written a second time.
_MOST_STORES = 64


def _split(loop: For, depth: int = 0) -> Stmt:
    choice = choice_of(loop.body)
    if choice is None or _stores(choice.slow) > _MOST_STORES:
        return loop
    if isinstance(loop.extent, Const) and int(loop.extent.value) <= _FEW:
        return _all_or_none(loop, choice)
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


def _all_or_none(loop: For, choice: Choice) -> Stmt:
    """The loop where the choice holds in all iterations, and the loop as it is."""
    ranges = {loop.var: range_of(loop)}
    corners: list[Expr] = []
    for part in dict.fromkeys(conjuncts_of(choice.condition)):
        form = slack_of(part, frozenset(ranges)) if loop.var in part.free else None
        corner = part if loop.var not in part.free else form and at_worst(form, ranges)
        if corner is None:
            return loop
        corners.append(corner)
    fast, slow = (replace(loop, body=side) for side in (choice.fast, choice.slow))
    return either(all_of(list(dict.fromkeys(corners))), fast, slow)


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
