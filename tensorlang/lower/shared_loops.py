"""Two stages in one set of loops: what place_stages and merge_stages do for compute_with."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Expr, Var
from tensorlang.ir.facts import Facts, prove
from tensorlang.ir.mentions import touches
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Block, For, If, Let, Stage, Stmt, Store, block, map_children, walk
from tensorlang.ir.walk import substitute
from tensorlang.lower.bring_beside import brought_beside, last_stage
from tensorlang.lower.plan import Level, Merge, Nest, Plan


def is_shared(body: Stmt, merge: Merge) -> bool:
    """Whether the stage stands in the loops of the other, and has none of its own any more."""
    outer = (s for s in walk(body) if isinstance(s, Stage) and (s.func, s.number) == merge.into)
    inner = (s for stage in outer for s in walk(stage.body) if isinstance(s, Stage))
    loop = f"{merge.stage[0]}.{merge.loop}"
    return any(
        not any(isinstance(s, For) and s.var == loop for s in walk(stage.body))
        for stage in inner
        if (stage.func, stage.number) == merge.stage
    )


def share_loops(body: Stmt, merge: Merge, plan: Plan) -> Stmt:
    """for i: a; for i: b   ->   for i: { a; b }     down to the loop named

    Where the two do not stand side by side and cannot be brought there, the body stays as it is.
    Raises: ScheduleError: loops-differ, stages-depend.
    """
    merged = _merge_in(body, merge, plan, _values_of(body))
    if merged is not body:
        return merged
    beside = brought_beside(body, merge)
    merged = _merge_in(beside, merge, plan, _values_of(beside))
    return body if merged is beside else merged


def refused_apart(merge: Merge) -> ScheduleError:
    """The error of two stages that cannot be brought together."""
    return _refused(
        merge,
        "stages-apart",
        "the two do not stand one right after the other, nor can be brought there",
        "compute both Funcs at the same loop, or both at root, with nothing between that "
        "needs the one or that the other needs",
    )


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
    loops_a, inner_a = _peel(merge, a, plan.nests[merge.into], values)
    loops_b, inner_b = _peel(merge, b, plan.nests[merge.stage], values)
    _check_alike(merge, loops_a, loops_b, values)
    if a.func != b.func:
        # What is computed in the loop itself is of one iteration, in which b comes after a.
        level = Level(merge.into[0], merge.loop)
        placed = plan.placements.items()
        own = frozenset(f for f, p in placed if (p.store or p.compute) == level)
        _check_independent(merge, a, b, own)
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


def _peel(
    merge: Merge, stage: Stage, nest: Nest, values: Mapping[str, Expr]
) -> tuple[list[For], Stmt]:
    """The loops down to the one named, and what runs inside them with its values and guards.

    A loop of one iteration is no loop any more.  A guard that always holds is none: it would keep
    apart what stands in the loop from what the other stage has there.
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
    facts, stmt = Facts.none, stage.body
    while any(isinstance(s, For) and s.var in shared for s in walk(stmt)):
        if isinstance(stmt, If) and prove(_known(stmt.condition, values), facts):
            pass
        elif isinstance(stmt, (Let, If)):
            inside.append(stmt)
        elif isinstance(stmt, For):
            loops.append(stmt)
            ends = (_known(e, values) for e in (stmt.min, stmt.extent))
            facts = facts.with_range(stmt.var, *ends)
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
        and _known(x.min, values) is _known(y.min, values)
        and _known(x.extent, values) is _known(y.extent, values)
        for x, y in zip(a, b, strict=True)
    )
    if not alike:
        raise _refused(
            merge,
            "loops-differ",
            "the loops down to it differ in number, range or kind",
            "give both stages the same splits, order and kinds down to that loop",
        )


def _known(e: Expr, values: Mapping[str, Expr]) -> Expr:
    """The expression without names that stand for others."""
    return simplify(substitute(e, values))


def _check_independent(merge: Merge, a: Stage, b: Stage, own: frozenset[str]) -> None:
    """Neither touches what the other stores, these Funcs aside."""
    for reader, computed in ((b, a), (a, b)):
        stored = {s.buffer for s in walk(computed) if isinstance(s, Store)} - own
        if any(touches(reader, name) for name in stored):
            raise _refused(
                merge,
                "stages-depend",
                f"{reader.func!r} reads what {computed.func!r} computes, perhaps in an iteration "
                "still to come",
                f"compute_at {reader.func!r}'s loop instead",
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
