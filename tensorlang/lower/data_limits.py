"""From which point to which one data lets a reduction run, for any row of a region.

    r.where(first[i] <= r).where(r < last[i])      from = min(first[i]), until = max(last[i] - 1)

A loop over slices of the domain then has only those in which some row has a point.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tensorlang.algorithm import FuncRecord
from tensorlang.directives.nest import region_name
from tensorlang.ir.expr import Binary, Cast, Compare, Expr, Load, Var
from tensorlang.ir.functions import maximum, minimum
from tensorlang.ir.linear import to_expr, to_linear
from tensorlang.ir.stmt import Allocate, Buffer, For, If, Stage, Stmt, Store, block, map_children
from tensorlang.ir.types import i64, index
from tensorlang.ir.walk import substitute
from tensorlang.lower.rolling_terms import store_of

FROM, UNTIL = "from", "until"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a reduction has a value for.

    Args:
        func: the reduction.
        start: the stage of its pure definition, whose loops run over them.
        inputs: the arrays that nothing writes.
    """

    func: FuncRecord
    start: Stage
    inputs: frozenset[str]


@dataclass(frozen=True, slots=True)
class Limits:
    """The first and the last point of any row, where there is such data; `around` finds them."""

    first: Expr | None
    last: Expr | None
    parts: tuple[tuple[Buffer, Stage, Stage], ...]

    def around(self, body: Stmt) -> Stmt:
        """The statement, in which the points are known."""
        for buffer, start, update in reversed(self.parts):
            body = Allocate(buffer, block(start, update, body))
        return body


def data_limits(rows: Rows, conditions: Sequence[Expr], low: Expr, end: Expr) -> Limits:
    """What conditions that read data say of the points of a domain from `low` to before `end`."""
    definition = rows.func.definitions[1]
    assert definition.domain is not None
    name = definition.domain.names[0]
    lows: list[Expr] = []
    highs: list[Expr] = []
    for condition in conditions:
        for is_low, bound in _bounds(condition, name, rows.inputs):
            (lows if is_low else highs).append(bound)
    parts: list[tuple[Buffer, Stage, Stage]] = []
    first = last = None
    if lows:
        parts.append(_extreme(rows, FROM, lows, end))
        first = _value(parts[-1][0])
    if highs:
        parts.append(_extreme(rows, UNTIL, highs, low - 1))
        last = _value(parts[-1][0])
    return Limits(first, last, tuple(parts))


def _value(buffer: Buffer) -> Expr:
    return Cast(index, Load(buffer.name, (), 0, i64))


def _bounds(condition: Expr, name: str, inputs: frozenset[str]) -> Iterator[tuple[bool, Expr]]:
    """(True, e) where the condition is e <= name, (False, e) where it is name <= e."""
    if not isinstance(condition, Compare) or condition.op not in ("lt", "le"):
        return
    if condition.a.dtype is not index or not condition.reads <= inputs:
        return
    slack = to_linear(condition.b) - to_linear(condition.a)
    step, rest = slack.terms.get(Var(name), 0), to_expr(slack.without(Var(name)))
    if condition.op == "lt":
        rest = rest - 1
    if abs(step) == 1 and name not in rest.free:
        yield (True, -rest) if step > 0 else (False, rest)


def _extreme(rows: Rows, name: str, bounds: list[Expr], none: Expr) -> tuple[Buffer, Stage, Stage]:
    """The smallest of lower bounds, or the largest of upper ones; `none` where there is no row."""
    func, start = rows.func, store_of(rows.start)
    names = {
        e.name: at
        for e, at in zip(func.definitions[1].indices, start.indices, strict=True)
        if isinstance(e, Var)
    }
    buffer = Buffer(f"{func.name}_{name}", (i64,), ())
    so_far = Load(buffer.name, (), 0, i64)
    # Of one row all of them hold.
    of_row = bounds[0]
    for bound in bounds[1:]:
        of_row = (maximum if name == FROM else minimum)(of_row, bound)
    term = Cast(i64, substitute(of_row, names))
    value = Binary("min" if name == FROM else "max", so_far, term)
    made: Stmt = Store(buffer.name, (), (value,), span=start.span)
    for condition in _needed(func, start.indices):
        made = If(condition, made)
    first = Stage(buffer.name, 0, Store(buffer.name, (), (Cast(i64, none),)))
    return buffer, first, Stage(buffer.name, 1, _reduced(rows.start.body, made))


def _needed(func: FuncRecord, indices: Sequence[Expr]) -> Iterator[Expr]:
    """Only rows that somebody needs count."""
    for dim, at in zip(func.dims, indices, strict=True):
        first, last = (Var(region_name(func.name, dim, end)) for end in ("first", "last"))
        yield first <= at
        yield at <= last


def _reduced(stmt: Stmt, store: Stmt) -> Stmt:
    """The loops of a definition around another store, which all of them share."""
    if isinstance(stmt, Store):
        return store
    made = map_children(stmt, lambda s: _reduced(s, store))
    return replace(made, reduction=True) if isinstance(made, For) else made
