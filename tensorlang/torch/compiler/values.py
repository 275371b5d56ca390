"""What a node of a graph is to a Pipeline: an element for each index."""

from collections.abc import Callable
from dataclasses import dataclass

from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.types import DType, index
from tensorlang.torch.compiler.extents import is_one

Index = tuple[Expr, ...]
ZERO = Const(0, index)


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor as a function of its index; a view of another is a function of that one's.

    transposed.at((i, j)) == x.at((j, i))
    """

    shape: tuple[Expr, ...]
    dtype: DType
    at: Callable[[Index], Expr]

    def broadcast(self, index: Index) -> Expr:
        """The element at the index of a larger shape: dimensions of extent 1 are repeated."""
        own = index[len(index) - len(self.shape) :]
        return self.at(
            tuple(ZERO if is_one(extent) else i for i, extent in zip(own, self.shape, strict=True))
        )


class NoDefinitionError(Exception):
    """A node that has no definition here; its text says why."""
