"""Shrink the region of each Func to what is needed where it is computed."""

from dataclasses import replace

from tensorlang.ir.regions import infer_regions
from tensorlang.ir.stmt import Program


def infer_bounds(program: Program) -> Program:
    """Rebind `f.x.min`, `f.x.extent`, `f.x.first`, `f.x.last` of every Func, consumers first.

    Requires: placed stages.  Ensures: constant tiles have constant extents.
    See: ir/regions.py; Halide's bounds inference.
    """
    outputs = frozenset(buffer.name for buffer in program.outputs)
    return replace(program, body=infer_regions(program.body, outputs))
