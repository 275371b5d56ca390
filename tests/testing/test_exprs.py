import math

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Promise,
    Select,
    Unary,
)
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.types import DTYPES, DType, f16, f32, i64, index
from tensorlang.ir.walk import postorder
from tensorlang.testing.exprs import SCOPE, constants, exprs

# Found is enough: it need not be the smallest.
_FIND = settings(max_examples=5000, phases=[Phase.generate], database=None)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
def test_an_expression_has_the_dtype_that_was_asked_for(dtype: DType):
    @settings(max_examples=20)
    @given(exprs(dtype))
    def check(e: Expr) -> None:
        assert e.dtype is dtype

    check()


@pytest.mark.parametrize("kind", [Binary, Call, Cast, Compare, Load, Promise, Select, Unary])
def test_every_kind_of_node_is_reached(kind: type[Expr]):
    find(exprs(), lambda e: any(isinstance(part, kind) for part in postorder(e)), settings=_FIND)


@pytest.mark.parametrize("name", ["fma", "pow", "isnan", "random_uniform", "approx.erf", "abs"])
def test_every_rule_of_functions_is_reached(name: str):
    assert name in FUNCTIONS

    def calls(e: Expr) -> bool:
        return any(isinstance(part, Call) and part.function == name for part in postorder(e))

    find(st.one_of(exprs(f32), exprs()), calls, settings=_FIND)


def test_shared_operands_and_second_components_are_reached():
    find(
        exprs(i64), lambda e: isinstance(e, Binary) and e.a is e.b and e.a.children, settings=_FIND
    )
    find(exprs(i64), lambda e: isinstance(e, Load) and e.component == 1, settings=_FIND)


@pytest.mark.parametrize(
    "seen", [math.isnan, math.isinf, lambda v: v == 0 and math.copysign(1, v) < 0]
)
def test_the_odd_floats_are_reached(seen):
    find(constants(f16), lambda e: isinstance(e, Const) and seen(e.value), settings=_FIND)


@given(exprs(index, depth=3))
def test_only_names_and_buffers_of_the_scope_are_mentioned(e: Expr):
    assert e.free | e.reads <= SCOPE.as_mapping().keys()
