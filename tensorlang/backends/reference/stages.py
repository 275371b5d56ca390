"""One definition of a Func over a box."""

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.backends import numerics
from tensorlang.backends.reference.dots import LARGEST_FACTOR, contract, exact_factors
from tensorlang.backends.reference.folds import Fold, fold_of
from tensorlang.backends.reference.lanes import Block, Evaluator, Lanes, Names, first_fault
from tensorlang.backends.reference.regions import Box, axis, pieces
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Expr
from tensorlang.ir.functions import identity
from tensorlang.ir.walk import postorder

_where: Any = np.where  # whose overloads do not know Any


class Stages:
    """Computes definitions into blocks."""

    def __init__(self, evaluator: Evaluator, names: Names) -> None:
        self._evaluator = evaluator
        self._names = names

    def ranges_of(self, definition: Definition, box: Box) -> dict[str, range]:
        """The range of each loop of a definition over a box of its Func, the domain's last."""
        ranges = {v: r for v, r in zip(definition.pure, box, strict=True) if v is not None}
        for name, low, extent in definition.domain.dims if definition.domain else ():
            start, count = self._evaluator.numbers((low, extent), self._names)
            ranges[name] = range(start, start + max(count, 0))
        return ranges

    def start(self, func: FuncRecord, box: Box) -> Block:
        """A block over a box, without values."""
        shape = tuple(map(len, box))
        carriers = [numerics.carrier(self._evaluator.computed(t)) for t in func.dtypes]
        arrays = [np.zeros(shape, carrier) for carrier in carriers]
        origin = tuple([r.start for r in box])
        return Block(func.name, func.dtypes, origin, arrays, is_input=False)

    def run(self, func: FuncRecord, definition: Definition, block: Block) -> None:
        """Compute a definition over the whole block."""
        if 0 in block.shape:
            return
        fold = fold_of(func, definition)
        if definition is func.definitions[0]:
            self._pure(func, definition, block)
        elif fold is None:
            self._in_order(definition, block)
        elif None in definition.pure:
            self._scatter(definition, fold, block)
        else:
            self._reduce(definition, fold, block)

    def _pure(self, func: FuncRecord, definition: Definition, block: Block) -> None:
        for box in pieces(block.box):
            lanes = self._evaluator.evaluate(definition.values, self._axes(func.dims, box))
            _store(block, block.place(box), lanes, Lanes(True))

    def _reduce(self, definition: Definition, fold: Fold, block: Block) -> None:
        """Fold the terms along the axes of the domain, over all pure Vars."""
        ranges = self.ranges_of(definition, block.box)
        rank = len(block.shape)
        along = tuple(range(rank, len(ranges)))
        total = self._unrounded(fold, block)
        product = self._contracted(definition, fold, ranges, rank)
        if product is not None:
            block.arrays[0] = (total + product).astype(block.arrays[0].dtype)
            return
        for box in pieces(tuple(ranges.values())):
            value, fault = self._terms(definition, fold, self._axes(tuple(ranges), box), box)
            at = block.place(box[:rank])
            part = fold.ufunc.reduce(value, axis=along, dtype=total.dtype)
            total[at] = fold.ufunc(total[at], part)
            if fault is not None:
                block.blame(at, first_fault(block.fault_at(at), np.max(fault, axis=along)))
        block.arrays[0] = total.astype(block.arrays[0].dtype)

    def _contracted(
        self, definition: Definition, fold: Fold, ranges: Mapping[str, range], rank: int
    ) -> Any | None:
        """The sum of all terms where they are products that a matrix product may form."""
        factors = exact_factors(fold.term) if fold.op == "add" else None
        if factors is None or (definition.domain and definition.domain.where is not None):
            return None
        extents = [len(r) for r in ranges.values()]
        for e in factors:
            if math.prod(len(ranges[v]) for v in e.free if v in ranges) > LARGEST_FACTOR:
                return None
        names = self._axes(tuple(ranges), tuple(ranges.values()))
        a, b = self._evaluator.evaluate(factors, names)
        if a.fault is not None or b.fault is not None:
            return None
        return contract(a.value, b.value, extents, rank)

    def _scatter(self, definition: Definition, fold: Fold, block: Block) -> None:
        """Fold each term into the element that its indices name."""
        ranges = self.ranges_of(definition, block.box)
        total = self._unrounded(fold, block)
        for box in pieces(tuple(ranges.values())):
            names = self._axes(tuple(ranges), box)
            value, fault = self._terms(definition, fold, names, box)
            chosen = self._where(definition, names).value
            at: list[Any] = []
            for index, low in zip(
                self._evaluator.evaluate(definition.indices, names), block.origin, strict=True
            ):
                self._evaluator.faults.check(_chosen(index.fault, chosen))
                # At what is no point of the domain any element will do: the term is the identity.
                at.append(np.where(chosen, index.value - low, 0))
            places = tuple(np.broadcast_arrays(*at, value)[:-1])
            fold.ufunc.at(total, places, value)
            if fault is not None:
                faults = np.broadcast_to(block.fault_at(...), block.shape).copy()
                np.maximum.at(faults, places, fault)
                block.blame(..., faults)
        block.arrays[0] = total.astype(block.arrays[0].dtype)

    def _unrounded(self, fold: Fold, block: Block) -> Any:
        """The accumulators in the type in which terms are combined."""
        held = block.arrays[0]
        return held.astype(np.float64 if fold.rounds else held.dtype)

    def _terms(self, definition: Definition, fold: Fold, names: Names, box: Box) -> tuple[Any, Any]:
        """The term at every point of a piece of the loops, the identity at what is no point."""
        shape = tuple(map(len, box))
        chosen = self._where(definition, names)
        term = self._evaluator.evaluate((fold.term,), names)[0]
        neutral = term.value.dtype.type(identity(fold.op, fold.dtype).value)
        value = np.broadcast_to(_where(chosen.value, term.value, neutral), shape)
        fault = first_fault(chosen.fault, _chosen(term.fault, chosen.value))
        # float64 holds all that f32 does: only what is folded in it is converted.
        made = np.float64 if fold.rounds else value.dtype
        return value.astype(made), None if fault is None else np.broadcast_to(fault, shape)

    def _in_order(self, definition: Definition, block: Block) -> None:
        """Point after point of the domain, all pure Vars at once."""
        ranges = self.ranges_of(definition, block.box)
        domain = definition.domain.names if definition.domain else ()
        names = self._names_of_pure(definition, block)
        where = definition.domain.where if definition.domain else None
        exprs = (*definition.values, *definition.indices, *(() if where is None else (where,)))
        nodes = list(postorder(*exprs))
        known: dict[Expr, Lanes] = {}
        still = [e for e in nodes if e.free.isdisjoint(domain) and block.name not in e.reads]
        self._evaluator.fill(still, names, known)
        steps = [e for e in nodes if e not in known]
        for point in itertools.product(*(ranges[v] for v in domain)):
            names.update(zip(domain, map(np.int64, point), strict=True))
            self._evaluator.fill(steps, names, known)
            chosen = Lanes(True) if where is None else known[where]
            if np.any(chosen.value) or chosen.fault is not None:
                at = self._written(definition, block, known, chosen)
                _store(block, at, [known[e] for e in definition.values], chosen)

    def _written(
        self, definition: Definition, block: Block, known: dict[Expr, Lanes], chosen: Lanes
    ) -> tuple[Any, ...]:
        """The elements that one point of the domain writes, for all pure Vars at once."""
        box, rank = block.box, len(block.box)
        at: list[Any] = []
        for k, (e, v) in enumerate(zip(definition.indices, definition.pure, strict=True)):
            if v is not None:
                at.append(axis(range(len(box[k])), k, rank))
                continue
            index = known[e]
            self._evaluator.faults.check(_chosen(index.fault, chosen.value))
            outside = (index.value < box[k].start) | (index.value >= box[k].stop)
            if np.any(outside & chosen.value):
                raise InternalError(f"the reference writes {block.name!r} outside of {box[k]}")
            at.append(np.where(outside, 0, index.value - box[k].start))
        return tuple(at)

    def _where(self, definition: Definition, names: Names) -> Lanes:
        """Which points of the loops are points of the domain."""
        where = definition.domain.where if definition.domain else None
        return Lanes(True) if where is None else self._evaluator.evaluate((where,), names)[0]

    def _axes(self, names: tuple[str, ...], box: Box) -> dict[str, Any]:
        """Every known name, and those of some axes of a space as arrays along them."""
        rank = len(box)
        axes = {v: axis(r, k, rank) for k, (v, r) in enumerate(zip(names, box, strict=True))}
        return {**self._names, **axes}

    def _names_of_pure(self, definition: Definition, block: Block) -> dict[str, Any]:
        """Every known name, and the pure Vars as arrays along the axes of the block."""
        box = block.box
        axes = {
            v: axis(box[k], k, len(box)) for k, v in enumerate(definition.pure) if v is not None
        }
        return {**self._names, **axes}


def _store(block: Block, at: tuple[Any, ...], lanes: list[Lanes], chosen: Lanes) -> None:
    """block[at] = lanes, all components at once, where `chosen` holds."""
    fault = None
    for array, x in zip(block.arrays, lanes, strict=True):
        fault = first_fault(fault, x.fault)
        array[at] = x.value if chosen.value is True else _where(chosen.value, x.value, array[at])
    if chosen.value is not True:
        old = block.fault_at(at)
        new = _where(chosen.value, np.int32(0) if fault is None else fault, old)
        fault = first_fault(chosen.fault, new)
    block.blame(at, fault)


def _chosen(fault: Any, chosen: Any) -> Any:
    """The faults of the lanes that are points of the domain."""
    return None if fault is None else _where(chosen, fault, np.int32(0))
