"""How large the dimensions of an algorithm are, as far as the Sizes are known."""

from collections.abc import Mapping

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import index
from tensorlang.ir.walk import loads_of, substitute

# What an extent that is not known is taken for.
LARGE = 4096


class Extents:
    """Numbers for extents: of a Size that is known, else LARGE."""

    def __init__(self, algorithm: Algorithm, sizes: Mapping[str, int]) -> None:
        self._sizes: dict[str, Expr] = {s.name: Const(LARGE, index) for s in algorithm.sizes}
        self._sizes |= {name: Const(n, index) for name, n in sizes.items()}
        self._algorithm = algorithm
        self.inputs = algorithm.inputs
        self.outputs = dict(algorithm.outputs)

    def of(self, e: Expr) -> int:
        """The number that an extent is taken for."""
        value = simplify(substitute(e, self._sizes))
        return int(value.value) if isinstance(value, Const) else LARGE

    def shape(self, func: FuncRecord) -> tuple[int, ...]:
        """Of an output its shape; of another Func that of what it reads at its own point."""
        if func.name in self.outputs:
            return tuple(self.of(n) for n in self.outputs[func.name])
        return tuple(self._dim(func, k) for k in range(len(func.dims)))

    def _dim(self, func: FuncRecord, position: int) -> int:
        """The extent of an Input that the dimension runs along, or of an output that reads it."""
        shapes = {a.name: a.shape for a in self._algorithm.inputs}
        for definition in func.definitions:
            for load in loads_of(*definition.values):
                for e, n in zip(load.indices, shapes.get(load.buffer, ()), strict=False):
                    if func.dims[position] in e.free:
                        return self.of(n)
        for name, shape in self.outputs.items():
            consumer = self._algorithm.func(name)
            for load in loads_of(*(v for d in consumer.definitions for v in d.values)):
                for v, n in zip(consumer.dims, shape, strict=True):
                    if load.buffer == func.name and v in load.indices[position].free:
                        return self.of(n)
        return LARGE
