"""The interpreter's closures and the reference's lanes give one meaning to every expression."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tensorlang.backends import numerics
from tensorlang.backends.closures import Closures
from tensorlang.backends.reference.lanes import Evaluator, Faults
from tensorlang.errors import BoundsError, InternalError
from tensorlang.ir.expr import Const, Expr, Param, Select, Var
from tensorlang.ir.functions import promise
from tensorlang.ir.types import DTYPES, DType, f32, i32, index
from tensorlang.ir.walk import postorder
from tensorlang.testing.exprs import SCOPE, Scope, constants, exprs

NAMES = Scope(SCOPE.names)


@st.composite
def values_of_names(draw: st.DrawFn) -> dict[str, Any]:
    """A value for each name of the scope: a Python int for an index."""
    found: dict[str, Any] = {}
    for name in NAMES.names:
        if name.dtype is index:
            found[name.name] = draw(st.integers(-(2**20), 2**20))
            continue
        e = draw(constants(name.dtype))
        assert isinstance(e, Const)
        found[name.name] = numerics.constant(e.value, name.dtype)
    return found


def by_closure(e: Expr, values: dict[str, Any]) -> Any:
    closures = Closures()
    for name in values:
        closures.slot(name)
    closure = closures.one(e)
    env: list[Any] = [None] * closures.size
    for name, value in values.items():
        env[closures.slot(name)] = value
    with numerics.quiet():
        return closure(env)


def same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def stays_in_64_bits(e: Expr, values: dict[str, Any]) -> bool:
    """Arrays hold an index in 64 bits; only the interpreter's are unbounded."""
    indices = [x for x in postorder(e) if x.dtype is index]
    return all(-(2**63) <= int(by_closure(x, values)) < 2**63 for x in indices)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_an_expression_has_one_value_in_both(dtype: DType, data: st.DataObject):
    e = data.draw(exprs(dtype, NAMES))
    points = data.draw(st.lists(values_of_names(), min_size=2, max_size=2))
    try:
        scalars = [by_closure(e, p) for p in points]
        assume(all(stays_in_64_bits(e, p) for p in points))
    except BoundsError:
        assume(False)
    names = {
        n.name: np.array([p[n.name] for p in points], numerics.carrier(n.dtype))
        for n in NAMES.names
    }
    with numerics.quiet():
        evaluator = Evaluator({}, Faults(), wide=False)
        (lanes,) = evaluator.evaluate([e], names)
        evaluator.faults.check(lanes.fault)
    value = np.broadcast_to(lanes.value, 2)
    assert value.dtype == numerics.carrier(dtype)
    assert all(map(same, value, scalars)), (value, scalars)
    if dtype is not index and not dtype.is_bool:
        assert {type(s) for s in scalars} == {numerics.carrier(dtype).type}


def test_a_broken_promise_is_a_fault_of_its_lanes_alone():
    a = Param("a", i32)
    e = Select(a < 10, promise(a, 0, 5), Const(-1, i32))
    evaluator = Evaluator({}, Faults(), wide=False)
    value, fault = evaluator.evaluate([e], {"a": np.array([3, 7, 20], np.int32)})[0]
    assert (fault != 0).tolist() == [False, True, False]
    assert value[[0, 2]].tolist() == [3, -1]
    with pytest.raises(BoundsError, match="a promised value is 7"):
        evaluator.faults.check(fault)
    with pytest.raises(BoundsError, match="a promised value is 7"):
        by_closure(e, {"a": np.int32(7)})


def test_a_name_that_is_bound_nowhere_is_a_fault_of_lowering():
    with pytest.raises(InternalError, match="'i' stands for nothing"):
        by_closure(Var("i") + 1, {"a": np.float32(0)})


def test_shared_parts_are_computed_once():
    e: Expr = Param("a", f32)
    for _ in range(60):
        e = e + e
    assert by_closure(e, {"a": np.float32(1)}) == 2.0**60
