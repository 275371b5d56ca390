"""Hypothesis strategies for typed expressions: every node, every dtype, shared parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

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


def exprs(dtype: DType | None = None, scope: Scope = SCOPE, depth: int = 4) -> SearchStrategy[Expr]:
    """Expressions that `ir.typecheck` accepts, nested at most `depth` deep.

    They are well typed and mention only what `scope` has; nothing bounds their indices, and a
    Promise in them may be broken.
    """
    if dtype is not None:
        return _exprs(dtype, scope, depth)
    return st.sampled_from(list(DTYPES.values())).flatmap(lambda t: _exprs(t, scope, depth))


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


@cache
def _exprs(dtype: DType, scope: Scope, depth: int) -> SearchStrategy[Expr]:
    leaves = [constants(dtype)]
    names = [name for name in scope.names if name.dtype is dtype]
    if names:
        leaves.append(st.sampled_from(names))
    if depth == 0:
        return st.one_of(leaves)
    # Deferred, for there are thousands of strategies below and an example needs a few.
    inner = st.deferred(lambda: st.one_of(_compound(dtype, scope, depth - 1)))
    return st.one_of(*leaves, inner, inner)


def _compound(dtype: DType, scope: Scope, depth: int) -> list[SearchStrategy[Expr]]:
    """One strategy for each kind of node that can have this dtype."""
    same = _exprs(dtype, scope, depth)
    condition = _exprs(bool_, scope, depth)
    anything = st.sampled_from(list(DTYPES.values())).flatmap(lambda t: _exprs(t, scope, depth))
    binary = st.builds(Binary, st.sampled_from(_binary_ops(dtype)), same, same)
    made: list[SearchStrategy[Expr]] = [
        binary,
        st.builds(Unary, st.sampled_from(_unary_ops(dtype)), same),
        st.builds(Select, condition, same, same),
        st.builds(Cast, st.just(dtype), anything),
        # One part twice, so that sharing is met.
        st.tuples(st.sampled_from(_binary_ops(dtype)), same).map(
            lambda x: Binary(x[0], x[1], x[1])
        ),
    ]
    if dtype.is_bool:
        made.append(_comparisons(scope, depth))
    if dtype.is_integer:
        made.append(st.builds(Promise, same, same, same))
    made += [_calls(name, dtype, scope, depth) for name in FUNCTIONS if _can_give(name, dtype)]
    indices = _exprs(index, scope, depth)
    for buffer in scope.buffers:
        for component, held in enumerate(buffer.dtypes):
            if held is dtype:
                made.append(_loads(buffer, component, indices))
    return made


def _binary_ops(dtype: DType) -> list[str]:
    if dtype.is_bool:
        return ["and", "or", "xor"]
    ops = ["add", "sub", "mul", "min", "max"]
    if dtype.is_float:
        return [*ops, "div"]
    return [*ops, "floordiv", "mod", "and", "or", "xor", "shl", "shr"]


def _unary_ops(dtype: DType) -> list[str]:
    return ["not"] if dtype.is_bool else ["neg"] if dtype.is_float else ["neg", "not"]


def _comparisons(scope: Scope, depth: int) -> SearchStrategy[Expr]:
    ops = st.sampled_from(["lt", "le", "eq", "ne"])
    return st.sampled_from(list(DTYPES.values())).flatmap(
        lambda t: st.builds(Compare, ops, _exprs(t, scope, depth), _exprs(t, scope, depth))
    )


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


def _calls(name: str, dtype: DType, scope: Scope, depth: int) -> SearchStrategy[Expr]:
    function = FUNCTIONS[name]
    if function.rule == "random":
        taken = st.just(i64)
    elif function.rule == "test":
        taken = st.sampled_from([t for t in DTYPES.values() if t.is_float])
    else:
        taken = st.just(dtype)

    def of(t: DType) -> SearchStrategy[Expr]:
        args = st.tuples(*[_exprs(t, scope, depth)] * function.arity)
        return args.map(lambda given: Call(name, given, call_dtype(name, t)))

    return taken.flatmap(of)


def _loads(buffer: Buffer, component: int, indices: SearchStrategy[Expr]) -> SearchStrategy[Expr]:
    held = buffer.dtypes[component]
    given = st.tuples(*[indices] * len(buffer.dims))
    return given.map(lambda chosen: Load(buffer.name, chosen, component, held))
