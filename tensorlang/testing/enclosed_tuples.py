"""What an associative update of a tuple of floats may come to when its terms are grouped otherwise.

Every grouping adds up the same products of terms, each of which is rounded on its way no more often
than there are operations.  With n of them, in a dtype of unit roundoff u, two groupings differ by
at most `2*n*u` times what the update gives of magnitudes, where nothing cancels; twice that is
granted, since a merge has more operations than an iteration.
"""

from dataclasses import replace

import numpy as np

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.backends.rounding import lowest_exponent, rounder
from tensorlang.ir.expr import Binary, Expr, Unary
from tensorlang.ir.functions import abs as absolute
from tensorlang.ir.tuple_operators import tuple_operator
from tensorlang.ir.types import DType
from tensorlang.ir.walk import fold, postorder
from tensorlang.testing.enclosures import Enclosure, enclosed, free_where


def is_regrouped(func: FuncRecord, definition: Definition) -> bool:
    """Whether a schedule may group the terms of an update of floats in another way."""
    if definition.domain is None or not func.dtypes[0].is_float:
        return False
    update = func.name, definition.indices, definition.values
    return tuple_operator(*update, of_reals=True) is not None


def of_magnitudes(func: str, definition: Definition) -> Definition:
    """The update with |e| for every term e and + for every -: what nothing cancels in."""

    def step(e: Expr, operands: list[Expr]) -> Expr:
        if func not in e.reads:
            return absolute(e)
        match e:
            case Binary(op="sub"):
                return Binary("add", *operands)
            case Unary(op="neg"):
                return operands[0]
            case _:
                return e.rebuild(tuple(operands)) if isinstance(e, Binary) else e

    return replace(definition, values=tuple(fold(e, step) for e in definition.values))


def roundings(definition: Definition, points: int) -> int:
    """How many operations form a value, over so many points of the domain."""
    return points * sum(isinstance(e, Binary) for e in postorder(*definition.values))


def regrouped(found: Enclosure, size: Enclosure, count: int, dtype: DType) -> Enclosure:
    """What other groupings may give in place of `found`, by the result of magnitudes.

    Nothing cancels in these, so that where they give NaN every grouping does: of a NaN, or of inf
    times 0.  Where they only leave the range of the dtype, another grouping may stay inside.
    """
    most = np.asarray(size.high, np.float64)
    unit = 2.0 ** -(dtype.mantissa + 1)
    error = 4 * count * (unit * most + 2.0 ** (lowest_exponent(dtype) - dtype.mantissa))
    bounded = np.isfinite(most) & (most + error < dtype.largest)
    error, rounded = np.where(bounded, error, 0.0), rounder(dtype)
    ends = (np.asarray(end, np.float64) for end in (found.low, found.high))
    low, high = (rounded(end + way * error) for end, way in zip(ends, (-1, 1), strict=True))
    certain = np.isnan(most) & found.is_certain_nan
    return free_where(enclosed(low, high, found.loose, dtype), ~bounded & ~certain, dtype)
