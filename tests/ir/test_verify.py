from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from tensorlang.errors import InternalError
from tensorlang.ir.expr import Cast, Const, Expr, Load, Param, Size, Var
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Block,
    Buffer,
    Dim,
    For,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    block,
)
from tensorlang.ir.types import f16, f32, i32, i64, index
from tensorlang.ir.verify import fault_of, verify
from tensorlang.testing.programs import programs

ZERO = Const(0, index)
M, N = Size("M"), Size("N")
i, j = Var("f.i"), Var("f.j")
alpha = Param("alpha", f32)
A = Buffer("A", (f32,), (Dim(ZERO, M),))
pair = Buffer("pair", (f32, i64), (Dim(ZERO, M),))
out = Buffer("out", (f32,), (Dim(ZERO, M), Dim(ZERO, N)))
temp = Buffer("temp", (f32,), (Dim(ZERO, M),))


def program(body: Stmt) -> Program:
    return Program("p", (M, N), (alpha,), (A, pair), (out,), body)


def loop(body: Stmt, var: str = "f.i", kind: LoopKind = LoopKind.SERIAL, extent: Expr = M) -> For:
    return For(var, ZERO, extent, kind, body)


def store(value: Expr = alpha) -> Store:
    return Store("out", (i, j), (value,))


def nest(value: Expr = alpha) -> Stmt:
    return loop(loop(store(value), "f.j", extent=N))


def load(buffer: str, *indices: Expr, component: int = 0) -> Load:
    return Load(buffer, indices, component, f32)


@settings(suppress_health_check=list(HealthCheck), max_examples=50)
@given(programs())
def test_valid_programs_pass(made: Program):
    verify(made)


@pytest.mark.parametrize(
    "body",
    [
        nest(),
        nest(load("A", i) + load("pair", i)),
        loop(Let("f.j", i + 1, store())),
        Block((nest(), nest())),
        Allocate(temp, block(loop(Store("temp", (i,), (alpha,))), nest(load("temp", i)))),
        loop(loop(store(), "f.j", LoopKind.VECTORIZED, M + N), kind=LoopKind.GPU_BLOCK),
        Stage("out", 0, loop(loop(nest(), "a", LoopKind.GPU_BLOCK), "b", LoopKind.GPU_BLOCK)),
        Let("e", M + 1, loop(loop(store(), "f.j", LoopKind.VECTORIZED, Var("e")))),
        Block((Assert(M < N, "ShapeError", "c", "w", "y", "f", (M,)), nest())),
    ],
)
def test_what_is_valid_passes(body: Stmt):
    verify(program(body))


