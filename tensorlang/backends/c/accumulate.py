"""A vectorized reduction loop: one partial result a lane, combined at the end.

    vectorized reduction r: f[p] = f[p] + e(r)
->  allocate parts[32]:  parts[:] = 0
        for r.32:  parts[l] = parts[l] + e(r)   in four vectors of 8 lanes, so that adds overlap
        f[p] = f[p] + parts[0] + ... + parts[31]
    and e of the last, incomplete vector is added to f[p] one by one

A guard that is the same for all r stands around it all, for there may be no f[p] where it does not
hold; where one is of p and of r, no partial results are made.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tensorlang.backends.c.nest import in_order
from tensorlang.backends.c.rewriting import guarded, less, place_names, replace_names, total
from tensorlang.backends.c.strips import Strip, in_strips
from tensorlang.ir.associativity import associative_operator
from tensorlang.ir.expr import Binary, Compare, Const, Expr, Load, Var
from tensorlang.ir.functions import identity
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Allocate, Buffer, Dim, For, LoopKind, Stmt, Store, block
from tensorlang.ir.types import DType

# Vectors that are added to in turn: an add takes four cycles, and two can start in each.
_VECTORS = 4


@dataclass(frozen=True, slots=True)
class _Parts:
    """The buffer of partial results."""

    name: str
    dtype: DType
    op: str
    lane: For
    width: int
    vectors: int

    def buffer(self) -> Buffer:
        size = integer(self.width * self.vectors)
        return Buffer(self.name, (self.dtype,), (Dim(integer(0), size),))

    def load(self, at: Expr) -> Load:
        return Load(self.name, (at,), 0, self.dtype)

    def joined(self, at: Expr, term: Expr) -> Store:
        """parts[at] = parts[at] op term"""
        return Store(self.name, (at,), (Binary(self.op, self.load(at), term),))

    def vector(self, first: Expr, body: Stmt) -> For:
        """body in the lanes of one vector, whose loop variable begins at `first`."""
        return replace(self.lane, min=first, extent=integer(self.width), body=body)


def accumulated(
    lane: For, others: Sequence[For], guards: Sequence[Expr], core: Store, width: int
) -> Stmt:
    """The nest with `lane`, a reduction, as the lanes of vectors of partial results."""
    found = associative_operator(core.buffer, core.indices, core.values)
    assert found is not None
    op, (term,) = found
    outer = [loop for loop in others if not loop.reduction]
    inner = [loop for loop in others if loop.reduction]
    names = {lane.var, *(loop.var for loop in inner)}
    around = [g for g in guards if not g.reads and names.isdisjoint(g.free)]
    guards = [g for g in guards if g not in set(around)]
    if any(_says_where(g, names) for g in guards):
        one_by_one = in_order([*inner, lane], guarded(guards, core))
        return in_order(outer, guarded(around, one_by_one))
    extents = [loop.extent for loop in (*inner, lane)]
    around += [Compare("lt", integer(0), e) for e in extents if _says_where(e, names)]
    parts = _Parts(
        f"{core.buffer}.parts", core.values[0].dtype, op, lane, width, _vectors(lane, width)
    )

    def strip(s: Strip) -> Stmt:
        if s.width == 1:
            return replace_names(guarded(guards, core), {lane.var: s.first})
        return block(*_parallel_adds(parts, s, term, guards))

    loops = in_order(inner, in_strips(lane, _widths(parts), strip))
    body = block(_cleared(parts), loops, _combined(parts, core))
    return in_order(outer, guarded(around, Allocate(parts.buffer(), body)))


def _says_where(e: Expr, names: AbstractSet[str]) -> bool:
    """Whether the guard or extent is of the place p as well, as `i + r < N` or [0, N - i) is.

    Where it leaves no iteration of the reductions, whose `names` these are, there may be no f[p].
    What is of data says nothing of p.
    """
    return not place_names(e) <= names


def _vectors(lane: For, width: int) -> int:
    if not isinstance(lane.extent, Const):
        return _VECTORS
    return max(1, min(_VECTORS, int(lane.extent.value) // width))


def _widths(parts: _Parts) -> list[int]:
    return [parts.width * parts.vectors, parts.width] if parts.vectors > 1 else [parts.width]


def _parallel_adds(parts: _Parts, s: Strip, term: Expr, guards: Sequence[Expr]) -> list[Stmt]:
    """One add for each vector of the strip, each to a part of its own."""
    width = min(s.width, parts.width)
    made: list[Stmt] = []
    for k in range(s.width // width):
        first = total(s.first, integer(k * width))
        at = total(Var(parts.lane.var), integer(k * width), less(integer(0), first))
        loop = parts.vector(first, guarded(guards, parts.joined(at, term)))
        made.append(replace(loop, extent=integer(width)))
    return made


def _cleared(parts: _Parts) -> Stmt:
    clear = Store(parts.name, (Var(parts.lane.var),), (identity(parts.op, parts.dtype),))
    return block(*(parts.vector(integer(k * parts.width), clear) for k in range(parts.vectors)))


def _combined(parts: _Parts, core: Store) -> Stmt:
    """parts[:8] op= parts[8:16], ...; then f[p] = f[p] op parts[l], one after another."""
    at = Var(parts.lane.var)
    joins = [
        parts.vector(integer(0), parts.joined(at, parts.load(total(at, integer(k * parts.width)))))
        for k in range(1, parts.vectors)
    ]
    current = Load(core.buffer, core.indices, 0, parts.dtype)
    total_ = replace(core, values=(Binary(parts.op, current, parts.load(at)),))
    last = replace(parts.vector(integer(0), total_), kind=LoopKind.SERIAL)
    return block(*joins, last)
