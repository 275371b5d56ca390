"""Casts go only where every value stays."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.ir.casts import holds, simplify_cast
from tensorlang.ir.conversion import convert
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Load, Param, Promise, Select, Var
from tensorlang.ir.types import DTYPES, DType, bool_, f16, f32, i8, i16, i32, i64, index, u8
from tests.ir.evaluation import same, value_of

ALL = list(DTYPES.values())
i = Var("i")


def values(dtype: DType) -> st.SearchStrategy:
    if dtype.is_bool:
        return st.booleans()
    if dtype.is_float:
        largest = [dtype.largest, -dtype.largest, 0.0, -0.0, math.nan]
        return (st.sampled_from(largest) | st.floats(width=32)).map(lambda v: convert(v, dtype))
    ends = st.sampled_from([dtype.lowest, dtype.highest, 0, 1, -1, 2**53 + 1, 2**24 + 1])
    return (ends | st.integers(dtype.lowest, dtype.highest)).map(lambda v: convert(v, dtype))


@given(st.sampled_from(ALL), st.sampled_from(ALL), st.data())
def test_a_type_that_holds_another_gives_every_value_back(
    wide: DType, narrow: DType, data: st.DataObject
):
    if holds(wide, narrow):
        value = data.draw(values(narrow))
        assert same(convert(convert(value, wide), narrow), value)


@given(st.sampled_from(ALL), st.sampled_from(ALL), st.sampled_from(ALL), st.data())
def test_a_cast_that_goes_had_no_effect(
    source: DType, middle: DType, target: DType, data: st.DataObject
):
    p = Param("p", source)
    twice = Cast(target, Cast(middle, p))
    value = data.draw(values(source))
    simple = simplify_cast(twice)
    assert same(value_of(twice, {"p": value}), value_of(simple, {"p": value}))


HELD = [(f32, f16), (i64, i32), (index, i64), (i64, index), (i16, u8), (f32, i16), (f16, i8)]
NOT_HELD = [(f16, f32), (f32, i32), (u8, i8), (i32, i64), (f16, i16), (bool_, i8), (i32, index)]


@pytest.mark.parametrize(("wide", "narrow"), HELD)
def test_holds(wide: DType, narrow: DType):
    assert holds(wide, narrow)


@pytest.mark.parametrize(("wide", "narrow"), NOT_HELD)
def test_does_not_hold(wide: DType, narrow: DType):
    assert not holds(wide, narrow)


byte = Load("A", (i,), 0, u8)
word = Load("B", (i,), 0, i32)


def test_arithmetic_that_cannot_wrap_is_lifted_to_index():
    wide = Cast(i32, byte)
    lifted = simplify_cast(Cast(index, Binary("mul", wide, Const(3, i32))))
    assert lifted is Binary("mul", Cast(index, wide), Const(3, index))


def test_arithmetic_that_may_wrap_is_not():
    e = Cast(index, Binary("add", word, Const(1, i32)))
    assert simplify_cast(e) is e


def test_min_select_and_promise_are_lifted_always():
    one = Const(1, i32)
    cases: list[Expr] = [
        Binary("min", word, one),
        Select(word < one, word, one),
        Promise(word, one, word),
    ]
    for e in cases:
        assert type(simplify_cast(Cast(index, e))) is type(e)
