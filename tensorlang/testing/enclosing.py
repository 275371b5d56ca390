"""Evaluates an algorithm over enclosures: what every correct execution of it may compute.

It shares with `reference` which box of each Func is needed, and the meaning of each operation.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tensorlang.algorithm import Algorithm, Definition, FuncRecord
from tensorlang.backends import numerics
from tensorlang.backends.reference.regions import Box, axis, pieces
from tensorlang.directives.order import scan_over
from tensorlang.errors import InternalError
from tensorlang.ir.associativity import side_by_side
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.functions import identity
from tensorlang.ir.scans import Scan
from tensorlang.ir.tuple_operators import TupleOperator
from tensorlang.ir.types import DType, Scalar
from tensorlang.ir.walk import postorder
from tensorlang.testing import enclosed_operations as operations
from tensorlang.testing.enclosed_functions import function
from tensorlang.testing.enclosed_reductions import Along, Folding, Places, Scattered, folding
from tensorlang.testing.enclosed_tuples import is_regrouped, of_magnitudes, regrouped, roundings
from tensorlang.testing.enclosures import Enclosure, choose, either, free_where, point

# Several arrays of so many elements at a time.
_LANES = 1 << 20


@dataclass(slots=True)
class Field:
    """The enclosures of a Func over a box, or the values of an Input."""

    origin: tuple[int, ...]
    dtypes: tuple[DType, ...]
    values: list[Enclosure] = field(default_factory=list[Enclosure])

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(np.shape(self.values[0].low))

    @property
    def box(self) -> Box:
        pairs = zip(self.origin, self.shape, strict=True)
        return tuple([range(low, low + extent) for low, extent in pairs])

    def place(self, box: Box) -> tuple[slice, ...]:
        """Where a box lies in the arrays."""
        pairs = zip(box, self.origin, strict=True)
        return tuple([slice(r.start - low, r.stop - low) for r, low in pairs])

    def store(self, at: tuple[Any, ...], values: Sequence[Enclosure]) -> None:
        """values, one a component, become the elements at `at`."""
        for k, (held, new) in enumerate(zip(self.values, values, strict=True)):
            low, high, loose = held
            if low is high and not new.is_point:
                high = low.copy()
            if loose is None and new.loose is not None:
                loose = np.zeros(low.shape, bool)
            low[at] = new.low
            high[at] = new.high
            if loose is not None:
                loose[at] = False if new.loose is None else new.loose
            self.values[k] = Enclosure(low, high, loose)

    def load(self, at: tuple[Any, ...], component: int) -> Enclosure:
        """The elements at some indices."""
        low, high, loose = self.values[component]
        if low is high:
            value = low[at]
            return Enclosure(value, value, None if loose is None else loose[at])
        return Enclosure(low[at], high[at], None if loose is None else loose[at])


class Enclosing:
    """One run of an algorithm over enclosures.

    Args:
        inputs: arrays of storage types, one an Input.
        boxes: the box of each Func that the outputs need.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        boxes: Mapping[str, Box],
    ) -> None:
        self.algorithm, self.boxes = algorithm, boxes
        self.names = {name: point(np.int64(n)) for name, n in sizes.items()}
        for param in algorithm.params:
            self.names[param.name] = point(numerics.constant(params[param.name], param.dtype))
        self.fields: dict[str, Field] = {}
        for record, array in zip(algorithm.inputs, inputs, strict=True):
            value = point(numerics.unpack(record.dtype)(array))
            self.fields[record.name] = Field((0,) * array.ndim, (record.dtype,), [value])
        self._operations: dict[Expr, operations.Operation] = {}

    def run(self) -> None:
        """Enclose every Func over its box."""
        with numerics.quiet():
            for func in self.algorithm.funcs:
                if func.name in self.boxes:
                    self._compute(func, self.boxes[func.name])

    def _compute(self, func: FuncRecord, box: Box) -> None:
        shape = tuple(map(len, box))
        starts = [point(np.zeros(shape, numerics.carrier(t))) for t in func.dtypes]
        made = Field(tuple(r.start for r in box), func.dtypes, starts)
        self.fields[func.name] = made
        if 0 in shape:
            return
        for part in pieces(box, _LANES):
            names = self._axes(func.dims, part)
            made.store(made.place(part), self.evaluate(func.definitions[0].values, names))
        for definition in func.definitions[1:]:
            folds = self._folds_of(func, definition)
            for component, (op, term) in enumerate(folds):
                self._run_fold(definition, made, component, op, term)
            if not folds and is_regrouped(func, definition):
                self._run_in_groups(func, definition, made)
            elif not folds:
                self._run_in_order(func, definition, made)

    @staticmethod
    def _folds_of(func: FuncRecord, definition: Definition) -> list[tuple[str, Expr]]:
        """The operator and the term of each component, where it is a reduction of its own."""
        domain = definition.domain
        if domain is None or (domain.where is not None and func.name in domain.where.reads):
            return []
        found = side_by_side(func.name, definition.indices, definition.values)
        return [] if found is None else list(zip(*found, strict=True))

    def _run_in_groups(self, func: FuncRecord, definition: Definition, made: Field) -> None:
        """Point after point, and by how much another grouping of the points may differ."""
        absolute = [point(np.maximum(np.abs(x.low), np.abs(x.high))) for x in made.values]
        sizes = Field(made.origin, made.dtypes, absolute)
        self._run_in_order(func, definition, made)
        self.fields[func.name] = sizes
        self._run_in_order(func, of_magnitudes(func.name, definition), sizes)
        self.fields[func.name] = made
        ranges, domain = self._ranges(definition, made.box), definition.domain
        points = math.prod(len(ranges[v]) for v in domain.names) if domain else 1
        count = roundings(definition, points)
        for k, dtype in enumerate(made.dtypes):
            made.values[k] = regrouped(made.values[k], sizes.values[k], count, dtype)

    def _ranges(self, definition: Definition, box: Box) -> dict[str, range]:
        """The loops of a definition over a box: pure Vars, then the domain."""
        ranges = {v: r for v, r in zip(definition.pure, box, strict=True) if v is not None}
        for name, low, extent in definition.domain.dims if definition.domain else ():
            start, count = (int(x.low) for x in self.evaluate((low, extent), self.names))
            ranges[name] = range(start, start + max(count, 0))
        return ranges

    def _run_fold(
        self, definition: Definition, made: Field, component: int, op: str, term: Expr
    ) -> None:
        """Combine all terms of a component, in any order."""
        dtype = made.dtypes[component]
        ranges = self._ranges(definition, made.box)
        neutral = point(numerics.constant(identity(op, dtype).value, dtype))
        state = folding(op, dtype, made.values[component], imprecise=_is_f8_product(term))
        for part in pieces(tuple(ranges.values()), _LANES):
            names = self._axes(tuple(ranges), part)
            shape = tuple(map(len, part))
            value, chosen = self.evaluate((term,), names)[0], self._chosen(definition, names)
            if chosen is not None:
                value = choose(chosen, value, neutral, dtype)
            counted = np.broadcast_to(True if chosen is None else chosen.high, shape)
            places = self._places(definition, made, names, part, chosen)
            state.add(places, value, counted)
        low, high, loose = state.result()
        held = np.asarray(low)
        made.values[component] = Enclosure(held, held if high is low else np.asarray(high), loose)

    def _places(
        self,
        definition: Definition,
        made: Field,
        names: Mapping[str, Enclosure],
        part: Box,
        chosen: Enclosure | None,
    ) -> Places:
        rank, shape = len(made.shape), tuple(map(len, part))
        if None not in definition.pure:
            return Along(made.place(part[:rank]), tuple(range(rank, len(part))), shape)
        at: list[Any] = []
        for index, low in zip(self.evaluate(definition.indices, names), made.origin, strict=True):
            if np.any(index.is_open):
                raise InternalError("the oracle does not know where an update writes")
            # What is no point of the domain is the identity, and goes anywhere.
            place = index.low - low
            at.append(place if chosen is None else np.where(chosen.high, place, 0))
        return Scattered(tuple(np.broadcast_arrays(*at, np.empty(shape))[:-1]))

    def _run_in_order(self, func: FuncRecord, definition: Definition, made: Field) -> None:
        """Point after point of the domain, all pure Vars at once."""
        ranges = self._ranges(definition, made.box)
        domain = definition.domain.names if definition.domain else ()
        names = dict(self.names)
        for k, v in enumerate(definition.pure):
            if v is not None:
                names[v] = point(axis(made.box[k], k, len(made.box)))
        where = definition.domain.where if definition.domain else None
        exprs = (*definition.values, *definition.indices, *(() if where is None else (where,)))
        nodes = list(postorder(*exprs))
        known: dict[Expr, Enclosure] = {}
        still = [e for e in nodes if e.free.isdisjoint(domain) and func.name not in e.reads]
        self._fill(still, names, known)
        steps = [e for e in nodes if e not in known]
        scan = _Scanning.of(func, definition, made)
        for values in itertools.product(*(ranges[v] for v in domain)):
            names.update(zip(domain, map(point, map(np.int64, values)), strict=True))
            self._fill(steps, names, known)
            at, inside = self._written(definition, made, known)
            new = [known[e] for e in definition.values] if scan is None else [scan.next(known)]
            for condition in (point(inside), *(() if where is None else (known[where],))):
                if not np.all(condition.low):
                    held = [made.load(at, k) for k in range(len(new))]
                    triples = zip(new, held, made.dtypes, strict=True)
                    new = [choose(condition, x, old, dtype) for x, old, dtype in triples]
            made.store(at, new)

    def _written(
        self, definition: Definition, made: Field, known: Mapping[Expr, Enclosure]
    ) -> tuple[tuple[Any, ...], Any]:
        """The elements that one point of the domain writes, and where it is a point of theirs."""
        box, rank = made.box, len(made.box)
        at: list[Any] = []
        inside: Any = True
        for k, (e, v) in enumerate(zip(definition.indices, definition.pure, strict=True)):
            if v is not None:
                at.append(axis(range(len(box[k])), k, rank))
                continue
            if np.any(known[e].is_open):
                raise InternalError("the oracle does not know where an update writes")
            place = known[e].low - box[k].start
            inside = inside & (place >= 0) & (place < len(box[k]))
            at.append(np.clip(place, 0, len(box[k]) - 1))
        return tuple(at), inside

    def _chosen(self, definition: Definition, names: Mapping[str, Enclosure]) -> Enclosure | None:
        condition = definition.domain.where if definition.domain else None
        return None if condition is None else self.evaluate((condition,), names)[0]

    def _axes(self, names: Sequence[str], box: Box) -> dict[str, Enclosure]:
        rank = len(box)
        axes = {v: point(axis(r, k, rank)) for k, (v, r) in enumerate(zip(names, box, strict=True))}
        return {**self.names, **axes}

    # --- expressions -----------------------------------------------------------------------------

    def evaluate(self, exprs: Sequence[Expr], names: Mapping[str, Enclosure]) -> list[Enclosure]:
        """What each expression may be."""
        known: dict[Expr, Enclosure] = {}
        self._fill(postorder(*exprs), names, known)
        return [known[e] for e in exprs]

    def _fill(
        self, nodes: Any, names: Mapping[str, Enclosure], known: dict[Expr, Enclosure]
    ) -> None:
        for e in nodes:
            if isinstance(e, Name):
                known[e] = names[e.name]
            else:
                known[e] = self._operation(e)([known[child] for child in e.children])

    def _operation(self, e: Expr) -> operations.Operation:
        made = self._operations.get(e)
        if made is None:
            made = self._operations[e] = self._new_operation(e)
        return made

    def _new_operation(self, e: Expr) -> operations.Operation:
        match e:
            case Const():
                constant = point(numerics.constant(e.value, e.dtype))
                return lambda operands: constant
            case Unary():
                return operations.unary(e.op, e.dtype)
            case Binary():
                return operations.binary(e.op, e.dtype)
            case Compare():
                return operations.comparison(e.op)
            case Cast():
                return operations.cast(e.a.dtype, e.dtype)
            case Call():
                return function(e.function, e.args[0].dtype)
            case Select():
                return lambda operands: choose(operands[0], operands[1], operands[2], e.dtype)
            case Promise():
                return lambda operands: operands[0]
            case Load():
                return lambda operands: self._load(e, operands)
            case _:
                raise InternalError(f"{e!r} stands in no closed algorithm")

    def _load(self, e: Load, indices: Sequence[Enclosure]) -> Enclosure:
        source = self.fields[e.buffer]
        at: list[Any] = []
        for index, low, extent in zip(indices, source.origin, source.shape, strict=True):
            # Lanes that no select chooses may point outside.
            at.append(np.clip(index.low - low, 0, max(extent - 1, 0)))
        if 0 in source.shape:
            return point(np.zeros((), numerics.carrier(e.dtype))[()])
        found = source.load(tuple(at), e.component)
        unsure = either(*(None if x.is_point else x.low != x.high for x in indices))
        return free_where(found, unsure, e.dtype)


