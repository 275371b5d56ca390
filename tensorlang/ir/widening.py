"""Regions made larger on request: what bound, bound_extent and align_bounds make of a region.

Only the loops and the storage grow.  What is needed stays what it is, so that the points in excess
are masked and no Input is read outside what the algorithm reads.
"""

from dataclasses import dataclass, field
from typing import TypeAlias

from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.facts import Facts
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import index
from tensorlang.span import Span

# min, extent, first and last of one dimension.
Region: TypeAlias = tuple[Expr, Expr, Expr, Expr]


@dataclass(frozen=True, slots=True, eq=False)
class Fixed:
    """Dimension `dim` is [min, min + extent); without a min: `extent` from the first needed on."""

    dim: int
    min: Expr | None
    extent: Expr
    span: Span | None = field(default=None, kw_only=True, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """min % modulus == remainder in dimension `dim`, and the extent is a multiple of modulus."""

    dim: int
    modulus: int
    remainder: int
    span: Span | None = field(default=None, kw_only=True, repr=False)


Widening: TypeAlias = Fixed | Aligned


def widened(region: Region, dim: int, rules: tuple[Widening, ...], facts: Facts) -> Region:
    """The region of dimension `dim` under the rules that are about it."""
    for rule in rules:
        if rule.dim == dim:
            region = _bounded(region, rule) if isinstance(rule, Fixed) else region
            region = _aligned(region, rule, facts) if isinstance(rule, Aligned) else region
    return region


def _bounded(region: Region, rule: Fixed) -> Region:
    _, _, first, last = region
    return first if rule.min is None else rule.min, rule.extent, first, last


def _aligned(region: Region, rule: Aligned, facts: Facts) -> Region:
    """[m, e) -> [floor(m), ceil(e)) in steps of the modulus; a constant extent stays constant."""
    low, extent, first, last = region
    modulus, remainder = Const(rule.modulus, index), Const(rule.remainder, index)
    start = simplify((low - remainder) // modulus * modulus + remainder, facts)
    end = (low + extent - remainder + modulus - 1) // modulus * modulus + remainder
    count = simplify(end - start, facts)
    if isinstance(extent, Const) and not isinstance(count, Const):
        most = int(extent.value) + rule.modulus - 1
        count = Const(-(-most // rule.modulus) * rule.modulus, index)
    return start, count, first, last
