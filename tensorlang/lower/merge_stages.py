"""Run two stages in one set of loops, where a schedule says compute_with."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.mentions import touches
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Block,
    For,
    If,
    Let,
    Program,
    Stage,
    Stmt,
    Store,
    block,
    map_children,
    walk,
)
from tensorlang.ir.walk import substitute
from tensorlang.lower.bring_beside import brought_beside, last_stage
from tensorlang.lower.plan import Merge, Nest, Plan


def merge_stages(program: Program, plan: Plan) -> Program:
    """for i: a; for i: b   ->   for i: { a; b }     down to the loop named

    Requires: simplified, so that equal extents are equal expressions.
    Raises: ScheduleError: stages-apart, loops-differ, stages-depend.
    See: Halide's compute_with.
    """
    body = program.body
    for merge in plan.merges:
        values = _values_of(body)
        merged = _merge_in(body, merge, plan, values)
        if merged is body:
            body = brought_beside(body, merge)
            merged = _merge_in(body, merge, plan, values)
        if merged is body:
            raise _refused(
                merge,
                "stages-apart",
                "the two do not stand one right after the other, nor can be brought there",
                "compute both Funcs at the same loop, or both at root, with nothing between that "
                "needs the one or that the other needs",
            )
        body = merged
    return program if body is program.body else replace(program, body=body)


def _values_of(body: Stmt) -> Mapping[str, Expr]:
    """What names stand for, such as the extent of a region; itself for one with two values."""
    found: dict[str, Expr] = {}
    for stmt in walk(body):
        if isinstance(stmt, Let):
            value = substitute(stmt.value, found)
            found[stmt.var] = value if found.get(stmt.var, value) is value else Var(stmt.var)
    return found


def _merge_in(stmt: Stmt, merge: Merge, plan: Plan, values: Mapping[str, Expr]) -> Stmt:
    if isinstance(stmt, Block):
        statements = stmt.statements
        for at, (a, b) in enumerate(pairwise(statements)):
            if isinstance(a, Stage) and isinstance(b, Stage) and _is_pair(a, b, merge):
                made = _merged(merge, plan, a, b, values)
                return block(*statements[:at], made, *statements[at + 2 :])
    return map_children(stmt, lambda child: _merge_in(child, merge, plan, values))


def _is_pair(a: Stage, b: Stage, merge: Merge) -> bool:
    return last_stage(a) == merge.into and (b.func, b.number) == merge.stage


def _merged(merge: Merge, plan: Plan, a: Stage, b: Stage, values: Mapping[str, Expr]) -> Stage:
    """The loops of `a`, with the bodies of both in the loop named."""
    loops_a, inner_a = _peel(merge, a, plan.nests[merge.into])
    loops_b, inner_b = _peel(merge, b, plan.nests[merge.stage])
    _check_alike(merge, loops_a, loops_b, values)
    if a.func != b.func:
        _check_independent(merge, a, b)
    pairs = list(zip(loops_a, loops_b, strict=True))
    for mine, other in reversed(pairs):
        inner_b = Let(other.var, Var(mine.var), inner_b) if mine.var != other.var else inner_b
    body = _under_guards(inner_a, Stage(b.func, b.number, inner_b, span=b.span), values)
    for loop, other in reversed(pairs):
        body = replace(loop, body=body, reduction=loop.reduction or other.reduction)
    return replace(a, body=body)


def _under_guards(a: Stmt, b: Stage, values: Mapping[str, Expr]) -> Stmt:
    """if c: s; if c: t   ->   if c: { s; t }     so that c can become the extent of the loop"""
    guards, inner = _guards_of(a, values)
    if not guards or not guards <= _guards_of(b.body, values)[0]:
        return block(a, b)
    both = block(inner, replace(b, body=_without(b.body, guards, values)))
    return _around(a, inner, both)


def _guards_of(stmt: Stmt, values: Mapping[str, Expr]) -> tuple[frozenset[Expr], Stmt]:
    """The conditions at the head of a statement, in names bound outside it, and what they guard."""
    found: set[Expr] = set()
    while isinstance(stmt, (Let, If)):
        if isinstance(stmt, Let):
            values = {**values, stmt.var: substitute(stmt.value, values)}
        elif not stmt.condition.reads:
            found.add(simplify(substitute(stmt.condition, values)))
        else:
            break
        stmt = stmt.body
    return frozenset(found), stmt


def _without(stmt: Stmt, guards: frozenset[Expr], values: Mapping[str, Expr]) -> Stmt:
    """The statement where those guards are known to hold."""
    if isinstance(stmt, Let):
        values = {**values, stmt.var: substitute(stmt.value, values)}
        return replace(stmt, body=_without(stmt.body, guards, values))
    if isinstance(stmt, If):
        body = _without(stmt.body, guards, values)
        known = simplify(substitute(stmt.condition, values)) in guards
        return body if known else replace(stmt, body=body)
    return stmt


def _around(stmt: Stmt, inner: Stmt, made: Stmt) -> Stmt:
    """The Lets and Ifs of a statement around something else than `inner`."""
    if stmt is inner or not isinstance(stmt, (Let, If)):
        return made
    return replace(stmt, body=_around(stmt.body, inner, made))


def _peel(merge: Merge, stage: Stage, nest: Nest) -> tuple[list[For], Stmt]:
    """The loops down to the one named, and what runs inside them with its values and guards.

    A loop of one iteration is no loop any more.
    """
    names = nest.names()
    if merge.loop not in names:
        raise _refused(
            merge,
            "loops-differ",
            f"{nest.func!r} has no loop {merge.loop!r} any more",
            "split and fuse first, then compute_with",
        )
    shared = {f"{nest.func}.{name}" for name in names[: names.index(merge.loop) + 1]}
    loops: list[For] = []
    inside: list[Let | If] = []
    stmt: Stmt = stage.body
    while any(isinstance(s, For) and s.var in shared for s in walk(stmt)):
        if isinstance(stmt, (Let, If)):
            inside.append(stmt)
        elif isinstance(stmt, For):
            loops.append(stmt)
        else:
            raise _refused(
                merge,
                "loops-differ",
                f"{nest.func!r} computes another Func outside its loop {merge.loop!r}",
                "name a loop that both have, outside all Funcs computed inside",
            )
        stmt = stmt.body
    for outer in reversed(inside):
        stmt = replace(outer, body=stmt)
    return loops, stmt


def _check_alike(merge: Merge, a: list[For], b: list[For], values: Mapping[str, Expr]) -> None:
    alike = len(a) == len(b) and all(
        x.kind is y.kind
        and substitute(x.min, values) is substitute(y.min, values)
        and substitute(x.extent, values) is substitute(y.extent, values)
        for x, y in zip(a, b, strict=True)
    )
    if not alike:
        raise _refused(
            merge,
            "loops-differ",
            "the loops down to it differ in number, range or kind",
            "give both stages the same splits, order and kinds down to that loop",
        )


def _check_independent(merge: Merge, a: Stage, b: Stage) -> None:
    stored = {s.buffer for s in walk(a) if isinstance(s, Store)}
    if any(touches(b, name) for name in stored):
        raise _refused(
            merge,
            "stages-depend",
            f"{b.func!r} reads what {a.func!r} computes, perhaps in an iteration still to come",
            f"compute_at {b.func!r}'s loop instead",
        )


def _refused(merge: Merge, code: str, why: str, fix: str) -> ScheduleError:
    (func, number), (other, _) = merge.stage, merge.into
    update = f".update({number - 1})" if number else ""
    return ScheduleError(
        code,
        f"cannot compute {func}{update} with {other!r} at {merge.loop!r}",
        why=why,
        fix=fix,
        span=merge.span,
    )
