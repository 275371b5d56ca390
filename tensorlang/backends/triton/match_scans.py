"""Scans along vectorized loops: found in loop IR before it becomes tiles.

vectorized reduction k: f[i, k] = f[i, k - 1] op e      every k in order, but perhaps the last ones
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tensorlang.ir.conditions import conjuncts_of
from tensorlang.ir.expr import Compare, Expr, Var
from tensorlang.ir.linear import expanded, to_linear
from tensorlang.ir.scans import Scan, scan_of
from tensorlang.ir.stmt import For, If, Let, LoopKind, Stmt, Store, children_of, walk
from tensorlang.ir.walk import substitute


@dataclass(frozen=True, slots=True, eq=False)
class LoopScan:
    """A store that is a scan along a vectorized loop."""

    loop: For
    scan: Scan

    @property
    def reverse(self) -> bool:
        return self.scan.steps < 0


def scans_in(body: Stmt) -> dict[Store, LoopScan]:
    """The scans along vectorized loops, of which no point is left out but the last ones."""
    loops = (s for s in walk(body) if isinstance(s, For) and s.kind is LoopKind.VECTORIZED)
    return {store: scan for loop in loops if loop.reduction for store, scan in _along(loop)}


def _along(loop: For) -> Iterator[tuple[Store, LoopScan]]:
    known: dict[str, Expr] = {}
    stmt = loop.body
    while not isinstance(stmt, Store):
        match stmt:
            case Let():
                known[stmt.var] = substitute(stmt.value, known)
            case If() if all(
                _ends(substitute(c, known), loop.var) for c in conjuncts_of(stmt.condition)
            ):
                pass
            case For() if loop.var not in _free((stmt.min, stmt.extent), known):
                pass
            case _:
                return
        (stmt,) = children_of(stmt)
    scan = scan_of(stmt.buffer, stmt.indices, stmt.values, loop.var, known)
    if scan is not None:
        yield stmt, LoopScan(loop, scan)


def _free(exprs: Sequence[Expr], known: Mapping[str, Expr]) -> frozenset[str]:
    return frozenset[str]().union(*(substitute(e, known).free for e in exprs))


def _ends(condition: Expr, var: str) -> bool:
    """Whether the condition, once it fails in an iteration, fails in all after it."""
    if var not in condition.free:
        return True
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return False
    form = expanded(to_linear(condition.b) - to_linear(condition.a))
    alone = all(atom is Var(var) or var not in atom.free for atom in form.terms)
    return alone and form.terms.get(Var(var), 0) < 0
