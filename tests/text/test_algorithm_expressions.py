"""Every expression that an algorithm can hold is printed as text that gives it again."""

import pytest
from hypothesis import HealthCheck, assume, given, settings

import tensorlang as tl
from tensorlang import DefinitionError, Pipeline
from tensorlang.ir.expr import Const, Expr, Param, Size, Var
from tensorlang.ir.expr_text import print_expr
from tensorlang.ir.stmt import Buffer, Dim
from tensorlang.ir.types import DTYPES, index
from tensorlang.testing.exprs import Scope, exprs

M, N = Size("M"), Size("N")
DATA = [dtype for dtype in DTYPES.values() if dtype is not index]
SQUARE = (Dim(Const(0, index), M), Dim(Const(0, index), N))
SCOPE = Scope(
    (Var("i"), Var("j"), M, N, *(Param(f"p_{t}", t) for t in DATA)),
    tuple(Buffer(f"A_{t}", (t,), SQUARE) for t in DATA),
)
# What no definition takes, however it is written.
NO_DEFINITION = ("unbounded-index", "index-not-integer", "constant-out-of-range")


def defined_as(e: str, mentioned: Expr) -> Pipeline:
    """f[i, j] = e, with what the expression mentions declared."""
    arrays = [f"{name}: {name[2:]}[M, N]" for name in sorted(mentioned.reads)]
    params = [f"{name}: {name[2:]}" for name in sorted(mentioned.free) if name.startswith("p_")]
    sizes = [f"{n}: size" for n in "MN" if n in mentioned.free and not arrays]
    head = ", ".join(arrays + params + sizes)
    return tl.parse(f"algorithm p({head}) -> f[4, 4] {{ f[i, j] = {e} }}").pipelines["p"]


@settings(suppress_health_check=list(HealthCheck), max_examples=50)
@given(exprs(scope=SCOPE))
def test_any_expression_of_an_algorithm_reads_back(e: Expr) -> None:
    try:
        pipeline = defined_as(print_expr(e, told=True), e)
    except DefinitionError as error:
        assume(error.code not in NO_DEFINITION)
        raise
    read = tl.parse(str(pipeline)).pipelines["p"]
    assert read.algorithm == pipeline.algorithm, str(pipeline)
    assert str(read) == str(pipeline)


@pytest.mark.parametrize(
    "e",
    [
        "A_u8[index(A_f32[0, 0]), 0]",
        "A_u8[index(p_bool), 1]",
        "promise(2:u8, A_u8[0, 0], 2:u8)",
        "promise(2:u8, 1:u8, A_u8[0, 0])",
        "select(p_bool, 0, 1:u8)",
    ],
)
def test_what_a_constant_or_a_cast_is_beside_does_not_change(e: str) -> None:
    text = "algorithm p(A_f32: f32[M, N], A_u8: u8[M, N], p_bool: bool) -> f[4, 4], g[]"
    body = f"{{ f[i, j] = u8({e}) g[] = A_f32[0, 0] + f32(p_bool) + f32(A_u8[0, 0]) }}"
    made = tl.parse(f"{text} {body}").pipelines["p"]
    assert tl.parse(str(made)).pipelines["p"].algorithm == made.algorithm
