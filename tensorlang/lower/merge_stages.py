"""Run two stages in one set of loops, where a schedule says compute_with."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.mentions import touches
from tensorlang.ir.stmt import (
    Allocate,
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
from tensorlang.lower.plan import Merge, Nest, Plan


def merge_stages(program: Program, plan: Plan) -> Program:
    """for i: a; for i: b   ->   for i: { a; b }     down to the loop named

    Requires: simplified, so that equal extents are equal expressions.
    Raises: ScheduleError: stages-apart, loops-differ, stages-depend.
    See: Halide's compute_with.
    """
    body = program.body
    values = {s.var: s.value for s in walk(body) if isinstance(s, Let)} if plan.merges else {}
    for merge in plan.merges:
        merged = _merge_in(body, merge, plan, values)
        if merged is body:
            body = _brought_beside(body, merge)
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


def _merge_in(stmt: Stmt, merge: Merge, plan: Plan, values: Mapping[str, Expr]) -> Stmt:
    if isinstance(stmt, Block):
        statements = stmt.statements
        for at, (a, b) in enumerate(pairwise(statements)):
            if isinstance(a, Stage) and isinstance(b, Stage) and _is_pair(a, b, merge):
                made = _merged(merge, plan, a, b, values)
                return block(*statements[:at], made, *statements[at + 2 :])
    return map_children(stmt, lambda child: _merge_in(child, merge, plan, values))


def _brought_beside(body: Stmt, merge: Merge) -> Stmt:
    """a; allocate X { s; b; t }   ->   allocate X { a; b; s; t }     at root

    Storage of what is computed between then lives longer, and b runs before s, of which neither
    needs the other; where one does, the body stays as it is.
    """
    line = _line(body)
    stages = [(k, s) for k, s in enumerate(line) if isinstance(s, Stage)]
    at = next((k for k, s in stages if _names_of(_last(s)) == merge.into), None)
    to = next((k for k, s in stages if _names_of(s) == merge.stage), None)
    if at is None or to is None or to < at:
        return body
    moved, between = line[to], line[at + 1 : to]
    held = [s for s in between if isinstance(s, (Allocate, Let))]
    passed = [s for s in between if not isinstance(s, (Allocate, Let))]
    if any(_needs(moved, s) or _needs(s, moved) for s in passed):
        return body
    order = [*line[:at], *held, line[at], moved, *passed, *line[to + 1 :]]
    made: list[Stmt] = []
    for item in reversed(order):
        if isinstance(item, (Allocate, Let)):
            made = [replace(item, body=block(*made))]
        else:
            made.insert(0, item)
    return block(*made)


def _line(body: Stmt) -> list[Stmt]:
    """The statements of the root in order; an Allocate or a Let stands for its head alone."""
    if isinstance(body, Block):
        return [s for part in body.statements for s in _line(part)]
    if isinstance(body, (Allocate, Let)):
        return [body, *_line(body.body)]
    return [body]


def _names_of(stage: Stage) -> tuple[str, int]:
    return stage.func, stage.number


def _needs(a: Stmt, b: Stmt) -> bool:
    """Whether a touches what b stores."""
    return any(touches(a, s.buffer) for s in walk(b) if isinstance(s, Store))


def _is_pair(a: Stage, b: Stage, merge: Merge) -> bool:
    last = _last(a)
    return (last.func, last.number) == merge.into and (b.func, b.number) == merge.stage


def _last(stage: Stage) -> Stage:
    """The last stage that was merged into this one, or itself."""
    inner = [s for s in walk(stage.body) if isinstance(s, Stage)]
    return inner[-1] if inner and inner[-1].func == stage.func else stage


def _merged(merge: Merge, plan: Plan, a: Stage, b: Stage, values: Mapping[str, Expr]) -> Stage:
    """The loops of `a`, with the bodies of both in the loop named."""
    loops_a, inner_a = _peel(merge, a, plan.nests[merge.into])
    loops_b, inner_b = _peel(merge, b, plan.nests[merge.stage])
    _check_alike(merge, loops_a, loops_b, values)
    if a.func != b.func:
        _check_independent(merge, a, b)
    for mine, other in zip(reversed(loops_a), reversed(loops_b), strict=True):
        inner_b = Let(other.var, Var(mine.var), inner_b) if mine.var != other.var else inner_b
    body = block(inner_a, Stage(b.func, b.number, inner_b, span=b.span))
    for loop in reversed(loops_a):
        body = replace(loop, body=body)
    return replace(a, body=body)


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
    """Args: values: what names stand for, such as the extent of a region."""
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
