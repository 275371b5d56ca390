"""What is normalised together, and how it leaves: as it is, or as 8 bits with their scales.

A row is all points of an array that share some of its indices, wherever they lie in memory:

    ROWS      x[i, j]        row i                       weights [j]
    BLOCKS    x[i, c, t]     row i, a scale a block c    weights [c, t]
    GROUPS    x[b, g, c, s]  row (b, g)                  weights [g, c]
    CHANNELS  x[b, c, s]     row c                       weights [c]

With a residual a row is of x + residual, rounded as x is.  Of a norm that sum is an output too,
`added`, for the layer that adds to it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Size, Var, as_expr
from tensorlang.ir.functions import abs, clamp, round
from tensorlang.ir.types import DTYPES, DType, f8e5m2, f32
from tensorlang.nn.numbers import M, N, i, j, wide
from tensorlang.reductions import max

B, C, G, S, T = (Size(name) for name in "BCGST")
b, c, g, s, t = (Var(name) for name in "bcgst")
Point = Sequence[Expr]
Outputs = dict[Func, list[Size]]
# The least scale times the largest value: of a row of zeros.
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Rows:
    """Where rows lie in an array.

    Args:
        shape: the indices of the array in the order of memory, and how far each runs.
        row: the indices that name a row.
        weighted: those of weight and bias.
        scaled: those of a scale, where values leave as 8 bits.
    """

    shape: Mapping[Var, Size]
    row: tuple[Var, ...]
    weighted: tuple[Var, ...]
    scaled: tuple[Var, ...]

    @property
    def point(self) -> tuple[Var, ...]:
        return tuple(self.shape)

    def sizes(self, indices: Sequence[Var]) -> list[Size]:
        """How far they run."""
        return [self.shape[v] for v in indices]

    def count(self) -> Expr:
        """How many points a row has."""
        return reduce(mul, map(as_expr, self._inside(self.row).values()))

    def over(self, name: str, common: Sequence[Var] | None = None) -> tuple[RDom, Point]:
        """A domain over the points of a row, and the point; or over all that have `common`."""
        inside = self._inside(self.row if common is None else common)
        domain = RDom(name, *inside.values())
        variables = list(domain) if len(inside) > 1 else [domain]
        at = dict(zip(inside, variables, strict=True))
        return domain, [as_expr(at.get(v, v)) for v in self.shape]

    def _inside(self, common: Sequence[Var]) -> dict[Var, Size]:
        return {v: n for v, n in self.shape.items() if v not in {*common}}


ROWS = Rows({i: M, j: N}, row=(i,), weighted=(j,), scaled=(i,))
BLOCKS = Rows({i: M, c: C, t: T}, row=(i,), weighted=(c, t), scaled=(i, c))
GROUPS = Rows({b: B, g: G, c: C, s: S}, row=(b, g), weighted=(g, c), scaled=(b, g))
CHANNELS = Rows({b: B, c: C, s: S}, row=(c,), weighted=(c,), scaled=(c,))


def in_bytes(out_dtype: str) -> bool:
    """Whether values leave as 8 bits with scales."""
    return bool(out_dtype) and DTYPES[out_dtype].bits == 8


def rows_for(out_dtype: str) -> Rows:
    """Of a matrix: in blocks where values leave as 8 bits."""
    return BLOCKS if in_bytes(out_dtype) else ROWS


class Source:
    """The values of x, or of x + residual, and what is made of them.

    Args:
        rows: where they lie.
        x, weight, bias, residual: dtypes; None for what is not given.
    """

    def __init__(
        self,
        rows: Rows,
        x: DType,
        residual: DType | None,
        weight: DType | None = None,
        bias: DType | None = None,
    ) -> None:
        shape, weights = rows.sizes(rows.point), rows.sizes(rows.weighted)
        self.rows, self.dtype, self.wide = rows, x, wide(x)
        self.x = Input("x", x, shape)
        self.weight = None if weight is None else Input("weight", weight, weights)
        self.bias = None if bias is None else Input("bias", bias, weights)
        self.residual = None if residual is None else Input("residual", residual, shape)

    @property
    def inputs(self) -> list[Input]:
        """Those that are given."""
        return [a for a in (self.x, self.weight, self.bias, self.residual) if a is not None]

    def __call__(self, point: Point | None = None) -> Expr:
        """One value, in the dtype in which an operator computes."""
        return self.wide(self._rounded(self.rows.point if point is None else point))

    def _rounded(self, point: Point) -> Expr:
        value = self.x[tuple(point)]
        if self.residual is None:
            return value
        return self.dtype(self.wide(value) + self.wide(self.residual[tuple(point)]))

    def affine(self, value: Expr) -> Expr:
        """value * weight + bias, each where it is given."""
        if self.weight is not None:
            value = value * self.wide(self.weight[self.rows.weighted])
        return value if self.bias is None else value + self.wide(self.bias[self.rows.weighted])

    def left(self, value: Expr, out_dtype: str = "") -> Outputs:
        """The outputs: `out`, or of 8 bits `q` and `scale`.

        Args: out_dtype: "" for that of x.
        """
        if in_bytes(out_dtype):
            return in_scaled_bytes(self.rows, value, out_dtype)
        out = Func("out")
        out[self.rows.point] = (DTYPES[out_dtype] if out_dtype else self.dtype)(value)
        return {out: self.rows.sizes(self.rows.point)}

    def added(self) -> Outputs:
        """x + residual as an output, where there is a residual."""
        if self.residual is None:
            return {}
        added = Func("added")
        added[self.rows.point] = self._rounded(self.rows.point)
        return {added: self.rows.sizes(self.rows.point)}


def in_scaled_bytes(rows: Rows, value: Expr, out_dtype: str) -> Outputs:
    """q[p] = value / scale, rounded to 8 bits; scale = max(|value|) / largest of what shares it"""
    made, point = DTYPES[out_dtype], rows.point
    largest = float(made.highest) if made.is_integer else _largest_float(made)
    y, peak, q, scale = Func("y"), Func("peak"), Func("q"), Func("scale")
    domain, at = rows.over("u", rows.scaled)
    y[point] = value
    peak[rows.scaled] = max(abs(y[tuple(at)]), over=domain, initial=_LEAST)
    scaled = y[point] * (largest / peak[rows.scaled])
    if made.is_integer:
        scaled = clamp(round(scaled), -largest, largest)
    q[point] = made(scaled)
    scale[rows.scaled] = f32(peak[rows.scaled] / largest)
    return {q: rows.sizes(point), scale: rows.sizes(rows.scaled)}


def _largest_float(dtype: DType) -> float:
    return 57344.0 if dtype is f8e5m2 else 448.0
