"""Shrink the region of each Func to what is needed where it is computed."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tensorlang.ir.expr import Expr
from tensorlang.ir.regions import REGION_PARTS, STORAGE_PARTS, Folds, infer_regions
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Let, Program, Stmt, children_of
from tensorlang.ir.walk import substitute
from tensorlang.lower.plan import Plan
from tensorlang.lower.shared_loops import is_shared

# Regions of a rolling group settle in two or three rounds.
_ROUNDS = 6


def infer_bounds(program: Program, plan: Plan) -> Program:
    """Rebind `f.x.min`, `f.x.extent`, `f.x.first`, `f.x.last` of every Func, inside out.

    Members of a rolling group, and what two stages in one loop read, stand inside regions that are
    found later, so there the regions are inferred again with what was found, until nothing changes.
    Requires: placed stages.  Ensures: constant tiles have constant extents.
    See: ir/regions.py; Halide's bounds inference.
    """
    outputs = frozenset(buffer.name for buffer in program.outputs)
    folds = {name: frozenset(dict(s.folds)) for name, s in plan.storage.items() if s.folds}
    body = first = infer_regions(program.body, outputs, widenings=plan.widenings, folds=folds)
    if plan.groups or any(is_shared(program.body, merge) for merge in plan.merges):
        body = _settled(first, outputs, plan, folds)
    return replace(program, body=body)


def _settled(first: Stmt, outputs: frozenset[str], plan: Plan, folds: Folds) -> Stmt:
    """Regions that follow from each other; those of the first round, if none are found."""
    body, values = first, _values_of(first)
    for _ in range(_ROUNDS):
        body = infer_regions(body, outputs, known=True, widenings=plan.widenings, folds=folds)
        before, values = values, _values_of(body)
        if all(a is b for a, b in zip(before, values, strict=True)):
            return body
    return first


def _values_of(body: Stmt) -> list[Expr]:
    """Every part of every region, in the names that are no regions.

    Two rounds may say the same of equal regions in each other's names, and never in one text.
    """
    return list(_values(body, {}))


def _values(stmt: Stmt, names: Mapping[str, Expr]) -> Iterator[Expr]:
    if isinstance(stmt, Let) and stmt.var.rpartition(".")[2] in REGION_PARTS + STORAGE_PARTS:
        value = simplify(substitute(stmt.value, names))
        yield value
        names = {**names, stmt.var: value}
    for child in children_of(stmt):
        yield from _values(child, names)
