"""Shrink the region of each Func to what is needed where it is computed."""

from dataclasses import replace

from tensorlang.ir.printer import print_stmt
from tensorlang.ir.regions import infer_regions
from tensorlang.ir.stmt import Program, Stmt
from tensorlang.lower.plan import Plan

# Regions of a rolling group settle in two or three rounds.
_ROUNDS = 6


def infer_bounds(program: Program, plan: Plan) -> Program:
    """Rebind `f.x.min`, `f.x.extent`, `f.x.first`, `f.x.last` of every Func, inside out.

    Members of a rolling group stand inside each other's regions, so there the regions are inferred
    again with what was found, until nothing changes.
    Requires: placed stages.  Ensures: constant tiles have constant extents.
    See: ir/regions.py; Halide's bounds inference.
    """
    outputs = frozenset(buffer.name for buffer in program.outputs)
    body = first = infer_regions(program.body, outputs, widenings=plan.widenings)
    if plan.groups:
        body = _settled(first, outputs, plan)
    return replace(program, body=body)


def _settled(first: Stmt, outputs: frozenset[str], plan: Plan) -> Stmt:
    """Regions that follow from each other; those of the first round, if none are found."""
    body = first
    for _ in range(_ROUNDS):
        before = body
        body = infer_regions(body, outputs, known=True, widenings=plan.widenings)
        if print_stmt(before) == print_stmt(body):
            return body
    return first