t = Var("t")
check = Assert(M < N, "ShapeError", "c", "w", "y", "f")
gpu = LoopKind.GPU_BLOCK
lanes = LoopKind.VECTORIZED


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (store(), "the Var `f.i` of dtype index is not in scope"),
        (nest(Size("K") + alpha), "the Size `K` of dtype index is not in scope"),
        (
            nest(Param("alpha", i32)),
            "the Param `alpha` of dtype i32 stands where the Param `alpha`",
        ),
        (nest(Var("M", f32)), "the Var `M` of dtype f32 stands where the Size `M` of dtype index"),
        (block(Let("t", alpha, nest()), nest(Var("t", f32))), "`t` of dtype f32 is not in scope"),
        (loop(nest()), "`f.i` is bound twice, in `for f.i in [0, M)`"),
        (loop(Let("f.i", M, store())), "`f.i` is bound twice, in `let f.i = M`"),
        (Allocate(A, nest()), "`A` is bound twice"),
        (Let("A", M, nest()), "`A` is bound twice"),
        (nest(load("B", i)), "`B` is not a buffer in scope"),
        (nest(load("M", i)), "`M` is not a buffer in scope"),
        (block(Allocate(temp, nest()), nest(load("temp", i))), "`temp` is not a buffer in scope"),
        (nest(load("A", i, j)), "`A` has 1 dimensions and here 2 indices"),
        (nest(load("pair", i, component=2)), "`pair` has no component 2"),
        (nest(load("pair", i, component=1)), "component 1 of `pair` is i64, loaded as f32"),
        (nest(load("A", Const(0, i32))), "`A` indexed by i32, not by index"),
        (nest(Cast(f16, alpha)), "`out` holds f32, and is given f16"),
        (loop(loop(Store("out", (i, j), (alpha, alpha)), "f.j")), "is given f32, f32"),
        (loop(Store("out", (i,), (alpha,))), "`out` has 2 dimensions and here 1 indices"),
        (loop(Store("A", (i,), (alpha,))), "a store to the input `A`"),
        (loop(Store("B", (i,), (alpha,))), "`B` is not a buffer in scope"),
        (If(M, nest()), "a condition is index, not bool: M, in `if M`"),
        (loop(nest(), "f.k", extent=Const(3, i32)), "a bound or an index is i32, not index: 3:i32"),
        (block(nest(), check), "an Assert does not stand first in the program, in `assert M < N`"),
        (loop(check), "an Assert does not stand first"),
        (Assert(t < 3, "ShapeError", "c", "w", "y", "f"), "the Var `t` of dtype index is not in"),
        (Assert(M, "ShapeError", "c", "w", "y", "f"), "a condition is index, not bool"),
        (
            Assert(load("A", M) < 1, "ShapeError", "c", "w", "y", "f"),
            "`A` is not a buffer in scope",
        ),
        (
            Stage("out", 0, loop(Stage("temp", 0, loop(nest(), "a", kind=gpu)), "b", kind=gpu)),
            "a gpu_block loop stands inside a block of another stage",
        ),
        (loop(loop(store(), "f.j", lanes, i)), "the extent of a vectorized loop varies with `f.i`"),
        (
            loop(Let("n", i * 2, loop(store(), "f.j", lanes, Var("n")))),
            "the extent of a vectorized loop varies with `n`",
        ),
        (
            loop(loop(store(), "f.j", lanes, Cast(index, load("A", ZERO)))),
            "the extent of a vectorized loop is read from memory",
        ),
        (
            Let("n", Cast(index, load("A", ZERO)), loop(nest(), "g", lanes, Var("n"))),
            "the extent of a vectorized loop varies with `n`",
        ),
        (Allocate(replace(temp, dtypes=()), nest()), "`temp` has no component"),
        (Allocate(replace(temp, fold=(0, 2)), nest()), "`temp` has 1 dimensions and 2 folds"),
        (Allocate(replace(temp, fold=(-1,)), nest()), "`temp` has a negative fold"),
        (
            Allocate(replace(temp, dims=(Dim(i, M),)), nest()),
            "`f.i` of dtype index is not in scope",
        ),
        (Allocate(replace(temp, dims=(Dim(ZERO, alpha),)), nest()), "is f32, not index: alpha"),
    ],
)
def test_what_is_not_valid_is_told_with_its_place(body: Stmt, fault: str):
    with pytest.raises(InternalError, match=r"^the loop IR of p is not valid: ") as caught:
        verify(program(body))
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("made", "fault"),
    [
        (
            Program("p", (M, M), (), (), (out,), Block(())),
            "`M` is bound twice, in `M` of the header",
        ),
        (
            Program("p", (M,), (), (), (out,), Block(())),
            "the Size `N` of dtype index is not in scope",
        ),
        (Program("p", (M, N), (), (out,), (out,), Block(())), "`out` is bound twice"),
    ],
)
def test_the_header_is_checked(made: Program, fault: str):
    assert fault in str(fault_of(made))


def test_a_deep_expression_is_checked_without_recursion():
    e: Expr = alpha
    for _ in range(20_000):
        e = e + alpha
    verify(program(nest(e)))


def test_doublings_are_checked_once_each():
    e: Expr = alpha
    for _ in range(200):
        e = e * e
    verify(program(nest(e)))
