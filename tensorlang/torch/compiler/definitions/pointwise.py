"""Operators of one element each: arithmetic, functions, comparisons, casts, choices.

out[i] = dtype(op(wide(a[i]), wide(b[i])))

Each rounds its result to the dtype of its tensor, as torch does when it runs them one by one.
"""

import math
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from tensorlang import arrays
from tensorlang.ir.expr import Expr, cast
from tensorlang.ir.functions import (
    abs,
    ceil,
    clamp,
    cos,
    erf,
    exp,
    exp2,
    floor,
    isinf,
    isnan,
    log,
    log2,
    maximum,
    minimum,
    pow,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    sqrt,
    tanh,
)
from tensorlang.ir.types import DType, bool_
from tensorlang.torch.compiler.building import Builder, Operand, Rule, constant, wide
from tensorlang.torch.compiler.nodes import Node, aten, dtype_of, fx, meta_of, prims, tensor_of
from tensorlang.torch.compiler.values import Index, NoDefinitionError, Value
from tensorlang.torch.libraries import torch

_operator: Any = operator
RULES: dict[Any, Rule] = {}


def _result(node: Node) -> DType:
    dtype = dtype_of(node)
    if dtype is None or (dtype.is_float and dtype.bits == 8):
        raise NoDefinitionError(f"tensors of {tensor_of(node).dtype} are not computed with here")
    return dtype


def _common(*operands: Operand) -> DType:
    """The dtype in which torch brings operands together."""
    known = [meta_of(a) if isinstance(a, fx.Node) else a for a in operands]
    common = known[0].dtype if isinstance(known[0], torch.Tensor) else None
    for a, b in pairwise(known):
        common = torch.result_type(a, b)
    dtype = None if common is None else arrays.dtype_of_torch(common)
    if dtype is None:
        raise NoDefinitionError(f"tensors of {common} have no dtype here")
    return dtype


def elementwise(
    b: Builder,
    node: Node,
    op: Callable[..., Any],
    *operands: Operand,
    computed: DType | None = None,
) -> Value:
    """out[i] = dtype(op(*operands[i])), each converted to `computed` first."""
    result = _result(node)
    dtype = computed or wide(result)
    values = [b.value(a, dtype) for a in operands]

    def body(i: Index) -> Expr:
        return cast(result, op(*(cast(dtype, v.broadcast(i)) for v in values)))

    return b.define(node, body)


# ------------------------------------------------------------------------------------ functions


def _trunc(x: Expr) -> Expr:
    return select(x < 0, ceil(x), floor(x))


def _sign(x: Expr) -> Expr:
    zero = constant(x.dtype, 0)
    positive, negative = cast(x.dtype, x > zero), cast(x.dtype, x < zero)
    made = positive - negative
    return select(isnan(x), x, made) if x.dtype.is_float else made


def _log1p(x: Expr) -> Expr:
    """log(1 + x), exact for small x: the error of 1 + x is divided out (Kahan)."""
    u = 1 + x
    return select(u == 1, x, isinf(u), u, log(u) * (x / (u - 1)))


def _expm1(x: Expr) -> Expr:
    """exp(x) - 1, exact for small x (Kahan)."""
    u = exp(x)
    return select(u == 1, x, (u == 0) | isinf(u), u - 1, (u - 1) * (x / log(u)))


def _reciprocal(x: Expr) -> Expr:
    return 1 / x


def _relu(x: Expr) -> Expr:
    return maximum(x, constant(x.dtype, 0))


_FLOATS: dict[Any, Callable[[Any], Any]] = {
    aten.exp.default: exp,
    aten.exp2.default: exp2,
    aten.log.default: log,
    aten.log2.default: log2,
    aten.log10.default: lambda x: log(x) * (1 / math.log(10)),
    aten.log1p.default: _log1p,
    aten.expm1.default: _expm1,
    aten.sqrt.default: sqrt,
    aten.rsqrt.default: rsqrt,
    aten.reciprocal.default: _reciprocal,
    aten.sin.default: sin,
    aten.cos.default: cos,
    aten.tanh.default: tanh,
    aten.erf.default: erf,
    aten.sigmoid.default: sigmoid,
}
# Of integers they are what they are given.
_ROUNDINGS: dict[Any, Callable[[Any], Any]] = {
    aten.floor.default: floor,
    aten.ceil.default: ceil,
    aten.round.default: round,
    aten.trunc.default: _trunc,
}
_SAME: dict[Any, Callable[[Any], Any]] = {
    aten.abs.default: abs,
    aten.neg.default: lambda x: -x,
    aten.sign.default: _sign,
    aten.relu.default: _relu,
}


