"""What a Let has named is read by that name.

    let m = min(N - 8, jo*8); ... let j = min(N - 8, jo*8) + 3; f[j]
->  let m = min(N - 8, jo*8); ... let j = m + 3; f[j]

The text is shorter, and places that differ by a constant are seen to do so.  No name is bound again
where it is known (ir/verify.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tensorlang.backends.c.rewriting import replace_names
from tensorlang.ir.expr import Const, Expr, Name, Var
from tensorlang.ir.stmt import For, Let, LoopKind, Stmt, map_children, map_exprs
from tensorlang.ir.types import index
from tensorlang.ir.walk import rewrite


@dataclass(frozen=True, slots=True)
class _Known:
    """Values that have names, and what expressions have become by them."""

    names: Mapping[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    in_lanes: bool = False
    memo: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])

    def applied(self, e: Expr) -> Expr:
        """The expression with the names for the values."""
        if not self.names:
            return e
        return rewrite(e, lambda part: self.names.get(part, part), self.memo)

    def also(self, value: Expr, name: str) -> "_Known":
        """What is known where the value has a name; in lanes names are replaced by their values."""
        if self.in_lanes or not _is_worth_a_name(value):
            return self
        return _Known({**self.names, value: Var(name)})

    def inside(self, loop: For) -> "_Known":
        """What is known in the loop."""
        if self.in_lanes or loop.kind is not LoopKind.VECTORIZED:
            return self
        return replace(self, in_lanes=True)


def reuse_names(stmt: Stmt) -> Stmt:
    """The statement with each named index read by its name; a second name for it is gone."""
    return _reused(stmt, _Known())


def _reused(stmt: Stmt, known: _Known) -> Stmt:
    stmt = map_exprs(stmt, known.applied)
    match stmt:
        case For():
            known = known.inside(stmt)
        case Let() if isinstance(stmt.value, Name):
            return _reused(replace_names(stmt.body, {stmt.var: stmt.value}), known)
        case Let():
            known = known.also(stmt.value, stmt.var)
        case _:
            pass
    return map_children(stmt, lambda child: _reused(child, known))


def _is_worth_a_name(value: Expr) -> bool:
    return value.dtype is index and not value.reads and not isinstance(value, (Const, Name))
