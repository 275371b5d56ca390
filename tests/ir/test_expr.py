import linecache
import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorlang.errors import DefinitionError
from tensorlang.ir import functions, types
from tensorlang.ir.conversion import convert
from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Param,
    Size,
    Unary,
    Var,
    as_expr,
    make_cast,
)
from tensorlang.ir.types import (
    DTYPES,
    DType,
    Scalar,
    bf16,
    bool_,
    f8e4m3,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    index,
    u8,
    u32,
    u64,
)

i, j = Var("i"), Var("j")
b, x, h, d, n, u = (Param(str(t), t) for t in (bool_, f32, f16, f64, i32, u8))


# What every node knows


def test_a_node_knows_its_free_names_and_the_buffers_it_reads():
    e = Load("A", (i + Size("M"), Cast(index, Load("B", (j,), 0, i32))), 0, f32) * x
    assert e.free == {"i", "M", "j", "f32"}
    assert e.reads == {"A", "B"}
    assert Const(1, f32).free == Const(1, f32).reads == frozenset()


def test_deep_and_shared_expressions_are_built_fast():
    start = time.process_time()
    chain: Expr = x
    for _ in range(20_000):
        chain = chain + 1.0
    doubled: Expr = x
    for _ in range(200):
        doubled = doubled + doubled
    assert repr(chain)
    assert repr(doubled)
    del chain, doubled
    assert time.process_time() - start < 5


# Operators


