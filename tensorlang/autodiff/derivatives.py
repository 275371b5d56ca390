"""Local derivatives: what an operation hands on to its operands of the adjoint of its value.

    y = op(a, b)      bar_a += bar_y * dy/da,  bar_b += bar_y * dy/db

An adjoint is an f64 for an f64 and an f32 for every other float, so that f16 and bf16 values have
their derivatives computed in f32 and rounded once, where they are stored.  At points where an
operation has no derivative the convention is torch's; each is named where it is taken.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tensorlang.ir.expr import (
    Binary,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Select,
    Unary,
    cast,
)
from tensorlang.ir.types import DType, f32, f64

_Shares: TypeAlias = Iterator["Share"]


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """`operand` gets `value` where all of `guards` hold, else 0; there `value` needs no meaning."""

    operand: Expr
    value: Expr
    guards: tuple[Expr, ...] = ()


def adjoint_dtype(dtype: DType) -> DType:
    """The dtype in which the adjoint of a float is computed."""
    return f64 if dtype is f64 else f32


def shares_of(e: Expr, bar: Expr) -> _Shares:
    """The shares of the float operands of `e`, whose adjoint is `bar`; integers have none."""
    match e:
        case Binary(op="min", a=Binary(op="max", a=x, b=lo), b=hi):
            yield from _clamp(x, lo, hi, bar)
        case Binary(op=op) if op in _BINARY:
            yield from _BINARY[op](e, bar)
        case Unary(op="neg", a=a):
            yield Share(a, -bar)
        case Select(condition=condition, a=a, b=b):
            yield Share(a, bar, (condition,))
            yield Share(b, bar, (Unary("not", condition),))
        case Cast(a=a) if a.dtype.is_float:
            yield Share(a, cast(adjoint_dtype(a.dtype), bar))
        case Call(function=function) if function in _CALLS:
            yield from _CALLS[function](e, bar)
        case _:
            return


def _up(e: Expr) -> Expr:
    """A float in the dtype of its adjoint."""
    return cast(adjoint_dtype(e.dtype), e)


def _add(e: Binary, bar: Expr) -> _Shares:
    yield Share(e.a, bar)
    yield Share(e.b, bar)


def _sub(e: Binary, bar: Expr) -> _Shares:
    yield Share(e.a, bar)
    yield Share(e.b, -bar)


def _times(bar: Expr, factor: Expr) -> Expr:
    """The product; (x * c) * d with constants c and d is one multiplication."""
    if isinstance(factor, Const) and isinstance(bar, Binary) and bar.op == "mul":
        known = bar.b
        if isinstance(known, Const) and known.dtype is factor.dtype:
            return bar.a * Const(float(known.value) * float(factor.value), factor.dtype)
    return bar * factor


def _mul(e: Binary, bar: Expr) -> _Shares:
    yield Share(e.a, _times(bar, _up(e.b)))
    yield Share(e.b, _times(bar, _up(e.a)))


def _div(e: Binary, bar: Expr) -> _Shares:
    yield Share(e.a, bar / _up(e.b))
    yield Share(e.b, -bar * (_up(e) / _up(e.b)))


def _extremum(e: Binary, bar: Expr) -> _Shares:
    """maximum and minimum: half each on a tie, and all to both beside a NaN, as torch.maximum."""
    half = bar * 0.5
    tied = Select(Compare("eq", e.a, e.b), half, bar)
    for mine, other in ((e.a, e.b), (e.b, e.a)):
        loses = Compare("lt", *((mine, other) if e.op == "max" else (other, mine)))
        yield Share(mine, tied, (Unary("not", loses),))


def _clamp(x: Expr, lo: Expr, hi: Expr, bar: Expr) -> _Shares:
    """min(max(x, lo), hi): x keeps its adjoint at the bounds, as torch.clamp; of NaN it is 0."""
    yield Share(x, bar, (Compare("le", lo, x), Compare("le", x, hi)))
    yield Share(lo, bar, (Compare("lt", x, lo), Compare("lt", lo, hi)))
    yield Share(hi, bar, (Compare("lt", hi, x) | Compare("lt", hi, lo),))


_BINARY: dict[str, Callable[[Binary, Expr], _Shares]] = {
    "add": _add, "sub": _sub, "mul": _mul, "div": _div, "min": _extremum, "max": _extremum,
}  # fmt: skip

# The derivative of a function of one argument, from its argument and its value.
_DERIVATIVES: dict[str, Callable[[Expr, Expr], Expr]] = {
    "exp": lambda a, y: y,
    "log2": lambda a, y: 1 / (a * math.log(2)),
    "rsqrt": lambda a, y: -0.5 * (y * y * y),
    "sin": lambda a, y: Call("cos", (a,), a.dtype),
    "cos": lambda a, y: -Call("sin", (a,), a.dtype),
    "tanh": lambda a, y: 1 - y * y,
    "erf": lambda a, y: 2 / math.sqrt(math.pi) * Call("exp", (-(a * a),), a.dtype),
    "sigmoid": lambda a, y: (1 - y) * y,
}
# The cheap forms have the derivative of what they approximate.
for _name in ("tanh", "erf"):
    _DERIVATIVES[f"approx.{_name}"] = _DERIVATIVES[_name]
_DERIVATIVES["approx.rcp"] = lambda a, y: -(y * y)


def _of_one(e: Call, bar: Expr) -> _Shares:
    yield Share(e.args[0], bar * _DERIVATIVES[e.function](_up(e.args[0]), _up(e)))


def _exp2(e: Call, bar: Expr) -> _Shares:
    yield Share(e.args[0], _times(bar * _up(e), Const(math.log(2), bar.dtype)))


def _sqrt(e: Call, bar: Expr) -> _Shares:
    """Infinite at 0, and so NaN for an adjoint of 0, as torch."""
    yield Share(e.args[0], bar / (2 * _up(e)))


def _log(e: Call, bar: Expr) -> _Shares:
    yield Share(e.args[0], bar / _up(e.args[0]))


def _abs(e: Call, bar: Expr) -> _Shares:
    """The sign: 0 at 0, and 0 of NaN, as torch."""
    (a,) = e.args
    zero = Const(0.0, a.dtype)
    below, above = Compare("lt", a, zero), Compare("lt", zero, a)
    yield Share(a, Select(above, bar, -bar), (below | above,))


def _fma(e: Call, bar: Expr) -> _Shares:
    a, b, c = e.args
    yield Share(a, _times(bar, _up(b)))
    yield Share(b, _times(bar, _up(a)))
    yield Share(c, bar)


def _pow(e: Call, bar: Expr) -> _Shares:
    """a**b: 0 for a where b is 0; 0 for b where a is 0 and b >= 0: as torch."""
    a, b = map(_up, e.args)
    zero = Const(0.0, a.dtype)
    power = Call("pow", (a, b - 1), a.dtype)
    yield Share(e.args[0], bar * (b * power), (Compare("ne", b, zero),))
    vanishes = Compare("eq", a, zero) & Compare("le", zero, b)
    yield Share(e.args[1], bar * (_up(e) * Call("log", (a,), a.dtype)), (Unary("not", vanishes),))


# `floor ceil round isnan isinf random_uniform` are constant almost everywhere.
_CALLS: dict[str, Callable[[Call, Expr], _Shares]] = {
    **dict.fromkeys(_DERIVATIVES, _of_one),
    **dict.fromkeys(("exp2", "approx.exp2"), _exp2),
    "abs": _abs, "fma": _fma, "log": _log, "pow": _pow, "sqrt": _sqrt,
}  # fmt: skip
