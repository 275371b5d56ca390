"""Run two stages in one set of loops, where a schedule says compute_with."""

from dataclasses import replace
from itertools import pairwise

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Var
from tensorlang.ir.mentions import touches
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
from tensorlang.lower.plan import Merge, Nest, Plan


def merge_stages(program: Program, plan: Plan) -> Program:
    """for i: a; for i: b   ->   for i: { a; b }     down to the loop named

    Requires: simplified, so that equal extents are equal expressions.
    Raises: ScheduleError: stages-apart, loops-differ, stages-depend.
    See: Halide's compute_with.
    """
    body = program.body
    for merge in plan.merges:
        merged = _merge_in(body, merge, plan)
        if merged is body:
            raise _refused(
                merge,
                "stages-apart",
                "the two do not stand one right after the other",
                "compute both Funcs at the same loop, or both at root, with nothing between",
            )
        body = merged
    return program if body is program.body else replace(program, body=body)


def _merge_in(stmt: Stmt, merge: Merge, plan: Plan) -> Stmt:
    if isinstance(stmt, Block):
        statements = stmt.statements
        for at, (a, b) in enumerate(pairwise(statements)):
            if isinstance(a, Stage) and isinstance(b, Stage) and _is_pair(a, b, merge):
                made = _merged(merge, plan, a, b)
                return block(*statements[:at], made, *statements[at + 2 :])
    return map_children(stmt, lambda child: _merge_in(child, merge, plan))


def _is_pair(a: Stage, b: Stage, merge: Merge) -> bool:
    last = _last(a)
    return (last.func, last.number) == merge.into and (b.func, b.number) == merge.stage


def _last(stage: Stage) -> Stage:
    """The last stage that was merged into this one, or itself."""
    inner = [s for s in walk(stage.body) if isinstance(s, Stage)]
    return inner[-1] if inner and inner[-1].func == stage.func else stage


def _merged(merge: Merge, plan: Plan, a: Stage, b: Stage) -> Stage:
    """The loops of `a`, with the bodies of both in the loop named."""
    loops_a, inner_a = _peel(merge, a, plan.nests[merge.into])
    loops_b, inner_b = _peel(merge, b, plan.nests[merge.stage])
    _check_alike(merge, loops_a, loops_b)
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


def _check_alike(merge: Merge, a: list[For], b: list[For]) -> None:
    alike = len(a) == len(b) and all(
        x.kind is y.kind and x.min is y.min and x.extent is y.extent
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
