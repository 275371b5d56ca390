"""Storage in rings, which hold all that one iteration needs."""

from dataclasses import replace

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.printer import print_expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Allocate, For, If, Let, Program, Stmt, children_of, map_children
from tensorlang.ir.types import index
from tensorlang.lower.plan import Plan


def fold_storage(program: Program, plan: Plan) -> Program:
    """allocate f   ->   allocate f fold (n, 0)     where f is folded by n along its first dimension

    Wherever f is computed f.x.extent <= n.  What an iteration finds there of earlier ones is still
    there: a window slides only where nothing is stored over it in between (ir/sliding.py).
    Raises: ScheduleError (fold-too-small).
    """
    folded = {name for name, storage in plan.storage.items() if storage.folds}
    if not folded:
        return program
    _check(program.body, plan, folded, Facts.none)
    return replace(program, body=_fold(program.body, plan, folded))


def _fold(stmt: Stmt, plan: Plan, folded: set[str]) -> Stmt:
    stmt = map_children(stmt, lambda child: _fold(child, plan, folded))
    if not isinstance(stmt, Allocate) or stmt.buffer.name not in folded:
        return stmt
    rings = dict(plan.storage[stmt.buffer.name].folds)
    fold = tuple(rings.get(k, 0) for k in range(len(stmt.buffer.dims)))
    return replace(stmt, buffer=replace(stmt.buffer, fold=fold))


def _check(stmt: Stmt, plan: Plan, folded: set[str], facts: Facts) -> None:
    match stmt:
        case Let():
            func, _, part = stmt.var.rpartition(".")
            func, _, dim = func.rpartition(".")
            if part == "extent" and func in folded:
                _check_extent(stmt, func, dim, plan, facts)
            facts = facts.with_value(stmt.var, stmt.value)
        case For():
            facts = facts.with_range(stmt.var, stmt.min, stmt.extent)
        case If():
            facts = facts.assume(stmt.condition)
        case _:
            pass
    for child in children_of(stmt):
        _check(child, plan, folded, facts)


def _check_extent(let: Let, func: str, dim: str, plan: Plan, facts: Facts) -> None:
    storage = plan.storage[func]
    position = plan.algorithm.func(func).dims.index(dim)
    ring = dict(storage.folds).get(position)
    if ring is None or prove_le(let.value, Const(ring, index), facts):
        return
    needed = print_expr(simplify(let.value, facts))
    raise ScheduleError(
        "fold-too-small",
        f"cannot fold {func!r} along {dim!r} into {ring} elements",
        why=f"one iteration of the loop that computes it needs {needed} of them"
        if not let.value.free
        else f"one iteration of the loop that computes it needs up to {needed} of them, "
        f"which is not known to be at most {ring}",
        fix="fold by more elements, or compute it at a loop further in, with its storage outside",
        span=storage.span,
    )
