"""Hypothesis strategies for typed expressions: every node, every dtype, shared parts."""

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Load,
    Name,
    Param,
    Promise,
    Select,
    Size,
    Unary,
    Var,
)
from tensorlang.ir.functions import FUNCTIONS
from tensorlang.ir.stmt import Buffer, Dim
from tensorlang.ir.typecheck import call_dtype
from tensorlang.ir.types import DTYPES, DType, bool_, f32, i64, index

_DATA = tuple(dtype for dtype in DTYPES.values() if dtype is not index)
_DTYPES = st.sampled_from(list(DTYPES.values()))
_FLOATS = st.sampled_from([dtype for dtype in _DATA if dtype.is_float])


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What an expression may mention."""

    names: tuple[Name, ...]
    buffers: tuple[Buffer, ...] = ()

    def as_mapping(self) -> Mapping[str, Name | Buffer]:
        """As `text.loop_ir.parse_expr` takes it."""
        return {what.name: what for what in (*self.names, *self.buffers)}


def _square(name: str, *dtypes: DType) -> Buffer:
    return Buffer(name, dtypes, (Dim(Const(0, index), Size("M")), Dim(Const(-1, index), Size("N"))))


# Loop variables, sizes, and of every dtype a Param and a buffer; a scalar and a tuple beside them.
SCOPE = Scope(
    (Var("i"), Var("f.j"), Size("M"), Size("N"), *(Param(f"p_{t}", t) for t in _DATA)),
    (
        *(_square(f"A_{t}", t) for t in _DATA),
        _square("pair", f32, i64),
        Buffer("scalar", (f32,), ()),
    ),
)


@st.composite
def exprs(draw: DrawFn, dtype: DType | None = None, scope: Scope = SCOPE, depth: int = 4) -> Expr:
    """Expressions that `ir.typecheck` accepts, nested at most `depth` deep.

    They mention only what `scope` has; nothing bounds their indices, and a Promise in them may be
    broken.

    Args: dtype: theirs; any, where it is None.
    """
    return _Drawing(draw, scope).expr(dtype or draw(_DTYPES), depth)


def constants(dtype: DType) -> SearchStrategy[Expr]:
    """Literals of a dtype, the odd ones among them: nan, -0.0, infinities, subnormals, extremes."""
    if dtype.is_bool:
        values: SearchStrategy[bool | int | float] = st.booleans()
    elif dtype.is_float:
        edges = [0.0, -0.0, 1.0, float("nan"), float("inf"), -float("inf"), dtype.largest, 5e-324]
        values = st.sampled_from(edges) | st.floats(width=32) | st.floats()
    elif dtype is index:
        values = st.integers(-8, 8) | st.integers()
    else:
        values = st.integers(0, 8) | st.integers(dtype.lowest, dtype.highest)
    return values.map(lambda value: Const(value, dtype))


@dataclass(frozen=True, slots=True)
class _Drawing:
    """Draws one expression; every choice is Hypothesis's, the simplest first."""

    draw: DrawFn
    scope: Scope

    def expr(self, dtype: DType, depth: int) -> Expr:
        choices = [self.constant, self.name]
        if depth:
            choices += [self.binary, self.unary, self.select, self.cast, self.load, self.call]
            choices += [self.compare if dtype.is_bool else self.twice]
            choices += [self.promise] if dtype.is_integer else []
        return self.draw(st.sampled_from(choices))(dtype, depth - 1)

    def constant(self, dtype: DType, _depth: int) -> Expr:
        return self.draw(constants(dtype))

    def name(self, dtype: DType, depth: int) -> Expr:
        names = [name for name in self.scope.names if name.dtype is dtype]
        return self.draw(st.sampled_from(names)) if names else self.constant(dtype, depth)

    def binary(self, dtype: DType, depth: int) -> Expr:
        return Binary(self._binary_op(dtype), self.expr(dtype, depth), self.expr(dtype, depth))

    def twice(self, dtype: DType, depth: int) -> Expr:
        """One operand twice, so that sharing is met."""
        operand = self.expr(dtype, depth)
        return Binary(self._binary_op(dtype), operand, operand)

    def unary(self, dtype: DType, depth: int) -> Expr:
        ops = ["not"] if dtype.is_bool else ["neg"] if dtype.is_float else ["neg", "not"]
        return Unary(self.draw(st.sampled_from(ops)), self.expr(dtype, depth))

    def compare(self, _dtype: DType, depth: int) -> Expr:
        op, of = self.draw(st.sampled_from(["lt", "le", "eq", "ne"])), self.draw(_DTYPES)
        return Compare(op, self.expr(of, depth), self.expr(of, depth))

    def select(self, dtype: DType, depth: int) -> Expr:
        condition = self.expr(bool_, depth)
        return Select(condition, self.expr(dtype, depth), self.expr(dtype, depth))

    def cast(self, dtype: DType, depth: int) -> Expr:
        return Cast(dtype, self.expr(self.draw(_DTYPES), depth))

    def promise(self, dtype: DType, depth: int) -> Expr:
        return Promise(*(self.expr(dtype, depth) for _ in range(3)))

    def load(self, dtype: DType, depth: int) -> Expr:
        held = [
            (buffer, component)
            for buffer in self.scope.buffers
            for component, element in enumerate(buffer.dtypes)
            if element is dtype
        ]
        if not held:
            return self.constant(dtype, depth)
        buffer, component = self.draw(st.sampled_from(held))
        indices = tuple(self.expr(index, depth) for _ in buffer.dims)
        return Load(buffer.name, indices, component, dtype)

    def call(self, dtype: DType, depth: int) -> Expr:
        names = [name for name in FUNCTIONS if _can_give(name, dtype)]
        function = FUNCTIONS[self.draw(st.sampled_from(names))]
        taken = dtype
        if function.rule == "random":
            taken = i64
        elif function.rule == "test":
            taken = self.draw(_FLOATS)
        args = tuple(self.expr(taken, depth) for _ in range(function.arity))
        return Call(function.name, args, call_dtype(function.name, taken))

    def _binary_op(self, dtype: DType) -> str:
        ops = ["add", "sub", "mul", "min", "max"]
        if dtype.is_bool:
            ops = ["and", "or", "xor"]
        elif dtype.is_float:
            ops.append("div")
        else:
            ops += ["floordiv", "mod", "and", "or", "xor", "shl", "shr"]
        return self.draw(st.sampled_from(ops))


def _can_give(function: str, dtype: DType) -> bool:
    match FUNCTIONS[function].rule:
        case "float":
            return dtype.is_float
        case "same":
            return not dtype.is_bool
        case "test":
            return dtype.is_bool
        case "random":
            return dtype is f32
