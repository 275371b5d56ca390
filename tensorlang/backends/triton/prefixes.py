"""Scans over vectorized loops: all points of a tile at once, and a prefix carried between tiles.

vectorized reduction k: f[k] = f[k - 1] op e        run = terms combined up to each lane
                                             ->     f = before op run

for ko { vectorized reduction ki: f[k] = ... }      carry = what stands before the first tile
                                             ->     for ko { f = carry op run;
                                                             carry = carry op all terms }

Where the loops are others, what stands before a tile is read from memory.  A scan to descending
indices has its lanes in reverse, so that lanes ascend in memory.
"""

from collections.abc import Mapping, Sequence

from tensorlang.backends.triton.context import Making, Outside, Place
from tensorlang.backends.triton.masks import conjunction
from tensorlang.backends.triton.match_reductions import guarded_term
from tensorlang.backends.triton.match_scans import LoopScan
from tensorlang.backends.triton.tiles import (
    Access,
    Assign,
    Combine,
    Declare,
    Lane,
    Read,
    Reduce,
    Tile,
)
from tensorlang.backends.triton.values import access, needed_bounds, value_of
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Select, Var
from tensorlang.ir.functions import identity
from tensorlang.ir.linear import expanded, integer, to_linear
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Store
from tensorlang.ir.tuple_operators import TupleOperator
from tensorlang.ir.types import DType, f32
from tensorlang.ir.walk import substitute


def scanned(
    store: Store, indices: tuple[Expr, ...], place: Place, making: Making
) -> tuple[tuple[Expr, ...], list[Tile]] | None:
    """The values of a store that is a scan along a lane here, and what follows the store."""
    found = making.scans.get(store)
    lane = None if found is None else making.lane_of.get(found.loop)
    if found is None or lane is None or lane not in place.lanes:
        return None
    return _Tile(store, indices, found, lane, place, making).run()