def _unary(op: Callable[[Any], Any]) -> Rule:
    def rule(b: Builder, node: Node, x: Operand) -> Value:
        return elementwise(b, node, op, x)

    return rule


def _rounding(op: Callable[[Any], Any]) -> Rule:
    def rule(b: Builder, node: Node, x: Operand) -> Value:
        return elementwise(b, node, op if _result(node).is_float else _itself, x)

    return rule


def _itself(x: Expr) -> Expr:
    return x


RULES.update((target, _unary(op)) for target, op in (_FLOATS | _SAME).items())
RULES.update((target, _rounding(op)) for target, op in _ROUNDINGS.items())


# ----------------------------------------------------------------------------------- arithmetic


def _add(b: Builder, node: Node, x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    if _result(node).is_bool:
        return elementwise(b, node, _operator.or_, x, y)
    return elementwise(b, node, _scaled(b, node, _operator.add, alpha), x, y)


def _scaled(b: Builder, node: Node, op: Callable[[Any, Any], Any], alpha: Operand) -> Any:
    """op(p, alpha * q)"""
    if alpha == 1:
        return op
    scale = constant(wide(_result(node)), b.number(alpha))

    def scaled(p: Expr, q: Expr) -> Expr:
        return op(p, scale * q)

    return scaled


def _sub(b: Builder, node: Node, x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    return elementwise(b, node, _scaled(b, node, _operator.sub, alpha), x, y)


def _rsub(b: Builder, node: Node, x: Operand, y: Operand, alpha: Operand = 1) -> Value:
    return _sub(b, node, y, x, alpha)


def _mul(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    if _result(node).is_bool:
        return elementwise(b, node, _operator.and_, x, y)
    return elementwise(b, node, _operator.mul, x, y)


def _div(b: Builder, node: Node, x: Operand, y: Operand, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return elementwise(b, node, _operator.truediv, x, y)
    if _result(node).is_float:
        raise NoDefinitionError(f"division of floats rounded by {rounding_mode!r} is torch's own")
    if rounding_mode == "floor":
        return elementwise(b, node, _operator.floordiv, x, y)
    return elementwise(b, node, _truncated, x, y)


def _truncated(p: Expr, q: Expr) -> Expr:
    """p / q towards zero, of integers."""
    if not p.dtype.is_signed:
        return p // q
    made = p // q
    return select((made < 0) & (made * q != p), made + 1, made)


def _floor_divide(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    return _div(b, node, x, y, "floor")


def _remainder(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    if _result(node).is_float:
        raise NoDefinitionError("the remainder of floats is torch's own")
    return elementwise(b, node, _operator.mod, x, y)


def _pow(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    if not _result(node).is_float:
        if isinstance(y, int) and 0 <= y <= 4:
            return elementwise(b, node, _power(y), x)
        raise NoDefinitionError("powers of integers are torch's own")
    if isinstance(y, (int, float)):
        if y == 0.5:
            return elementwise(b, node, sqrt, x)
        if y == -0.5:
            return elementwise(b, node, rsqrt, x)
        if y in (-1, -2, 0, 1, 2, 3, 4):
            return elementwise(b, node, _power(int(y)), x)
    return elementwise(b, node, pow, x, y)


def _power(n: int) -> Callable[[Expr], Expr]:
    """The n-th power as a product."""

    def power(p: Expr) -> Expr:
        made = constant(p.dtype, 1) if n == 0 else p
        for _ in range(1, n if n > 0 else -n):
            made = made * p
        return made if n >= 0 else 1 / made

    return power


def _maximum(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    return elementwise(b, node, maximum, x, y)


def _minimum(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
    return elementwise(b, node, minimum, x, y)


def _clamp(b: Builder, node: Node, x: Operand, min: Operand = None, max: Operand = None) -> Value:
    if min is not None and max is not None:
        return elementwise(b, node, clamp, x, min, max)
    if min is not None:
        return elementwise(b, node, maximum, x, min)
    return elementwise(b, node, minimum, x, max)


_ARITHMETIC: dict[Any, Rule] = {
    aten.add.Tensor: _add,
    aten.add.Scalar: _add,
    aten.sub.Tensor: _sub,
    aten.sub.Scalar: _sub,
    aten.rsub.Tensor: _rsub,
    aten.rsub.Scalar: _rsub,
    aten.mul.Tensor: _mul,
    aten.mul.Scalar: _mul,
    aten.div.Tensor: _div,
    aten.div.Scalar: _div,
    aten.div.Tensor_mode: _div,
    aten.div.Scalar_mode: _div,
    aten.floor_divide.default: _floor_divide,
    aten.remainder.Tensor: _remainder,
    aten.remainder.Scalar: _remainder,
    aten.pow.Tensor_Tensor: _pow,
    aten.pow.Tensor_Scalar: _pow,
    aten.pow.Scalar: _pow,
    aten.maximum.default: _maximum,
    aten.minimum.default: _minimum,
    aten.clamp.default: _clamp,
    aten.clamp.Tensor: _clamp,
    aten.clamp_min.default: _maximum,
    aten.clamp_max.default: _minimum,
}
RULES.update(_ARITHMETIC)

# ------------------------------------------------------------------------ comparisons and logic

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": _operator.eq,
    "ne": _operator.ne,
    "lt": _operator.lt,
    "le": _operator.le,
    "gt": _operator.gt,
    "ge": _operator.ge,
}
_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "and": _operator.and_,
    "or": _operator.or_,
    "xor": _operator.xor,
}


def _comparison(op: Callable[[Any, Any], Any]) -> Rule:
    def rule(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
        return elementwise(b, node, op, x, y, computed=_common(x, y))

    return rule


def _truth(x: Expr) -> Expr:
    return x if x.dtype.is_bool else x != constant(x.dtype, 0)


def _logical(op: Callable[..., Any]) -> Rule:
    def rule(b: Builder, node: Node, *operands: Operand) -> Value:
        values = [b.value(a) for a in operands]
        return b.define(node, lambda i: op(*(_truth(v.broadcast(i)) for v in values)))

    return rule


def _bitwise(op: Callable[[Any, Any], Any]) -> Rule:
    def rule(b: Builder, node: Node, x: Operand, y: Operand) -> Value:
        return elementwise(b, node, op, x, y)

    return rule


def _invert(b: Builder, node: Node, x: Operand) -> Value:
    return elementwise(b, node, _operator.invert, x)


def _class_of(op: Callable[[Any], Any]) -> Rule:
    """isnan, isinf: false of everything that is no float."""

    def rule(b: Builder, node: Node, x: Operand) -> Value:
        v = b.value(x)
        if not v.dtype.is_float:
            return b.define(node, lambda _: constant(bool_, False))
        return b.define(node, lambda i: op(v.broadcast(i)))

    return rule


for _name, _op in _COMPARISONS.items():
    RULES[getattr(aten, _name).Tensor] = RULES[getattr(aten, _name).Scalar] = _comparison(_op)
for _name, _op in _LOGIC.items():
    RULES[getattr(aten, f"logical_{_name}").default] = _logical(_op)
    RULES[getattr(aten, f"bitwise_{_name}").Tensor] = _bitwise(_op)
    RULES[getattr(aten, f"bitwise_{_name}").Scalar] = _bitwise(_op)
RULES[aten.logical_not.default] = _logical(_operator.invert)
RULES[aten.bitwise_not.default] = _invert
RULES[aten.isnan.default] = _class_of(isnan)
RULES[aten.isinf.default] = _class_of(isinf)


def _where(b: Builder, node: Node, condition: Operand, x: Operand, y: Operand) -> Value:
    result = _result(node)
    c, p, q = b.value(condition), b.value(x, result), b.value(y, result)

    def body(i: Index) -> Expr:
        return select(
            _truth(c.broadcast(i)), cast(result, p.broadcast(i)), cast(result, q.broadcast(i))
        )

    return b.define(node, body)


# ----------------------------------------------------------------------------- casts and copies


def _convert(b: Builder, node: Node, x: Operand, *_: Any, **__: Any) -> Value:
    result, v = _result(node), b.value(x)

    def body(i: Index) -> Expr:
        element = v.broadcast(i)
        if result.is_bool:
            return _truth(element)
        return cast(result, element)

    return b.define(node, body)


def _copied(b: Builder, node: Node, _: Operand, source: Operand, *__: Any) -> Value:
    """The elements of `source` in the shape and the dtype of what they are copied to."""
    return _convert(b, node, source)


_CHOICES: dict[Any, Rule] = {
    aten.where.self: _where,
    aten.where.ScalarOther: _where,
    aten.where.ScalarSelf: _where,
    aten.where.Scalar: _where,
    aten._to_copy.default: _convert,
    aten.clone.default: _convert,
    aten.copy.default: _copied,
    aten.lift_fresh_copy.default: _convert,
    prims.convert_element_type.default: _convert,
}
RULES.update(_CHOICES)
