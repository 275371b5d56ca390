"""Replace unrolled loops by their iterations."""

from dataclasses import replace

from tensorlang.errors import ScheduleError
from tensorlang.ir.expr import Const
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import Block, For, Let, LoopKind, Program, Stmt, block, map_children
from tensorlang.ir.types import index


def unroll_loops(program: Program) -> Program:
    """for x in [m, m + n) unrolled: s   ->   s[x := m]; ...; s[x := m + n - 1]     (n a constant)

    Requires: simplified extents.  Raises: ScheduleError: extent-not-constant, too-many-copies.
    See: Halide's UnrollLoops.
    """
    body = _unroll(program.body)
    return program if body is program.body else replace(program, body=simplify_stmt(body))


_MOST_COPIES = 4096


def _unroll(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _unroll)
    if not isinstance(stmt, For) or stmt.kind is not LoopKind.UNROLLED:
        return stmt
    if not isinstance(stmt.extent, Const):
        func, _, loop = stmt.var.rpartition(".")
        raise ScheduleError(
            "extent-not-constant",
            f"cannot unroll {loop!r} of {func!r}: its extent is not a constant",
            why="each iteration becomes a statement of its own, so their number must be known",
            fix="split by a Python int and unroll the inner loop, or leave it serial",
            span=stmt.span,
        )
    count = int(stmt.extent.value)
    if count > _MOST_COPIES:
        func, _, loop = stmt.var.rpartition(".")
        raise ScheduleError(
            "too-many-copies",
            f"cannot unroll {loop!r} of {func!r}: it has {count} iterations",
            why=f"each iteration becomes a statement of its own, and {_MOST_COPIES} are many",
            fix="split by a small factor and unroll the inner loop",
            span=stmt.span,
        )
    copies = (Let(stmt.var, stmt.min + Const(k, index), stmt.body) for k in range(count))
    return block(*copies) if count > 0 else Block(())
