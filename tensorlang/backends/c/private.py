"""Buffers allocated inside a lane loop: each lane gets its own, side by side."""

from dataclasses import replace

from tensorlang.backends.c.rewriting import less
from tensorlang.ir.expr import Expr, Load, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Allocate, Buffer, Dim, Stmt, Store, map_children, map_exprs
from tensorlang.ir.walk import rewrite


def private_to_lanes(stmt: Stmt, lane: str, first: Expr, width: int) -> Stmt:
    """allocate f[dims] in lanes j = first ...  ->  allocate f[dims, width], index j - first."""
    return _Private(less(Var(lane), first), width).visit(stmt, frozenset())


class _Private:
    def __init__(self, place: Expr, width: int) -> None:
        self._place = place
        self._width = width

    def visit(self, stmt: Stmt, private: frozenset[str]) -> Stmt:
        if isinstance(stmt, Allocate):
            private |= {stmt.buffer.name}
            buffer = self._widened(stmt.buffer)
            return replace(stmt, buffer=buffer, body=self.visit(stmt.body, private))
        if private:
            stmt = map_exprs(stmt, lambda e: rewrite(e, lambda part: self._load(part, private)))
        if isinstance(stmt, Store) and stmt.buffer in private:
            stmt = replace(stmt, indices=(*stmt.indices, self._place))
        return map_children(stmt, lambda child: self.visit(child, private))

    def _widened(self, buffer: Buffer) -> Buffer:
        fold = (*buffer.fold, 0) if buffer.fold else ()
        lanes = Dim(integer(0), integer(self._width))
        return replace(buffer, dims=(*buffer.dims, lanes), fold=fold)

    def _load(self, e: Expr, private: frozenset[str]) -> Expr:
        if not isinstance(e, Load) or e.buffer not in private:
            return e
        return Load(e.buffer, (*e.indices, self._place), e.component, e.dtype)
