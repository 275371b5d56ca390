"""Where clamps and boundary selects do nothing: a condition, and the statement without them.

    A[min(max(x - 1, 0), W - 1)] in lanes x = first ... last  ->  A[x - 1]  if 0 <= first - 1 and
    last - 1 <= W - 1

An address that is clamped lane by lane is a gather; without the clamp it is one vector load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tensorlang.backends.c.corners import Range, at_worst, slack_of
from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Load, Select
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import For, Let, Stmt, map_children, map_exprs, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import rewrite


def interior(stmt: Stmt, lane: str, ranges: Mapping[str, Range]) -> tuple[list[Expr], Stmt]:
    """Conditions, and what the statement is where all of them hold; itself where there are none.

    Args:
        stmt: what stands in the loops.
        lane: the loop whose clamps matter.
        ranges: first and last value of each loop that the conditions must not mention.
    """
    inside = frozenset(s.var for s in walk(stmt) if isinstance(s, (For, Let)))
    finder = _Finder(lane, ranges, inside)
    free = finder.visit(stmt)
    return list(finder.conditions), free


@dataclass(slots=True)
class _Finder:
    lane: str
    ranges: Mapping[str, Range]
    inside: frozenset[str]
    conditions: dict[Expr, None] = field(default_factory=dict[Expr, None])
    values: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    addresses: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])

    def visit(self, stmt: Stmt) -> Stmt:
        changed = map_exprs(stmt, self._address if isinstance(stmt, Let) else self._value)
        return map_children(changed, self.visit)

    def _value(self, e: Expr) -> Expr:
        return self._address(e) if e.dtype is index else rewrite(e, self._chosen, self.values)

    def _address(self, e: Expr) -> Expr:
        return rewrite(e, self._without, self.addresses)

    def _chosen(self, e: Expr) -> Expr:
        """The node without the clamps of its addresses, a select without the test for a border."""
        if self.lane not in e.free:
            return e
        match e:
            case Load():
                return replace(e, indices=tuple(self._address(i) for i in e.indices))
            case Select() if e.a.reads:
                return e.a if self._all_hold(conjuncts_of(e.condition)) else e
            case _:
                return e

    def _without(self, e: Expr) -> Expr:
        """The node without its clamp, where a condition was found under which that is right."""
        if self.lane in e.free and isinstance(e, Binary) and e.op in ("min", "max", "mod"):
            return self._clamped(e) if e.dtype is index else e
        return e

    def _clamped(self, e: Binary) -> Expr:
        if e.op == "mod":
            if isinstance(e.b, Const):
                # Of a few iterations only: no interior worth a version of its own.
                return e
            wanted = [Compare("le", integer(0), e.a), Compare("lt", e.a, e.b)]
            return e.a if self.lane not in e.b.free and self._all_hold(wanted) else e
        moving, fixed = (e.a, e.b) if self.lane in e.a.free else (e.b, e.a)
        if self.lane in fixed.free:
            return e
        wanted = Compare("le", *((fixed, moving) if e.op == "max" else (moving, fixed)))
        return moving if self._all_hold([wanted]) else e

    def _all_hold(self, wanted: list[Expr]) -> bool:
        """Whether conditions were found (and noted) under which these hold in all the loops."""
        found = [self._everywhere(condition) for condition in wanted]
        sure = [c for c in found if c is not None]
        if len(sure) < len(found):
            return False
        self.conditions.update({c: None for c in sure if not isinstance(c, Const)})
        return True

    def _everywhere(self, condition: Expr) -> Expr | None:
        form = slack_of(condition, frozenset(self.ranges))
        worst = None if form is None else at_worst(form, self.ranges)
        if worst is None or (isinstance(worst, Const) and not worst.value):
            return None
        if worst.reads or not self.inside.isdisjoint(worst.free):
            return None
        return worst