class _Scanning:
    """A float scan whose terms so far may have been combined in any grouping."""

    def __init__(self, scan: Scan, op: str, func: FuncRecord, made: Field, shape: Any) -> None:
        self.scan, self.op, self.shape = scan, op, tuple(shape)
        self.dtype = made.dtypes[0]
        self.before = Load(func.name, scan.before, 0, self.dtype)
        self.state: Folding | None = None

    @staticmethod
    def of(func: FuncRecord, definition: Definition, made: Field) -> "_Scanning | None":
        names = definition.domain.names if definition.domain else ()
        if len(names) != 1 or not made.dtypes[0].is_float:
            return None
        scan = scan_over(func.name, definition, names[0])
        if scan is None or isinstance(scan.operator, TupleOperator):
            return None
        if scan.operator not in ("add", "mul"):
            return None
        pairs = zip(definition.pure, made.box, strict=True)
        # One element, where no pure Var has others beside it.
        shape = [1 if v is None else len(r) for v, r in pairs] if any(definition.pure) else []
        return _Scanning(scan, scan.operator, func, made, shape)

    def next(self, known: Mapping[Expr, Enclosure]) -> Enclosure:
        """What the next point of the domain may be."""
        if self.state is None:
            self.state = folding(self.op, self.dtype, self._start(known))
        whole = (slice(None),) * len(self.shape)
        everywhere = np.broadcast_to(True, self.shape)
        self.state.add(Along(whole, (), self.shape), known[self.scan.terms[0]], everywhere)
        return self.state.result()

    def _start(self, known: Mapping[Expr, Enclosure]) -> Enclosure:
        """What stands before the first point of the domain."""
        if self.scan.begins is not None:
            neutral = numerics.constant(identity(self.op, self.dtype).value, self.dtype)
            return point(np.full(self.shape, neutral, numerics.carrier(self.dtype)))
        held = known[self.before]
        low = np.array(np.broadcast_to(held.low, self.shape))
        if held.is_point:
            return point(low)
        loose = None if held.loose is None else np.broadcast_to(held.loose, self.shape)
        return Enclosure(low, np.array(np.broadcast_to(held.high, self.shape)), loose)


def _is_f8_product(term: Expr) -> bool:
    """Whether a matrix unit may take the sum of such terms as a dot of f8."""
    if not (isinstance(term, Binary) and term.op == "mul"):
        return False
    return all(isinstance(x, Cast) and x.a.dtype.is_float and x.a.dtype.bits == 8
               for x in (term.a, term.b))  # fmt: skip
