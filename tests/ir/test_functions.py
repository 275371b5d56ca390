import pytest

from tensorlang.errors import DefinitionError
from tensorlang.ir import functions
from tensorlang.ir.expr import Binary, Call, Cast, Const, Expr, Param, Promise, Select, Var
from tensorlang.ir.functions import (
    FUNCTIONS,
    approx,
    call,
    clamp,
    exp,
    fma,
    identity,
    isinf,
    isnan,
    maximum,
    minimum,
    pow,
    promise,
    random_uniform,
    select,
    sqrt,
)
from tensorlang.ir.typecheck import type_fault
from tensorlang.ir.types import (
    DTYPES,
    DType,
    bf16,
    bool_,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    index,
    u8,
    u64,
)
from tensorlang.ir.walk import postorder

i = Var("i")
b, x, h, d, n, u = (Param(str(t), t) for t in (bool_, f32, f16, f64, i32, u64))


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_of_every_dtype_is_well_typed(name: str, dtype: DType):
    if name == "random_uniform" and not dtype.is_integer:
        return  # refused: see below
    e = call(name, *[Param("a", dtype)] * FUNCTIONS[name].arity)
    assert [type_fault(part) for part in postorder(e) if type_fault(part)] == []


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("approx.")])
def test_every_function_has_a_python_name(name: str):
    args = [i] * FUNCTIONS[name].arity
    assert getattr(functions, name)(*args) is call(name, *args)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("approx.")])
def test_every_approximation_has_a_python_name(name: str):
    assert getattr(approx, name.removeprefix("approx."))(x) is call(name, x)


@pytest.mark.parametrize(
    ("e", "same"),
    [
        (exp(x), Call("exp", (x,), f32)),
        (exp(h), Call("exp", (h,), f16)),
        (exp(n), Call("exp", (Cast(f32, n),), f32)),
        (exp(i), Call("exp", (Cast(f32, i),), f32)),
        (exp(2), Call("exp", (Const(2.0, f32),), f32)),
        (functions.abs(n), Call("abs", (n,), i32)),
        (functions.abs(i), Call("abs", (i,), index)),
        (functions.abs(b), Call("abs", (Cast(i32, b),), i32)),
        (functions.abs(-3), Call("abs", (Const(-3, i32),), i32)),
        (sqrt(d), Call("sqrt", (d,), f64)),
        (pow(x, 2), Call("pow", (x, Const(2.0, f32)), f32)),
        (pow(2, h), Call("pow", (Const(2.0, f16), h), f16)),
        (pow(x, h), Call("pow", (x, Cast(f32, h)), f32)),
        (fma(h, 0.5, 1), Call("fma", (h, Const(0.5, f16), Const(1.0, f16)), f16)),
        (fma(h, 0.1, x), Call("fma", (Cast(f32, h), Const(0.1, f32), x), f32)),
        (fma(n, i, n), Call("fma", tuple(Cast(f32, Cast(i64, e)) for e in (n, i, n)), f32)),
        (isnan(h), Call("isnan", (h,), bool_)),
        (isnan(n), Const(False, bool_)),
        (isinf(i), Const(False, bool_)),
        (random_uniform(7, i), Call("random_uniform", (Const(7, i64), Cast(i64, i)), f32)),
        (minimum(i, 3), Binary("min", i, Const(3, index))),
        (maximum(0, h), Binary("max", Const(0.0, f16), h)),
        (maximum(b, b), Binary("or", b, b)),
        (minimum(b, True), Binary("and", b, Const(True, bool_))),
        (clamp(i, 0, 9), Binary("min", Binary("max", i, Const(0, index)), Const(9, index))),
        (promise(n, 0, i), Promise(n, Const(0, i32), Cast(i32, i))),
        (select(b, x, 0), Select(b, x, Const(0.0, f32))),
        (select(b, 0, x), Select(b, Const(0.0, f32), x)),
        (select(b, 1, 2), Select(b, Const(1, i32), Const(2, i32))),
        (select(b, h, x), Select(b, Cast(f32, h), x)),
        (select(b, x, i < 2, 1, 2), Select(b, x, Select(i < 2, Const(1, f32), Const(2, f32)))),
        (random_uniform(u, i), Call("random_uniform", (Cast(i64, u), Cast(i64, i)), f32)),
    ],
)  # fmt: skip
def test_a_function_builds(e: Expr, same: Expr):
    assert e is same


@pytest.mark.parametrize(
    ("e", "dtype"),
    [
        (select(b, h, i < 1, 0.5, 1.5), f16),
        (select(b, 0.5, i < 1, h, 1.5), f16),
        (select(b, i, i < 1, 0, 1), index),
        (select(b, Param("y", bf16), i < 1, h, 0.1), f32),
        (fma(h, 0.1, 0.2), f16),
        (pow(0.1, h), f16),
        (fma(n, 0.5, h), f16),
    ],
)
def test_a_scalar_among_the_values_never_widens_them(e: Expr, dtype: DType):
    assert e.dtype is dtype


@pytest.mark.parametrize(
    ("op", "dtype", "value"),
    [
        ("add", f16, 0.0), ("mul", i8, 1), ("max", f32, float("-inf")), ("min", f32, float("inf")),
        ("max", i8, -128), ("min", u8, 255), ("and", bool_, True), ("or", bool_, False),
        ("and", i32, -1), ("or", i32, 0), ("xor", u8, 0), ("and", u8, 255),
    ],
)  # fmt: skip
def test_an_identity_leaves_every_value_unchanged(op: str, dtype: DType, value: object):
    assert identity(op, dtype).value == value
    assert identity(op, dtype).dtype is dtype


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda: select(b, x), "select-arguments"),
        (lambda: select(b, x, b, x), "select-arguments"),
        (lambda: select(x, 1, 2), "condition-not-bool"),
        (lambda: select(1, x, 2), "condition-not-bool"),
        (lambda: select(b, u, i), "no-common-dtype"),
        (lambda: minimum(u, i), "no-common-dtype"),
        (lambda: promise(x, 0, 1), "integers-only"),
        (lambda: exp("a"), "not-an-expression"),
        (lambda: fma(x, x, None), "not-an-expression"),
        (lambda: maximum(Param("a", u8), 256), "constant-out-of-range"),
        (lambda: random_uniform(0, x), "integers-only"),
        (lambda: random_uniform(0.5, i), "integers-only"),
    ],
)
def test_a_wrong_call_is_refused(build, code: str):
    with pytest.raises(DefinitionError) as caught:
        build()
    assert caught.value.code == code
