"""A Hypothesis strategy for loop programs: every statement and every field of it.

They are valid (`ir.verify`) and print and parse; they are not for running, since nothing keeps
their indices inside a buffer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Literal

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from tensorlang.ir.expr import Const, Expr, Name, Param, Size, Var
from tensorlang.ir.stmt import (
    Allocate,
    Assert,
    Buffer,
    Dim,
    For,
    Hints,
    If,
    Let,
    LoopKind,
    Program,
    Stage,
    Stmt,
    Store,
    block,
)
from tensorlang.ir.types import DTYPES, bool_, f32, i64, index
from tensorlang.testing.exprs import SCOPE, Scope, exprs

_DEPTH = 1  # of the expressions in a statement: `exprs` is tested alone
_SIZES = tuple(name for name in SCOPE.names if isinstance(name, Size))
_PARAMS = tuple(name for name in SCOPE.names if isinstance(name, Param))
_SCALARS = Scope((*_SIZES, *_PARAMS))
_TEXTS = st.text(max_size=8)
_HINTS = st.sampled_from([(), (("stages", 3),), (("policy", 'a "b"'), ("warps", -1))])


@st.composite
def programs(draw: DrawFn) -> Program:
    """Programs over the sizes, params and buffers of `exprs.SCOPE`."""
    outputs = (
        Buffer("out", (f32,), (_dim(_SIZES[0]),), hints=draw(_HINTS)),
        Buffer("best", (f32, i64), ()),
    )
    asserts = draw(st.lists(_asserts(), max_size=2))
    place = _Place(draw, Scope((*_SIZES, *_PARAMS), (*SCOPE.buffers, *outputs)), outputs)
    body = block(*asserts, place.suite(3))
    return Program("some", _SIZES, _PARAMS, SCOPE.buffers, outputs, body)


@st.composite
def _asserts(draw: DrawFn) -> Assert:
    error: Literal["ShapeError", "BoundsError"] = draw(
        st.sampled_from(("ShapeError", "BoundsError"))
    )
    values = tuple(draw(st.lists(exprs(index, _SCALARS, 1), max_size=2)))
    condition = draw(exprs(bool_, _SCALARS, _DEPTH))
    code, what, why, fix = draw(_TEXTS), draw(_TEXTS), draw(_TEXTS), draw(_TEXTS)
    return Assert(condition, error, code, what, why, fix, values)


def _dim(extent: Expr) -> Dim:
    return Dim(Const(0, index), extent)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement is drawn: what it may mention, where it may store, and fresh names."""

    draw: DrawFn
    scope: Scope
    stored: tuple[Buffer, ...]
    numbers: "count[int]" = field(default_factory=count)

    def suite(self, depth: int) -> Stmt:
        """One to three statements; nested at most `depth` deep."""
        return block(*(self.statement(depth) for _ in range(self.draw(st.integers(1, 3)))))

    def statement(self, depth: int) -> Stmt:
        compound = (self.loop, self.let, self.condition, self.allocation, self.stage)
        made: Callable[[int], Stmt] = self.draw(st.sampled_from((self.store, *compound)))
        return made(depth) if depth else self.store(depth)

    def store(self, _depth: int) -> Stmt:
        buffer = self.draw(st.sampled_from(self.stored))
        indices = tuple(self.draw(exprs(index, self.scope, 1)) for _ in buffer.dims)
        values = tuple(self.draw(exprs(dtype, self.scope, _DEPTH)) for dtype in buffer.dtypes)
        return Store(buffer.name, indices, values)

    def loop(self, depth: int) -> Stmt:
        kind = self.draw(st.sampled_from([k for k in LoopKind if k is not LoopKind.GPU_BLOCK]))
        low = self.draw(st.just(Const(0, index)) | exprs(index, self.scope, 1))
        # What any kind of loop may have: a vectorized one has an extent that does not vary.
        extent = self.draw(exprs(index, _SCALARS, 1))
        var, hints = Var(self._fresh("loop")), self.draw(_HINTS)
        body = self._with(var).suite(depth - 1)
        return For(var.name, low, extent, kind, body, self.draw(st.booleans()), hints)

    def let(self, depth: int) -> Stmt:
        dtype = self.draw(st.sampled_from(list(DTYPES.values())))
        value = self.draw(exprs(dtype, self.scope, _DEPTH))
        var = Var(self._fresh("let"), dtype)
        return Let(var.name, value, self._with(var).suite(depth - 1))

    def condition(self, depth: int) -> Stmt:
        return If(self.draw(exprs(bool_, self.scope, _DEPTH)), self.suite(depth - 1))

    def stage(self, depth: int) -> Stmt:
        return Stage("out", self.draw(st.integers(0, 3)), self.suite(depth - 1))

    def allocation(self, depth: int) -> Stmt:
        dtypes = tuple(
            self.draw(st.lists(st.sampled_from(list(DTYPES.values())), min_size=1, max_size=2))
        )
        dims = (Dim(self.draw(exprs(index, self.scope, 1)), Const(8, index)), _dim(_SIZES[1]))
        memory, fold = self.draw(st.sampled_from([("auto", ()), ("stack", (0, 4)), ("if", (0, 0))]))
        hints: Hints = self.draw(_HINTS)
        buffer = Buffer(self._fresh("kept"), dtypes, dims, memory, fold, hints)
        return Allocate(buffer, self._with(buffer).suite(depth - 1))

    def _fresh(self, kind: str) -> str:
        return f"{kind}.{'for' if kind == 'let' else 'v'}{next(self.numbers)}"

    def _with(self, what: Name | Buffer) -> "_Place":
        names, buffers, stored = self.scope.names, self.scope.buffers, self.stored
        if isinstance(what, Buffer):
            buffers, stored = (*buffers, what), (*stored, what)
        else:
            names = (*names, what)
        return _Place(self.draw, Scope(names, buffers), stored, self.numbers)
