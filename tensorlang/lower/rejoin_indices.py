"""An index that puts a fused loop together again is that loop."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensorlang.ir.expr import Binary, Expr, Load, Var
from tensorlang.ir.facts import Facts
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import For, If, Let, Program, Stmt, map_children, map_exprs, walk
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, postorder, rewrite, substitute

_PARTS = ("floordiv", "mod")


def rejoin_indices(program: Program) -> Program:
    """let x = t//n: let y = t%n: ... f[x*n + y]   ->   let x = t//n: let y = t%n: ... f[t]

    The region of `f` that a tile of t needs is then that tile: x and y apart are more.
    Requires: placed.  See: the reverse, which `fuse` makes of f[x, y].
    """
    if not any(_is_fused(s) for s in walk(program.body)):
        return program
    body = _Rejoining({}, frozenset(), Facts.none).stmt(program.body)
    return program if body is program.body else replace(program, body=body)


def _is_fused(stmt: Stmt) -> bool:
    return isinstance(stmt, Let) and any(map(_is_part, postorder(stmt.value)))


def _is_part(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op in _PARTS and e.dtype is index


@dataclass(frozen=True, slots=True, eq=False)
class _Rejoining:
    """What is known at a place.

    Args:
        values: of names that are a number or a Size, or a quotient or remainder.
        parts: the latter.
    """

    values: Mapping[str, Expr]
    parts: frozenset[str]
    facts: Facts

    def stmt(self, stmt: Stmt) -> Stmt:
        made = map_exprs(stmt, self.expr) if self.parts else stmt
        inside = self.inside(stmt)
        return map_children(made, inside.stmt)

    def inside(self, stmt: Stmt) -> "_Rejoining":
        values, parts, facts = self.values, self.parts, self.facts
        match stmt:
            case For():
                low, extent = (substitute(e, values) for e in (stmt.min, stmt.extent))
                return _Rejoining(values, parts, facts.with_range(stmt.var, low, extent))
            case If():
                return _Rejoining(values, parts, facts.assume(substitute(stmt.condition, values)))
            case Let() if stmt.value.dtype is index:
                value = simplify(substitute(stmt.value, values), facts)
                facts = facts.with_value(stmt.var, value)
                if _is_part(value):
                    parts |= {stmt.var}
                if _is_part(value) or not any(isinstance(e, Var) for e in postorder(value)):
                    values = {**values, stmt.var: value}
                return _Rejoining(values, parts, facts)
            case _:
                return self

    def expr(self, e: Expr) -> Expr:
        if not any(self.meets(i) for load in loads_of(e) for i in load.indices):
            return e
        return rewrite(e, self.load)

    def meets(self, e: Expr) -> bool:
        """Whether several parts stand in an index."""
        return len(e.free & self.parts) > 1

    def load(self, e: Expr) -> Expr:
        if not isinstance(e, Load):
            return e
        return replace(e, indices=tuple(map(self.index, e.indices)))

    def index(self, e: Expr) -> Expr:
        """The index without quotients and remainders, where they meet."""
        if not self.meets(e):
            return e
        made = simplify(substitute(e, self.values), self.facts)
        return e if any(map(_is_part, postorder(made))) else made
