"""Turn a guard just inside a serial loop into the extent of that loop."""

from dataclasses import dataclass, replace

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Expr, Var
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.simplify_stmt import simplify_stmt
from tensorlang.ir.stmt import For, If, Let, LoopKind, Program, Stmt, Store, map_children, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute

_TRIMMED = (LoopKind.SERIAL, LoopKind.PARALLEL, LoopKind.GPU_BLOCK)


def trim_loops(program: Program) -> Program:
    """for v in [m, m + n): if v*a + e <= b: s   ->
    for v in [m, m + min(n, (b - e)//a - m + 1)): s

    A lower bound raises `m` in the same way.  Lanes and unrolled loops keep their extent: it has to
    stay a constant.  A serial loop is also bounded by what is read, where nothing in it is written
    that the bound reads: as in `if v < length[i]`.  Requires: simplified.
    """
    body = _trim(program.body)
    return program if body is program.body else replace(program, body=simplify_stmt(body))


def _trim(stmt: Stmt) -> Stmt:
    stmt = map_children(stmt, _trim)
    return _absorb(stmt) if isinstance(stmt, For) and stmt.kind in _TRIMMED else stmt


def _absorb(loop: For) -> Stmt:
    """The loop with the conditions on its variable taken into its range."""
    outer: list[Let | If] = []
    values: dict[str, Expr] = {}
    low, end = loop.min, loop.min + loop.extent
    inner = loop.body
    written = frozenset(s.buffer for s in walk(loop.body) if isinstance(s, Store))
    while isinstance(inner, (Let, If)):
        if isinstance(inner, Let):
            outer.append(inner)
            values[inner.var] = substitute(inner.value, values)
        else:
            guarded = any(isinstance(stmt, If) for stmt in outer)
            bounds = _Bounds(loop.var, None if guarded or not _may_read(loop) else written)
            kept, low, end = bounds.split(inner, values, low, end)
            outer.extend(kept)
        inner = inner.body
    if low is loop.min and end is loop.min + loop.extent:
        return loop
    for stmt in reversed(outer):
        inner = replace(stmt, body=inner)
    made = replace(loop, min=simplify(low), extent=simplify(end - low), body=inner)
    # What no iteration would have read may not be there.
    return If(simplify(loop.extent > 0), made) if low.reads or end.reads else made


def _may_read(loop: For) -> bool:
    """The range of a grid is the host's, and threads share theirs."""
    return loop.kind is LoopKind.SERIAL


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Which conditions bound a loop.

    Args:
        var: its variable.
        written: what is written inside, which a bound does not read; None: a bound reads nothing.
    """

    var: str
    written: frozenset[str] | None

    def split(
        self, guard: If, values: dict[str, Expr], low: Expr, end: Expr
    ) -> tuple[list[If], Expr, Expr]:
        """What remains of a guard, and the range of the loop with the rest taken into it."""
        kept: list[If] = []
        for condition in conjuncts_of(guard.condition):
            known = substitute(condition, values)
            bound = _bound(known, self.var) if self._allows(known, kept) else None
            if bound is None:
                kept.append(If(condition, guard.body))
            elif bound[0]:
                end = Binary("min", end, bound[1] + 1)
            else:
                low = Binary("max", low, bound[1])
        return kept, low, end

    def _allows(self, condition: Expr, before: list[If]) -> bool:
        """Whether its range may be known before the loop: what is read must not be guarded."""
        if not condition.reads:
            return True
        return self.written is not None and not before and not condition.reads & self.written


def _bound(condition: Expr, var: str) -> tuple[bool, Expr] | None:
    """(upper, limit) with `condition` == (var <= limit) or (limit <= var), linear in var."""
    if not isinstance(condition, Compare) or condition.a.dtype is not index:
        return None
    if condition.op not in ("lt", "le") or var not in condition.free:
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
