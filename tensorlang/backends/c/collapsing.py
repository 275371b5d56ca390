"""Parallel loops directly inside one another: one loop over all iterations, for threads to share.

    parallel i in [a, +m): parallel j in [b, +n): s
->  parallel i_j in [0, m*n): let i = a + i_j//n: let j = b + i_j%n: s
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tensorlang.backends.c.rewriting import total
from tensorlang.backends.c.strips import never_negative
from tensorlang.ir.expr import Binary, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stage, Stmt, map_children, walk

_PARALLEL = (LoopKind.PARALLEL, LoopKind.GPU_BLOCK)


def collapse(stmt: Stmt, facts: Facts, note: Callable[[str], None]) -> Stmt:
    """Make one loop of parallel loops that stand directly inside one another.

    Not where the inner one's bounds differ between iterations of the outer one, nor where an
    iteration is shorter than finding its place.

    Args: note: is told what was done.
    """
    if not (isinstance(stmt, For) and stmt.kind in _PARALLEL):
        return map_children(stmt, lambda child: collapse(child, facts, note))
    between: list[Let | If | Stage] = []
    inner = stmt.body
    while isinstance(inner, (Let, If, Stage)):
        between.append(inner)
        inner = inner.body
    if not isinstance(inner, For) or not _is_one_with(stmt, inner, between):
        return stmt
    note(
        f"the parallel loops '{stmt.var}' and '{inner.var}' are one loop over the iterations of "
        "both, which threads share"
    )
    return collapse(_as_one(stmt, inner, between, facts), facts, note)


def _is_one_with(outer: For, inner: For, between: Sequence[Let | If | Stage]) -> bool:
    bound = {outer.var, *(s.var for s in between if isinstance(s, Let))}
    is_alike = inner.kind in _PARALLEL and not outer.hints and not inner.hints
    is_known = bound.isdisjoint(inner.min.free | inner.extent.free)
    is_fixed = not inner.extent.reads and not any(
        s.condition.reads if isinstance(s, If) else isinstance(s, Let) and bool(s.value.reads)
        for s in between
    )
    return is_alike and is_known and is_fixed and any(isinstance(s, For) for s in walk(inner.body))


def _as_one(outer: For, inner: For, between: Sequence[Let | If | Stage], facts: Facts) -> For:
    rows = never_negative(outer, facts).extent
    columns = never_negative(inner, facts).extent
    both = Var(f"{outer.var}_{inner.var.rpartition('.')[2]}")
    body: Stmt = Let(inner.var, total(inner.min, Binary("mod", both, columns)), inner.body)
    for s in reversed(between):
        body = replace(s, body=body)
    body = Let(outer.var, total(outer.min, Binary("floordiv", both, columns)), body)
    return replace(
        outer,
        var=both.name,
        min=integer(0),
        extent=Binary("mul", rows, columns),
        reduction=outer.reduction or inner.reduction,
        body=body,
    )