@pytest.mark.parametrize(
    ("e", "same"),
    [
        (i + 1, Binary("add", i, Const(1, index))),
        (1 + i, Binary("add", Const(1, index), i)),
        (2 - i, Binary("sub", Const(2, index), i)),
        (7 // i, Binary("floordiv", Const(7, index), i)),
        (7 % i, Binary("mod", Const(7, index), i)),
        (1 << n, Binary("shl", Const(1, i32), n)),
        (n >> 1, Binary("shr", n, Const(1, i32))),
        (n & 6, Binary("and", n, Const(6, i32))),
        (b | (i < j), Binary("or", b, Compare("lt", i, j))),
        (b ^ True, Binary("xor", b, Const(True, bool_))),
        (~b, Unary("not", b)),
        (~n, Unary("not", n)),
        (-x, Unary("neg", x)),
        (+x, x),
        (-Const(3, i32), Const(-3, i32)),
        (-b, Binary("sub", Const(0, i32), Cast(i32, b))),
        (i < 3, Compare("lt", i, Const(3, index))),
        (i > 3, Compare("lt", Const(3, index), i)),
        (i >= 3, Compare("le", Const(3, index), i)),
        (i <= 3, Compare("le", i, Const(3, index))),
        (x == 0, Compare("eq", x, Const(0.0, f32))),
        (x != 0, Compare("ne", x, Const(0.0, f32))),
        (x / 3, Binary("div", x, Const(3.0, f32))),
        (1 / x, Binary("div", Const(1.0, f32), x)),
        (n / 2, Binary("div", Cast(f32, n), Const(2.0, f32))),
        (i / j, Binary("div", Cast(f32, i), Cast(f32, j))),
        (x**0, Const(1.0, f32)),
        (x**1, x),
        (x**2, x * x),
        (x**3, x * x * x),
        (n**2, n * n),
        (x**5, Call("pow", (x, Const(5.0, f32)), f32)),
        (x**0.5, Call("pow", (x, Const(0.5, f32)), f32)),
        (x**n, Call("pow", (x, Cast(f32, n)), f32)),
        (2**x, Call("pow", (Const(2.0, f32), x), f32)),
        (x + h, Binary("add", x, Cast(f32, h))),
        (h + n, Binary("add", h, Cast(f16, n))),
        (i + n, Binary("add", Cast(i64, i), Cast(i64, n))),
        (u + Param("i8", i8), Binary("add", Cast(types.i16, u), Cast(types.i16, Param("i8", i8)))),
        (x * b, Binary("mul", x, Cast(f32, b))),
    ],
)
def test_an_operator_builds(e: Expr, same: Expr):
    assert e is same


@pytest.mark.parametrize(
    ("e", "dtype"),
    [
        (h + 1, f16), (h + 0.1, f16), (1.5 * Param("y", bf16), bf16), (u + 1, u8), (n + True, i32),
        (n + 1.5, f32), (i + 0.5, f32), (d + 0.1, f64), (b & True, bool_), (b + 1, i64),
        (h + np.float64(0.1), f16), (h + np.float32(0.1), f16), (u + np.int64(3), u8),
        (x + np.array(2.0), f32), (x * np.bool_(True), f32),
    ],
)  # fmt: skip
def test_a_scalar_never_widens_an_array_dtype(e: Expr, dtype: DType):
    assert e.dtype is dtype


@pytest.mark.parametrize(
    ("value", "made"),
    [
        (3, Const(3, i32)),
        (2.5, Const(2.5, f32)),
        (True, Const(True, bool_)),
        (np.int8(3), Const(3, i32)),
        (np.float16(2.5), Const(2.5, f32)),
    ],
)
def test_a_lone_scalar_is_i32_f32_or_bool(value: object, made: Expr):
    assert as_expr(value) is made


def test_names_compare_by_name_and_nothing_else_has_a_truth_value():
    assert Var("i") == Var("i")
    assert Var("i") != Var("j")
    assert bool(Var("i") == Var("j")) is False
    assert Var("j") in [Var("i"), Var("j")]
    assert Var("i") != Size("i")
    with pytest.raises(DefinitionError):
        bool(i == 3)


def test_calling_a_dtype_casts():
    assert f32(h) is Cast(f32, h)
    assert f32(x) is x
    assert f16(0.1) is Const(0.1, f16)
    assert i8(300) is Const(44, i8)
    assert f16(Const(0.1, f32)) is Const(float(np.float16(np.float32(0.1))), f16)
    assert make_cast(index, n) is Cast(index, n)


# Casts of constants


@pytest.mark.parametrize(
    ("value", "dtype", "held"),
    [
        (2.9, i32, 2), (-2.9, i32, -2), (3e9, i32, 2**31 - 1), (-3e9, i32, -(2**31)),
        (math.nan, i32, 0), (math.inf, u8, 255), (-math.inf, u8, 0), (-1.5, u32, 0),
        (1e30, u64, 2**64 - 1), (1e30, index, 2**63 - 1), (300, u8, 44), (-1, u64, 2**64 - 1),
        (200, i8, -56), (2**40, i32, 0), (2**80, index, 2**80), (0.5, bool_, True),
        (math.nan, bool_, True), (0, bool_, False), (True, f16, 1.0), (1e6, f16, math.inf),
        (1e6, f8e4m3, 448.0), (2**24 + 1, f32, 2.0**24), (2**24 + 3, f32, 2.0**24 + 4),
    ],
)  # fmt: skip
def test_a_constant_is_cast_as_the_definition_says(value: Scalar, dtype: DType, held: Scalar):
    assert convert(value, dtype) == held
    assert type(convert(value, dtype)) is type(held)


@given(st.integers(-(2**63), 2**63 - 1))
def test_an_integer_becomes_a_float_in_one_rounding(value: int):
    assert convert(value, f32) == np.int64(value).astype(np.float32)
    assert convert(value, f64) == np.int64(value).astype(np.float64)


def test_an_integer_between_two_floats_is_not_rounded_twice():
    # By way of f64 it would be a tie, and go to the even side below.
    assert convert(2**60 + 2**36 + 1, f32) == 2.0**60 + 2.0**37
    assert convert(-(2**60 + 2**36 + 1), f32) == -(2.0**60 + 2.0**37)
    assert convert(2**60 + 2**36, f32) == 2.0**60


@given(st.integers(), st.sampled_from([t for t in DTYPES.values() if t.is_integer]))
def test_an_integer_wraps_into_its_range(value: int, dtype: DType):
    held = convert(value, dtype)
    if dtype is index:
        assert held == value
    else:
        assert dtype.lowest <= held <= dtype.highest
        assert (held - value) % 2**dtype.bits == 0


# Errors: the whole message, in the file of a user


PREAMBLE = "i, x, b, u = Var('i'), Param('x', f32), Param('b', bool_), Param('u', u64)\n"


def message_of(line: str) -> str:
    source = PREAMBLE + line
    linecache.cache["user.py"] = (len(source), None, source.splitlines(keepends=True), "user.py")
    names = {**vars(functions), **vars(types), "Var": Var, "Param": Param}
    with pytest.raises(DefinitionError) as caught:
        exec(compile(source, "user.py", "exec"), names)
    return str(caught.value)


@pytest.mark.parametrize(
    ("line", "marked", "message"),
    [
        (
            "y = 2 * (b + b)",
            "b + b",
            """\
DefinitionError[bool-arithmetic]: `+` is not defined on two bools
  why:  a bool is a truth value, not a number
  fix:  use & | ^ ~ for logic, or cast to an integer first, as in i32(e)""",
        ),
        (
            "y = 2 * (x % 2)",
            "x % 2",
            """\
DefinitionError[integers-only]: `%` is not defined on f32
  why:  it is an operation on integers
  fix:  use floor(a / b) and a - floor(a / b) * b""",
        ),
        (
            "y = b & x",
            "b & x",
            """\
DefinitionError[integers-only]: `&` is not defined on f32
  why:  it is an operation on integers and bools
  fix:  cast to an integer first, as in i32(e), or compare to get a bool""",
        ),
        (
            "y = ~x",
            "~x",
            """\
DefinitionError[integers-only]: `~` is not defined on f32
  why:  it is an operation on bools and integers
  fix:  compare to get a bool, as in ~(e > 0)""",
        ),
        (
            "y = 1 + i8(i) * 300",
            "i8(i) * 300",
            """\
DefinitionError[constant-out-of-range]: the constant 300 does not fit i8
  why:  a Python scalar takes the dtype of the expression beside it, and i8 holds -128 to 127
  fix:  cast the expression to a wider dtype first, as in i64(e)""",
        ),
        (
            "y = u + i",
            "u + i",
            """\
DefinitionError[no-common-dtype]: `+` of u64 and index has no dtype
  why:  no integer dtype holds the values of both
  fix:  cast one of them, as in i64(e) or u64(e)""",
        ),
        (
            "y = i ** 7",
            "i ** 7",
            """\
DefinitionError[integer-power]: `**` of index needs an exponent that is a Python int from 0 to 4
  why:  an integer power wraps, and a negative exponent has no integer value
  fix:  multiply, or cast to a float first, as in f32(e) ** n""",
        ),
        (
            "y = x + 'a'",
            "x + 'a'",
            """\
DefinitionError[not-an-expression]: a value of type str cannot stand in an expression
  why:  expressions are built from Vars, Sizes, Params, indexed Funcs and Inputs, and numbers
  fix:  index a Func or an Input as f[i, j]; give arrays as Inputs, and numbers as Params""",
        ),
        (
            "y = 1 if x < 1 else 2",
            "x < 1",
            """\
DefinitionError[no-truth-value]: an expression has no truth value while the algorithm is written
  why:  it stands for a value at every point, so `if`, `and`, `or`, `not` cannot test it
  fix:  use select(condition, a, b), and & | ~ between conditions""",
        ),
        (
            "y, z = i",
            "y, z",
            """\
DefinitionError[not-iterable]: an expression cannot be iterated over or unpacked
  why:  it stands for one scalar at each point
  fix:  index a Func or an RDom with [...], and unpack only a tuple-valued Func""",
        ),
        (
            "y = [Var('a b')]",
            "Var('a b')",
            """\
DefinitionError[bad-name]: 'a b' cannot name a Var
  why:  names become identifiers of the generated code
  fix:  use letters, digits and underscores: Var("x")""",
        ),
    ],
)
def test_a_wrong_operator_fails_where_it_stands(line: str, marked: str, message: str):
    what, where, shown, carets, *rest = message_of(line).splitlines()
    start = line.index(marked)
    assert where == f"  --> user.py:2:{start + 1}"
    assert shown == f"      {line}"
    assert carets == "      " + " " * start + "^" * len(marked)
    assert "\n".join([what, *rest]) == message
