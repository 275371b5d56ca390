"""Every row keeps the value for every dtype that it is for, and makes the expression smaller."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorlang.ir.expr import Binary, Compare, Const, Expr, Param, Select, Unary
from tensorlang.ir.rules import ROWS, Pattern, Row, Wild, apply_rows, build
from tensorlang.ir.types import DTYPES, DType, bool_, index
from tensorlang.ir.walk import fold, postorder
from tests.ir.evaluation import same, value_of

_COMPARISONS = ("lt", "le", "eq", "ne")
_TYPES = [t for t in DTYPES.values() if not (t.is_float and t.bits == 8) and t.name != "tf32"]


def values(dtype: DType) -> st.SearchStrategy:
    if dtype.is_bool:
        return st.booleans()
    if dtype.is_float:
        special = st.sampled_from([0.0, -0.0, 1.0, -1.5, math.inf, -math.inf, math.nan])
        return special | st.floats(width=16)
    special = st.sampled_from([0, 1, 2, 3, dtype.lowest, dtype.highest, dtype.highest - 1])
    return special | st.integers(dtype.lowest, dtype.highest)


class Typed:
    """A pattern as an expression: wildcards become Params, constant ones become Consts."""

    def __init__(self, data: st.DataObject, row: Row) -> None:
        self.data = data
        self.row = row
        self.found: dict[str, Expr] = {}
        self.point: dict[str, object] = {}

    def make(self, pattern: Pattern, dtype: DType) -> Expr:
        if isinstance(pattern, Wild):
            if pattern.name not in self.found:
                self.found[pattern.name] = self._stand_in(pattern, dtype)
            return self.found[pattern.name]
        if not isinstance(pattern, tuple):
            return Const(pattern, dtype)
        op, *parts = pattern
        if op == "select":
            return Select(self.make(parts[0], bool_), *(self.make(p, dtype) for p in parts[1:]))
        operands = [self.make(part, dtype) for part in parts]
        if op in _COMPARISONS:
            return Compare(op, *operands)
        return Unary(op, *operands) if len(operands) == 1 else Binary(op, *operands)

    def _stand_in(self, wild: Wild, dtype: DType) -> Expr:
        value = self.data.draw(values(dtype))
        if wild.only_constant:
            return Const(value, dtype)
        name = f"p_{wild.name}"
        self.point[name] = Const(value, dtype).value
        return Param(name, dtype)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row.pattern))
@settings(max_examples=40)
@given(st.data())
def test_row_keeps_the_value_and_makes_progress(row: Row, data: st.DataObject):
    dtype = data.draw(st.sampled_from([t for t in _TYPES if row.domain(t)]))
    typed = Typed(data, row)
    before = typed.make(row.pattern, dtype)
    if not row.condition(typed.found):
        return
    after = build(row.replacement, typed.found, before.dtype)
    assert after.dtype is before.dtype
    assert same(value_of(before, typed.point), value_of(after, typed.point))
    assert _measure(after) < _measure(before)


def _measure(e: Expr) -> tuple[int, int]:
    """Nodes of the tree, then constants that stand on the left."""
    nodes = fold(e, lambda _, below: 1 + sum(below))
    left = sum(isinstance(n, Binary) and isinstance(n.a, Const) for n in postorder(e))
    return nodes, left


def test_a_row_that_does_not_match_leaves_the_expression():
    e = Param("p", index) + 1
    assert apply_rows(e) is e
