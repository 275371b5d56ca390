"""Equal nodes are one object, for as long as somebody holds it."""

import copy
import gc
import math
import pickle

import numpy as np
import pytest
from hypothesis import given

from tensorlang.ir import interning
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
)
from tensorlang.ir.types import DTYPES, f8e4m3, f16, f32, i32, index, u8
from tensorlang.testing.exprs import exprs

i, j = Var("i"), Var("j")
x = Param("f32", f32)


def test_equal_nodes_are_one_object():
    assert Binary("add", i, Const(1, index)) is i + 1
    assert Load("A", (i, j + 1), 0, f32) is Load("A", (i, j + 1), 0, f32)
    assert Load(buffer="A", indices=(i,), component=0, dtype=f32) is Load("A", (i,), 0, f32)
    assert Var("i") is Var("i", index) is Var(name="i", dtype=index)


def test_nodes_that_differ_in_one_field_are_two_objects():
    nodes = [
        Var("i"), Var("j"), Var("i", i32), Size("i"), Param("i", index), Const(0, index),
        Load("A", (i,), 0, f32), Load("B", (i,), 0, f32), Load("A", (i,), 1, f32),
        Load("A", (i,), 0, f16), Load("A", (i, i), 0, f32), i + j, j + i, i - j,
        Cast(f32, i), Cast(f16, i), Call("exp", (x,), f32), Call("log", (x,), f32),
        Compare("lt", i, j), Compare("le", i, j), Unary("neg", i), Unary("not", i),
    ]  # fmt: skip
    assert len({id(e) for e in nodes}) == len(nodes)


def test_a_constant_is_told_apart_by_the_bits_that_its_dtype_holds():
    assert Const(1, f32) is Const(1.0, f32) is Const(True, f32)
    assert Const(0.1, f32) is Const(float(np.float32(0.1)), f32)
    assert Const(300, u8) is Const(44, u8)
    assert Const(math.inf, f8e4m3) is Const(448, f8e4m3)
    assert Const(math.nan, f32) is Const(-math.nan, f32)
    different = {Const(0.0, f32), Const(-0.0, f32), *(Const(0, t) for t in DTYPES.values())}
    assert len(different) == 1 + len(DTYPES)


def test_an_expression_that_nobody_holds_is_forgotten():
    before = len(interning._interned)
    e = Var("only_here") + 12345
    assert len(interning._interned) > before
    del e
    gc.collect()
    assert len(interning._interned) <= before


@given(exprs())
def test_pickling_and_copying_give_the_same_object(e: Expr):
    assert pickle.loads(pickle.dumps(e)) is e
    assert copy.deepcopy(e) is e


@given(exprs())
def test_a_node_over_its_own_operands_is_itself(e: Expr):
    assert e.rebuild(e.children) is e


def test_a_node_cannot_be_changed():
    with pytest.raises(AttributeError):
        (i + 1).a = j
