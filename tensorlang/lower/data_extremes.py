"""What data says to all lanes of a tile: the largest or the smallest of it, found before a loop.

for v: { lanes i, j: if first[i] <= j: s }

holds for every lane of the iterations in which largest(first[i]) <= the smallest j,
    and for some lane only where smallest(first[i]) <= the largest j
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import reduce

from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Var
from tensorlang.ir.functions import clamp, maximum, minimum
from tensorlang.ir.lane_guards import Scope
from tensorlang.ir.linear import Linear, to_expr, to_linear
from tensorlang.ir.stmt import Allocate, Buffer, For, If, LoopKind, Stage, Stmt, Store, block
from tensorlang.ir.types import i64, index
from tensorlang.ir.walk import loads_of, substitute

# Beyond all indices.
_FAR = 1 << 60


@dataclass(slots=True)
class _Extreme:
    """A number found before the loop, and between what it then lies: beyond, all is the same."""

    buffer: Buffer
    start: Stage
    update: Stage
    low: Expr | None = None
    high: Expr | None = None

    def around(self, body: Stmt) -> Stmt:
        parts: list[Stmt] = [self.start, self.update]
        if self.low is not None and self.high is not None:
            found = Load(self.buffer.name, (), 0, i64)
            within = clamp(found, Cast(i64, self.low), Cast(i64, self.high))
            parts.append(Stage(self.buffer.name, 2, Store(self.buffer.name, (), (within,))))
        return Allocate(self.buffer, block(*parts, body))


@dataclass(slots=True)
class DataExtremes:
    """The extremes that the guards of one loop ask for.

    Args:
        var: the loop, in which data that depends on it has no extreme.
        inputs: the arrays that nothing writes.
        outer: what the names around the loop are, by which two guards ask for the same.
        words: how the smallest and the largest of an array are called.
    """

    var: str
    inputs: frozenset[str]
    outer: Mapping[str, Expr]
    words: tuple[str, str] = ("smallest", "largest")
    known: dict[tuple[object, ...], _Extreme] = field(
        default_factory=dict[tuple[object, ...], _Extreme]
    )

    def extreme(
        self, form: Linear, scope: Scope, joined: set[str], *, largest: bool = False
    ) -> Linear | None:
        """The form with an extreme for data: the smallest or the largest that it is in any lane.

        Args: joined: receives the loops over which it is.
        """
        data = [e for e in form.terms if e.reads]
        if not data:
            return form
        atom, step = data[0], form.terms[data[0]]
        if len(data) > 1 or abs(step) != 1 or not isinstance(atom, Cast):
            return None
        found = self._extreme(atom, (step > 0) is largest, scope)
        if found is None:
            return None
        joined |= atom.free & scope.ranges.keys()
        term = Linear(0, {_value(found): 1})
        return form.without(atom).plus(term, step)

    def clamp(self, form: Linear, loop: For) -> None:
        """Data in a form may be any number, of which what lies outside the loop is one to it."""
        for extreme in self.known.values():
            atom = _value(extreme)
            if atom not in form.terms:
                continue
            # Where the form is 0 in the iteration before the first, and in that after the last.
            rest, sign = form.without(atom).without(Var(self.var)), -form.terms[atom]
            step = form.terms[Var(self.var)]
            ends = [
                to_expr(rest.plus(to_linear(v), step) * sign)
                for v in (loop.min - 1, loop.min + loop.extent)
            ][:: 1 if step * sign > 0 else -1]
            low, high = extreme.low, extreme.high
            extreme.low = ends[0] if low is None else minimum(low, ends[0])
            extreme.high = ends[1] if high is None else maximum(high, ends[1])

    def around(self, body: Stmt, read: Collection[str]) -> Stmt:
        """The statement, before which the extremes that it reads are found."""
        for extreme in reversed(self.known.values()):
            if extreme.buffer.name in read:
                body = extreme.around(body)
        return body

    def _extreme(self, atom: Cast, is_largest: bool, scope: Scope) -> _Extreme | None:
        lanes = [name for name in scope.ranges if name in atom.free]
        # A guard may be what keeps the data inside its array.
        guards = [c for c in scope.guards if not c.free.isdisjoint(atom.free)]
        inside = {self.var, *scope.ranges}.difference(lanes)
        if any(not inside.isdisjoint(e.free) or e.reads - self.inputs for e in (atom, *guards)):
            return None
        # The same over lanes of other names is the same.
        names = {lane: Var(f"lane_{number}") for number, lane in enumerate(lanes)}
        ends = (to_expr(end) for lane in lanes for end in scope.ranges[lane])
        said = (substitute(e, {**self.outer, **names}) for e in (atom, *guards, *ends))
        key = (is_largest, *said)
        if key not in self.known:
            self.known[key] = self._found(atom, is_largest, lanes, guards, scope)
        return self.known[key]

    def _found(
        self, atom: Cast, is_largest: bool, lanes: list[str], guards: list[Expr], scope: Scope
    ) -> _Extreme:
        array = next(loads_of(atom)).buffer
        name = f"{array}_{self.words[is_largest]}"
        same = sum(e.buffer.name.startswith(name) for e in self.known.values())
        name += str(same or "")
        none = Const(-_FAR if is_largest else _FAR, i64)
        so_far = Load(name, (), 0, i64)
        value = Binary("max" if is_largest else "min", so_far, Cast(i64, atom))
        made: Stmt = Store(name, (), (value,))
        if guards:
            made = If(reduce(lambda a, b: Binary("and", a, b), guards), made)
        for lane in reversed(lanes):
            first, last = map(to_expr, scope.ranges[lane])
            is_lane = lane in scope.lanes
            kind = LoopKind.VECTORIZED if is_lane else LoopKind.SERIAL
            made = For(lane, first, last - first + 1, kind, made, reduction=True)
        start = Stage(name, 0, Store(name, (), (none,)))
        return _Extreme(Buffer(name, (i64,), ()), start, Stage(name, 1, made))


def _value(extreme: _Extreme) -> Expr:
    return Cast(index, Load(extreme.buffer.name, (), 0, i64))
