"""The dtype in which an operator computes, and the indices that every definition uses."""

from tensorlang.domain import RDom
from tensorlang.ir.expr import Size, Var
from tensorlang.ir.types import DType, f32, f64

# Rows, columns, and a reduced extent.
M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")


def over(name: str, extent: Size = N) -> RDom:
    """A reduction domain over a whole extent."""
    return RDom(name, extent)


def wide(dtype: DType) -> DType:
    """f64 for f64; else f32, as torch computes on narrower floats."""
    return f64 if dtype is f64 else f32
