"""Casts between dtypes, as values are carried in C."""

from dataclasses import replace

from tensorlang.backends.c.prelude import Prelude
from tensorlang.backends.c.types import CType, carried, is_rounded
from tensorlang.backends.c.values import LOOSE, SUM, UNARY, Value, as_mask, converted
from tensorlang.ir.types import DType


def rounded(value: Value, dtype: DType, prelude: Prelude) -> Value:
    """An f32 rounded to the nearest value of a narrower float."""
    if not is_rounded(dtype):
        return value
    text = f"{prelude.helper(f'round_to_{dtype.name}', value.type)}({value.text})"
    return Value(text, value.type, unrounded=value.text)


def cast(value: Value, source: DType, target: DType, prelude: Prelude) -> Value:
    """Cast(target, value): integers wrap, floats round once, floats to integers saturate."""
    if source is target:
        return value
    if target.is_bool:
        return _to_bool(value, prelude)
    if source.is_bool:
        value = _from_bool(value, carried(target), prelude)
        return replace(value, is_bool=False)
    wanted = carried(target, value.type.lanes)
    if not target.is_float:
        if not source.is_float:
            return converted(value, wanted, prelude)
        function = prelude.helper(f"{wanted.element}_from_{value.type.element}", value.type)
        return Value(f"{function}({value.text})", wanted)
    if not is_rounded(target):
        return converted(value, wanted, prelude)
    return _to_narrow(value, target, prelude)


def _to_narrow(value: Value, target: DType, prelude: Prelude) -> Value:
    """To f16 and the like: what an f32 does not hold exactly goes through an f64 rounded to odd."""
    f32, f64 = CType("f32", value.type.lanes), CType("f64", value.type.lanes)
    if value.type.is_float and value.type.bits == 32:
        single = value
    elif not value.type.is_float and value.type.bits <= 16:
        single = converted(value, f32, prelude)
    else:
        double = converted(value, f64, prelude)
        single = Value(f"{prelude.helper('odd', f64)}({double.text})", f32)
    return rounded(single, target, prelude)


def _to_bool(value: Value, prelude: Prelude) -> Value:
    if value.type.lanes == 1:
        return Value(f"{value.within(SUM)} != 0", CType("bool"), LOOSE, is_bool=True)
    mask = prelude.type(value.type.mask)
    return Value(f"({mask})({value.within(SUM)} != 0)", value.type.mask, UNARY, is_bool=True)


def _from_bool(value: Value, target: CType, prelude: Prelude) -> Value:
    if value.type.lanes == 1:
        return Value(f"({target.name}){value.within(UNARY)}", target, UNARY)
    lanes = value.type.lanes
    ones = Value(
        f"-{as_mask(value, target.bits, prelude).within(UNARY + 1)}",
        CType(f"i{target.bits}", lanes),
        UNARY,
    )
    return converted(ones, target.of(lanes), prelude)
