"""What a schedule says of regions: conditions that a call checks, and facts for what follows."""

from collections.abc import Mapping
from dataclasses import replace

from tensorlang.algorithm import FuncRecord
from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.printer import print_expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    For,
    If,
    Let,
    Program,
    Stmt,
    block,
    children_of,
)
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute
from tensorlang.ir.widening import Fixed
from tensorlang.lower.plan import Plan

ZERO = Const(0, index)


def check_bounds(program: Program, plan: Plan) -> Program:
    """assert needed region of f <= bound of f; program

    The conditions come first, so that what follows is simplified under them.
    Requires: bounds-known.  Raises: ScheduleError (extent-not-bounded).
    """
    if not plan.widenings and not plan.asserts:
        return program
    places = _Places(plan)
    places.visit(program.body, {}, Facts.none)
    asserts = (*plan.asserts, *places.asserts)
    return replace(program, body=block(*asserts, program.body)) if asserts else program


def bound_asserts(program: Program, plan: Plan) -> tuple[Assert, ...]:
    """The conditions under which every Func's bounds hold what all its consumers need.

    Args: program: every Func at root, over all that is needed of it.
    """
    values = _values_at_root(program.body)
    shapes = dict(plan.algorithm.outputs)
    found: list[Assert] = []
    for name, rules in plan.widenings.items():
        func = plan.algorithm.func(name)
        for rule in rules:
            if isinstance(rule, Fixed) and name in shapes:
                found.append(_of_output(func, rule, shapes[name][rule.dim]))
            elif isinstance(rule, Fixed) and rule.min is not None:
                first, last = (
                    simplify(values[f"{name}.{func.dims[rule.dim]}.{part}"])
                    for part in ("first", "last")
                )
                found.append(_of_region(func, rule, rule.min, first, last))
    return tuple(found)


def _values_at_root(stmt: Stmt) -> Mapping[str, Expr]:
    """What the Lets at root stand for, over Sizes and Params."""
    values: dict[str, Expr] = {}
    waiting = [stmt]
    while waiting:
        match top := waiting.pop():
            case Let():
                values[top.var] = substitute(top.value, values)
                waiting.append(top.body)
            case Block() | Allocate():
                waiting.extend(reversed(children_of(top)))
            case _:
                pass
    return values


def _of_output(func: FuncRecord, rule: Fixed, extent: Expr) -> Assert:
    """An output is exactly as large as its bound says."""
    low = ZERO if rule.min is None else rule.min
    condition = simplify((low == ZERO) & (extent == rule.extent))
    return Assert(
        condition,
        "ShapeError",
        "bound-not-met",
        f"dimension {rule.dim} of output {func.name!r} has {{0}} elements, from 0 on, where its "
        "schedule says {1}, from {2} on",
        f"the schedule bounds {func.dims[rule.dim]!r}, and the code is made for that",
        "pass arrays of that size, or compile without the bound",
        (extent, rule.extent, low),
    )


def _of_region(func: FuncRecord, rule: Fixed, low: Expr, first: Expr, last: Expr) -> Assert:
    """What is needed lies within the bound, or nothing is needed."""
    inside = (low <= first) & (last < low + rule.extent)
    end = simplify(low + rule.extent - 1)
    return _needs(
        func,
        rule,
        inside | (last < first),
        "is needed from {0} to {1}, where its schedule says {2} to {3}",
        (first, last, low, end),
    )


def _needs(
    func: FuncRecord, rule: Fixed, condition: Expr, what: str, values: tuple[Expr, ...]
) -> Assert:
    dim = func.dims[rule.dim]
    return Assert(
        simplify(condition),
        "ShapeError",
        "bound-not-met",
        f"{dim!r} of {func.name!r} {what}",
        f"the schedule bounds {dim!r}, and the code is made for that",
        "pass arrays for which it holds, or compile without the bound",
        values,
    )


class _Places:
    """Wherever a Func is computed, what is needed there fits the extent that was asked for."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        algorithm = plan.algorithm
        self.scalars = {x.name for x in (*algorithm.sizes, *algorithm.params)}
        self.asserts: list[Assert] = []

    def visit(self, stmt: Stmt, values: Mapping[str, Expr], facts: Facts) -> None:
        """Check what is below a statement; `values`: what the Lets around it stand for."""
        match stmt:
            case Let():
                if stmt.var.endswith(".first"):
                    self._check(stmt, values, facts)
                values = {**values, stmt.var: substitute(stmt.value, values)}
                facts = facts.with_value(stmt.var, stmt.value)
            case For():
                facts = facts.with_range(stmt.var, stmt.min, stmt.extent)
            case If():
                facts = facts.assume(stmt.condition)
            case _:
                pass
        for child in children_of(stmt):
            self.visit(child, values, facts)

    def _check(self, first: Let, values: Mapping[str, Expr], facts: Facts) -> None:
        name, dim, _ = first.var.split(".")
        rules = self.plan.widenings.get(name, ())
        if name in self.plan.outputs or not rules or not isinstance(last := first.body, Let):
            return
        func = self.plan.algorithm.func(name)
        for rule in rules:
            if isinstance(rule, Fixed) and rule.min is None and func.dims[rule.dim] == dim:
                needed = simplify(substitute(last.value - first.value + 1, values), facts)
                if not prove_le(needed, rule.extent, facts):
                    self._unproven(func, rule, needed)

    def _unproven(self, func: FuncRecord, rule: Fixed, needed: Expr) -> None:
        if needed.free <= self.scalars:
            what = "is needed over {0} elements, where its schedule says at most {1}"
            values = (needed, rule.extent)
            self.asserts.append(_needs(func, rule, needed <= rule.extent, what, values))
            return
        raise ScheduleError(
            "extent-not-bounded",
            f"cannot bound {func.dims[rule.dim]!r} of {func.name!r} to "
            f"{print_expr(rule.extent)} elements",
            why=f"one iteration of the loop that computes it needs {print_expr(needed)} of them, "
            "which is not known to be at most that",
            fix="bound it by more elements, or give its first as well: bound(v, min, extent)",
            span=rule.span,
        )
