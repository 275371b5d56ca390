"""Updates whose steps may be combined in any order.

A sum or product in f32 or f64 is taken in f64 and rounded once at the end: nearer to the exact
value than any order of f32 additions, which is what the bound of a reduction is measured against.
Sums and products in narrower floats round at every step as they are defined, and so are no folds.
"""

from dataclasses import dataclass

import numpy as np

from tensorlang.algorithm import Definition, FuncRecord
from tensorlang.ir.expr import Binary, Expr, Load
from tensorlang.ir.types import DType, f32, f64

_FOLDS: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@dataclass(frozen=True, slots=True)
class Fold:
    """An update f[indices] = op(f[indices], term) whose term does not read f."""

    op: str
    term: Expr
    dtype: DType

    @property
    def ufunc(self) -> np.ufunc:
        return _FOLDS[self.op]

    @property
    def rounds(self) -> bool:
        return self.dtype.is_float and self.op in ("add", "mul")


def fold_of(func: FuncRecord, definition: Definition) -> Fold | None:
    """The update as a fold, or None when its steps must run one after the other."""
    value = definition.values[0]
    if len(definition.values) > 1 or definition.domain is None or not isinstance(value, Binary):
        return None
    own = Load(func.name, definition.indices, 0, value.dtype)
    if value.op not in _FOLDS or own not in {value.a, value.b}:
        return None
    fold = Fold(value.op, value.b if value.a is own else value.a, value.dtype)
    where = definition.domain.where
    others = (fold.term, *definition.indices, *(() if where is None else (where,)))
    if any(func.name in e.reads for e in others):
        return None
    return fold if not fold.rounds or fold.dtype in (f32, f64) else None
