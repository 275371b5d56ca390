"""Run two stages in one set of loops, where a schedule says compute_with."""

from dataclasses import replace

from tensorlang.ir.stmt import Program
from tensorlang.lower.plan import Plan
from tensorlang.lower.shared_loops import is_shared, refused_apart, share_loops


def merge_stages(program: Program, plan: Plan) -> Program:
    """for i: a; for i: b   ->   for i: { a; b }     down to the loop named

    Those whose loops hold a Func of both were merged when it was placed.
    Requires: simplified, so that equal extents are equal expressions.
    Raises: ScheduleError: stages-apart, loops-differ, stages-depend.
    See: Halide's compute_with.
    """
    body = program.body
    for merge in plan.merges:
        if is_shared(body, merge):
            continue
        merged = share_loops(body, merge, plan)
        if merged is body:
            raise refused_apart(merge)
        body = merged
    return program if body is program.body else replace(program, body=body)