class _Tile:
    """One tile of a scan."""

    def __init__(
        self,
        store: Store,
        indices: tuple[Expr, ...],
        found: LoopScan,
        lane: Lane,
        place: Place,
        making: Making,
    ) -> None:
        self.store, self.indices, self.lane = store, indices, lane
        self.scan, self.reverse, self.loop = found.scan, found.reverse, found.loop
        self.place, self.making = place, making
        self.dtypes = tuple(v.dtype for v in store.values)
        # Narrow floats are combined in f32, as they are in reductions.
        self.wide = tuple(f32 if d.is_float and d.bits < 32 else d for d in self.dtypes)

    def run(self) -> tuple[tuple[Expr, ...], list[Tile]]:
        making = self.making
        terms = tuple(self._term(t, k) for k, t in enumerate(self.scan.terms))
        frame = making.lanes.of(*self.indices, *terms)
        runs = self._combined("prefix", terms, frame, running=True)
        values, after = runs, list[Tile]()
        before, carry = self._before()
        if before is not None:
            values = self._op(before, runs)
        if carry is not None:
            # Alike for all lanes of the tile: what the next tile begins with.
            rest = tuple(other for other in frame if other is not self.lane)
            for name in carry:
                making.lanes.declare(name, rest)
            outer, making.out = making.out, after
            totals = self._op(self._vars(carry), self._combined("all", terms, rest, running=False))
            making.out = outer
            after += [Assign(n, t, rest) for n, t in zip(carry, totals, strict=True)]
        return tuple(map(self._narrowed, values, self.dtypes)), after

    def _term(self, term: Expr, component: int) -> Expr:
        value = value_of(term, self.place, self.making)
        if self.reverse:
            # The lanes beyond the extent come first.
            over = [g for g in self.place.guards if self.lane in self.making.lanes.of(g)]
            neutral = self._neutral[component]
            value = guarded_term(value, over, neutral)
        wide = self.wide[component]
        return value if value.dtype is wide else Cast(wide, value)

    @property
    def _neutral(self) -> tuple[Const, ...]:
        """What the operator leaves unchanged."""
        if isinstance(self.scan.operator, TupleOperator):
            return self.scan.operator.identity(self.dtypes)
        return (identity(self.scan.operator, self.dtypes[0]),)

    def _op(self, a: tuple[Expr, ...], b: tuple[Expr, ...]) -> tuple[Expr, ...]:
        operator = self.scan.operator
        if isinstance(operator, TupleOperator):
            return operator.combine(a, b)
        return (Binary(operator, a[0], b[0]),)

    def _combined(
        self, what: str, terms: tuple[Expr, ...], frame: tuple[Lane, ...], *, running: bool
    ) -> tuple[Expr, ...]:
        """The terms combined along the lane, bound to names."""
        operator, making = self.scan.operator, self.making
        if not isinstance(operator, TupleOperator) and not running:
            return (Reduce(operator, terms[0], self.lane.var),)
        several = len(terms) > 1
        names = tuple(
            making.fresh(f"{self.store.buffer}_{what}{k if several else ''}")
            for k in range(len(terms))
        )
        for name in names:
            making.lanes.declare(name, frame)
        op = str(operator)
        if isinstance(operator, TupleOperator):
            op = making.combiner(f"{self.store.buffer}_step", operator, self.dtypes[0])
        making.out.append(Combine(names, op, terms, self.lane, running, self.reverse))
        return self._vars(names)

    def _vars(self, names: Sequence[str]) -> tuple[Expr, ...]:
        return tuple(Var(n, d) for n, d in zip(names, self.wide, strict=True))

    # ---------------------------------------------------------------- what stands before a tile

    def _before(self) -> tuple[tuple[Expr, ...] | None, tuple[str, ...] | None]:
        """The values before the first point, None for none; and the names that carry them."""
        first = {self.lane.var.name: self._first_lane()}
        outside = self._outside()
        if self._begins(first, self.place):
            return None, None
        if outside is None:
            self.making.note(
                f"what '{self.store.buffer}' is before each tile of its scan is read from memory; "
                "vectorize a power of two of it just inside a serial loop to carry it in registers"
            )
            return self._read(first, self.place), None
        first[outside.loop] = outside.low
        outer, self.making.out = self.making.out, outside.tiles
        start: tuple[Expr, ...] = self._neutral
        if not self._begins(first, outside.place):
            start = self._read(first, outside.place)
        several = len(self.dtypes) > 1
        names = tuple(
            self.making.fresh(f"{self.store.buffer}_carry{k if several else ''}")
            for k in range(len(self.dtypes))
        )
        for name, value, dtype in zip(names, start, self.wide, strict=True):
            made = value if isinstance(value, Const) else Cast(dtype, value)
            if isinstance(value, Const):
                made = Const(value.value, dtype)
            self.making.out.append(Declare(name, dtype, made))
        self.making.out = outer
        self.making.mutable.update(names)
        return self._vars(names), names

    def _first_lane(self) -> Expr:
        if not self.reverse:
            return integer(0)
        return simplify(value_of(self.loop.extent, self.place, self.making) - 1)

    def _at(self, e: Expr, places: Mapping[str, Expr]) -> Expr:
        whole = self.making.expand(value_of(e, self.place, self.making))
        return simplify(substitute(whole, places))

    def _begins(self, first: Mapping[str, Expr], place: Place) -> bool:
        """Whether the first point of the tile is the first of the scan."""
        begins = self.scan.begins
        return begins is not None and place.facts.proves(self._at(begins, first))

    def _outside(self) -> Outside | None:
        """The loop around the tile, if its iterations are one tile after the other."""
        outside, lane = self.place.outside, self.lane
        if outside is None or not isinstance(lane.extent, int):
            return None
        whole = lane.extent * self.scan.steps
        for e in self.indices:
            form = expanded(to_linear(self.making.expand(e)))
            own = form.terms.get(lane.var, 0)
            if form.terms.get(Var(outside.loop), 0) != (whole if own else 0):
                return None
            hidden = {n for atom in form.terms if not isinstance(atom, Var) for n in atom.free}
            if hidden & {lane.var.name, outside.loop}:
                return None
        return outside

    def _read(self, first: Mapping[str, Expr], place: Place) -> tuple[Expr, ...]:
        """The point before the first one, from memory; the neutral element where there is none."""
        making = self.making
        at = tuple(self._at(e, first) for e in self.scan.before)
        begins = None if self.scan.begins is None else self._at(self.scan.begins, first)
        memory = making.memories[self.store.buffer]
        values: list[Expr] = []
        for component, neutral in enumerate(self._neutral):
            there = access(memory, component, at, place, making)
            values.append(self._element(there, begins, neutral, place))
        return tuple(values)

    def _element(self, at: Access, begins: Expr | None, neutral: Const, place: Place) -> Expr:
        making = self.making
        name = making.fresh(f"{self.store.buffer}_before")
        making.lanes.declare(name, making.lanes.of(*at.offsets))
        own = [g for g in place.guards if self.lane not in making.lanes.of(g)]
        making.out.append(Read(name, at, conjunction([*needed_bounds(at, place), *own])))
        value: Expr = Var(name, at.dtype)
        return value if begins is None else Select(begins, neutral, value)

    def _narrowed(self, value: Expr, dtype: DType) -> Expr:
        return value if value.dtype is dtype else Cast(dtype, value)
