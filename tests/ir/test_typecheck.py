import pytest
from hypothesis import given

from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Param,
    Promise,
    Select,
    Unary,
    Var,
)
from tensorlang.ir.typecheck import type_fault
from tensorlang.ir.types import bool_, f16, f32, i32, i64, index
from tensorlang.ir.walk import postorder
from tensorlang.testing.exprs import exprs

i = Var("i")
b, x, h, n, wide = (Param(str(t), t) for t in (bool_, f32, f16, i32, i64))


@given(exprs())
def test_what_is_well_typed_has_no_fault(e: Expr):
    assert [type_fault(part) for part in postorder(e)] == [None] * len(list(postorder(e)))


@pytest.mark.parametrize(
    ("e", "fault"),
    [
        (Unary("neg", b), "`neg` of bool"),
        (Unary("not", x), "`not` of f32"),
        (Unary("abs", x), "`abs` of f32"),
        (Binary("add", x, h), "`add` of f32 and f16"),
        (Binary("add", i, wide), "`add` of index and i64"),
        (Binary("add", b, b), "`add` of bool and bool"),
        (Binary("max", b, b), "`max` of bool and bool"),
        (Binary("div", n, n), "`div` of i32 and i32"),
        (Binary("mod", x, x), "`mod` of f32 and f32"),
        (Binary("shl", b, b), "`shl` of bool and bool"),
        (Binary("and", x, x), "`and` of f32 and f32"),
        (Binary("pow", x, x), "`pow` of f32 and f32"),
        (Compare("lt", n, i), "`lt` of i32 and index"),
        (Compare("gt", n, n), "`gt` of i32 and i32"),
        (Select(n, x, x), "select of i32, f32 and f32"),
        (Select(b, x, h), "select of bool, f32 and f16"),
        (Promise(x, x, x), "promise of f32, f32 and f32"),
        (Promise(n, n, i), "promise of i32, i32 and index"),
        (Call("tan", (x,), f32), "`tan` is not a function"),
        (Call("tanh", (x, x), f32), "`tanh` takes 1 arguments, not 2"),
        (Call("tanh", (n,), i32), "`tanh` of i32"),
        (Call("tanh", (h,), f32), "`tanh` of f16"),
        (Call("pow", (x, h), f32), "`pow` of f32, f16"),
        (Call("isnan", (x,), f32), "`isnan` of f32"),
        (Call("isnan", (n,), bool_), "`isnan` of i32"),
        (Call("abs", (b,), bool_), "`abs` of bool"),
        (Call("random_uniform", (n, n), f32), "`random_uniform` of i32, i32"),
        (Load("A", (n,), 0, f32), "`A` indexed by i32, not by index"),
    ],
)
def test_what_is_ill_typed_is_named(e: Expr, fault: str):
    assert type_fault(e) == fault


@pytest.mark.parametrize(
    "e",
    [
        Cast(bool_, x),
        Cast(f32, x),
        Call("abs", (n,), i32),
        Call("random_uniform", (wide, wide), f32),
        Binary("min", i, Const(3, index)),
    ],
)
def test_what_an_algorithm_never_writes_may_be_well_typed(e: Expr):
    assert type_fault(e) is None
