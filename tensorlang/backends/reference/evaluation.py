"""Which box of each Func is computed, and when.

First, consumers before producers, what every Func needs of the others is found as far as it does
not depend on the values of Funcs.  Then, producers first, every Func is computed over its box; what
depends on values (`g[h[i]]`, or a select over h) is found once h is computed, and when a Func was
computed over too small a box for it, it is computed again over a larger one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorlang.algorithm import Algorithm, Definition, FuncRecord, reads_of
from tensorlang.backends import numerics
from tensorlang.backends.reference.lanes import Block, Evaluator, Faults
from tensorlang.backends.reference.regions import Box, Demands, Question, contains, hull
from tensorlang.backends.reference.stages import Stages
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Expr, Load
from tensorlang.ir.types import Scalar

# Boxes settle after growing two or three times, or they grow for ever.
_MOST_GROWTHS = 20


class Evaluation:
    """One run of an algorithm."""

    def __init__(
        self,
        algorithm: Algorithm,
        sizes: Mapping[str, int],
        params: Mapping[str, Scalar],
        inputs: Sequence[Any],
        *,
        wide: bool,
    ) -> None:
        self._algorithm = algorithm
        self._funcs = {f.name: f for f in algorithm.funcs}
        self._boxes: dict[str, Box] = {}
        self._blocks: dict[str, Block] = {
            record.name: Block(record.name, (record.dtype,), (0,) * array.ndim, [array], True)
            for record, array in zip(algorithm.inputs, inputs, strict=True)
        }
        self._faults = Faults()
        self._evaluator = Evaluator(self._blocks, self._faults, wide=wide)
        self._names: dict[str, Any] = {name: np.int64(n) for name, n in sizes.items()}
        for param in algorithm.params:
            dtype = self._evaluator.computed(param.dtype)
            self._names[param.name] = numerics.constant(params[param.name], dtype)
        self._stages = Stages(self._evaluator, self._names)

    @property
    def boxes(self) -> Mapping[str, Box]:
        """The box of each Func that the outputs needed."""
        return self._boxes

    def outputs(self) -> Iterator[Any]:
        """The values of every component of every output, as they are carried."""
        shapes = {
            name: tuple([range(max(0, n)) for n in self._evaluator.numbers(shape, self._names)])
            for name, shape in self._algorithm.outputs
        }
        for name, box in shapes.items():
            self._boxes[name] = hull(self._boxes.get(name), box)
        for func in reversed(self._algorithm.funcs):
            if func.name in self._boxes:
                self._settle(func, computing=False)
        for func in self._algorithm.funcs:
            if func.name in self._boxes:
                self._require(func.name, self._boxes[func.name])
        for name, box in shapes.items():
            block = self._blocks[name]
            at = block.place(box)
            if block.fault is not None:
                self._faults.check(block.fault[at])
            yield from (array[at] for array in block.arrays)

    def _require(self, name: str, box: Box) -> None:
        """Compute a Func, unless what is computed of it contains the box."""
        block = self._blocks.get(name)
        if block is not None and contains(block.box, box):
            return
        self._boxes[name] = hull(self._boxes.get(name), box)
        func = self._funcs[name]
        self._settle(func, computing=True)
        for other in reads_of(func) & self._funcs.keys() - self._blocks.keys() - {name}:
            # Read on sides of selects that no point chooses.
            self._require(other, (range(0),) * len(self._funcs[other].dims))
        self._blocks[name] = self._stages.start(func, self._boxes[name])
        for definition in func.definitions:
            self._stages.run(func, definition, self._blocks[name])

    def _settle(self, func: FuncRecord, *, computing: bool) -> None:
        """Extend the box of a Func to what its updates touch, and demand what it needs of others.

        Args: computing: compute what is demanded, and go on with what can be answered then.
        """
        ready: frozenset[Load] = frozenset()
        force = False
        growths = 0
        while growths < _MOST_GROWTHS:
            found = self._demands(func, ready, force=force)
            before = self._boxes[func.name]
            for name, box in found.boxes.items():
                if computing and name != func.name:
                    self._require(name, box)
                else:
                    self._boxes[name] = hull(self._boxes.get(name), box)
            for name in {load.buffer for load in found.settled} - self._blocks.keys():
                # No point needs it, but a condition may stand on it.
                if computing and name != func.name:
                    self._require(name, (range(0),) * len(self._funcs[name].dims))
            grown = self._boxes[func.name] != before
            growths += grown
            if not grown and not (computing and found.deferred):
                return
            force |= not grown and found.settled <= ready
            ready |= found.settled if computing else ready
        raise InternalError(f"the reference finds no box for {func.name!r}")

    def _demands(self, func: FuncRecord, ready: frozenset[Load], *, force: bool) -> Demands:
        total = Demands()
        box = self._boxes[func.name]
        if any(len(r) == 0 for r in box):
            return total
        for definition in func.definitions:
            question = Question(
                _roots(func, definition),
                definition.domain.where if definition.domain else None,
                func.name,
                self._funcs.__contains__,
                ready,
                force,
            )
            ranges = self._stages.ranges_of(definition, box)
            total.join(question.answer(self._evaluator, self._names, ranges))
        return total


def _roots(func: FuncRecord, definition: Definition) -> tuple[Expr, ...]:
    """What a definition reads; an update also touches the element that it writes."""
    if definition is func.definitions[0]:
        return definition.values
    written = Load(func.name, definition.indices, 0, func.dtypes[0])
    return (written, *definition.values)
