"""Turn a guard just inside a serial loop into the extent of that loop."""

from dataclasses import replace

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Expr, Var
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import For, If, Let, LoopKind, Program, Stmt, map_children
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute

_TRIMMED = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.GPU_BLOCK)


def trim_loops(program: Program) -> Program:
    """for v in [m, m + n): if v*a + e <= b: s   ->
    for v in [m, m + min(n, (b - e)//a - m + 1)): s

    A lower bound raises `m` in the same way.  Lanes and unrolled loops keep their extent: it has to
    stay a constant.  Requires: simplified.
    """
    body = _trim(program.body)
    return program if body is program.body else replace(program, body=simplify_stmt(body))


def _trim(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _trim)
    return _absorb(stmt) if isinstance(stmt, For) and stmt.kind in _TRIMMED else stmt


def _absorb(loop: For) -> For:
    """The loop with the conditions on its variable taken into its range."""
    outer: list[Let | If] = []
    values: dict[str, Expr] = {}
    low, end = loop.min, loop.min + loop.extent
    inner = loop.body
    while isinstance(inner, (Let, If)):
        if isinstance(inner, Let):
            outer.append(inner)
            values[inner.var] = substitute(inner.value, values)
        else:
            kept, low, end = _split(inner, loop.var, values, low, end)
            outer.extend(kept)
        inner = inner.body
    if low is loop.min and end is loop.min + loop.extent:
        return loop
    for stmt in reversed(outer):
        inner = replace(stmt, body=inner)
    return replace(loop, min=simplify(low), extent=simplify(end - low), body=inner)


def _split(
    guard: If, var: str, values: dict[str, Expr], low: Expr, end: Expr
) -> tuple[list[If], Expr, Expr]:
    """What remains of a guard, and the range of the loop with the rest taken into it."""
    kept: list[If] = []
    for condition in conjuncts_of(guard.condition):
        bound = _bound(substitute(condition, values), var)
        if bound is None:
            kept.append(If(condition, guard.body))
        elif bound[0]:
            end = Binary("min", end, bound[1] + 1)
        else:
            low = Binary("max", low, bound[1])
    return kept, low, end


def _bound(condition: Expr, var: str) -> tuple[bool, Expr] | None:
    """(upper, limit) with `condition` == (var <= limit) or (limit <= var), linear in var."""
    if not isinstance(condition, Compare) or condition.a.dtype is not index:
        return None
    if condition.op not in ("lt", "le") or var not in condition.free or condition.reads:
        return None
    # a <= b  <=>  0 <= b - a;   a < b  <=>  0 <= b - a - 1
    slack = to_linear(condition.b - condition.a - (1 if condition.op == "lt" else 0))
    name = Var(var)
    coefficient = slack.terms.get(name, 0)
    rest = to_expr(slack) - name * coefficient
    rest = simplify(rest)
    if coefficient == 0 or var in rest.free:
        return None
    if coefficient > 0:
        # 0 <= c*v + rest  <=>  v >= ceil(-rest / c)
        return False, -(rest // coefficient)
    return True, rest // -coefficient
