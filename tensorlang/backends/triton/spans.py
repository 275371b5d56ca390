"""How long tile axes are: the span of each vectorized loop and of each dimension of a buffer.

A span is a number, or an expression that the host computes.  An extent that varies inside the
program has the span of its bound over the loops around: min(M - i*32, 32) spans 32, and a guard
says what is wanted of it.  Where no bound is found the loop has no span, and runs serially.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tensorlang.ir.expr import Const, Expr, Name, Size
from tensorlang.ir.facts import Facts
from tensorlang.ir.interval import Interval, bounds_of
from tensorlang.ir.linear import integer
from tensorlang.ir.ranges import UNKNOWN, Range, range_of
from tensorlang.ir.stmt import Allocate, For, Let, LoopKind, Stmt, children_of
from tensorlang.ir.walk import fold, substitute


@dataclass(frozen=True, slots=True)
class Spans:
    """By loop, and by buffer and dimension; None where there is none."""

    loops: dict[For, Expr | None] = field(default_factory=dict[For, Expr | None])
    buffers: dict[str, tuple[Expr | None, ...]] = field(
        default_factory=dict[str, tuple[Expr | None, ...]]
    )


def measure_spans(body: Stmt, host: frozenset[str], facts: Facts) -> Spans:
    """The spans in the loops of one launch; `host` names what the host knows."""
    spans = Spans()
    _Measuring(host, facts, spans).visit(body, {}, {})
    return spans


@dataclass(frozen=True, slots=True)
class _Measuring:
    host: frozenset[str]
    facts: Facts
    spans: Spans

    def visit(self, stmt: Stmt, values: Mapping[str, Expr], ranges: Mapping[str, Interval]) -> None:
        """`values`: what names stand for in terms of loop variables; `ranges`: where those lie."""
        match stmt:
            case Let():
                values = {**values, stmt.var: substitute(stmt.value, values)}
            case For():
                low, extent = (substitute(e, values) for e in (stmt.min, stmt.extent))
                if stmt.kind is LoopKind.VECTORIZED:
                    self.spans.loops[stmt] = self.span(extent, ranges)
                ranges = {**ranges, stmt.var: Interval(low, low + extent - 1)}
                # A variable of this name may have stood for something outside.
                values = {name: e for name, e in values.items() if name != stmt.var}
            case Allocate(buffer=buffer):
                extents = [substitute(d.extent, values) for d in buffer.dims]
                self.spans.buffers[buffer.name] = tuple(self.span(e, ranges) for e in extents)
            case _:
                pass
        for child in children_of(stmt):
            self.visit(child, values, ranges)

    def span(self, extent: Expr, ranges: Mapping[str, Interval]) -> Expr | None:
        """The span of an extent that is expanded to loop variables."""
        bound: Expr | None = extent
        if not self._is_known(extent):
            bound = None if extent.reads else bounds_of(extent, ranges, self.facts).hi
        if bound is None:
            return None
        most = fold(bound, _numeric)[1]
        if most is not None:
            return integer(max(most, 0))
        return bound if self._is_known(bound) else None

    def _is_known(self, e: Expr) -> bool:
        return isinstance(e, Const) or (not e.reads and e.free <= self.host)


def _numeric(e: Expr, operands: list[Range]) -> Range:
    """The numeric range of an expression over any sizes."""
    return UNKNOWN if isinstance(e, Name) and not isinstance(e, Size) else range_of(e, operands)
