"""A ring of storage holds all that one iteration needs."""

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.printer import print_expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, If, Let, Program, Stmt, children_of
from tensorlang.ir.types import index
from tensorlang.lower.plan import Plan


def check_folds(program: Program, plan: Plan) -> Program:
    """Where f is folded by n along x: f.x.extent <= n wherever f is computed.

    Raises: ScheduleError (fold-too-small).
    """
    folded = {name for name, storage in plan.storage.items() if storage.folds}
    if folded:
        _check(program.body, plan, folded, Facts.none)
    return program


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
