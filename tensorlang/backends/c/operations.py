"""One node of an expression over operands that are written already, scalar or vector alike."""

from collections.abc import Callable
from typing import Any

from tensorlang.backends.c.context import Scope, Unit
from tensorlang.backends.c.conversions import cast, rounded
from tensorlang.backends.c.division import divided
from tensorlang.backends.c.types import CType, carried
from tensorlang.backends.c.values import (
    ATOM,
    LOOSE,
    PRODUCT,
    SUM,
    UNARY,
    Value,
    as_mask,
    constant,
    widened,
)
from tensorlang.ir.expr import Binary, Call, Cast, Compare, Const, Expr, Promise, Select, Unary
from tensorlang.ir.types import DType

_ARITHMETIC = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
_BITS = {"and": "&", "or": "|", "xor": "^"}
_COMPARISONS = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_HELPERS = {"round": "rint"}
# Their results are exact, and so need no rounding.
_EXACT = ("abs", "floor", "ceil", "round")


class Operations:
    """Writes nodes; operands of different numbers of lanes are brought together."""

    def __init__(self, unit: Unit, scope: Scope) -> None:
        self._unit = unit
        self._prelude = unit.prelude
        self._scope = scope
        self._writers: dict[type[Expr], Callable[[Any, list[Value]], Value]] = {
            Const: self._constant,
            Promise: self._promise,
            Cast: self._cast,
            Unary: self._unary,
            Binary: self._binary,
            Compare: self._compare,
            Select: self._select,
            Call: self._call,
        }

    def value(self, e: Expr, operands: list[Value]) -> Value:
        """The node over its operands."""
        return self._writers[type(e)](e, operands)

    def fused(self, e: Expr, operands: list[Value]) -> Value:
        """a*b + c with one rounding."""
        return self._by_helper("fma", e.dtype, operands)

    def _alike(self, *operands: Value) -> tuple[list[Value], int]:
        lanes = max(v.type.lanes for v in operands)
        return [widened(v, lanes, self._prelude) for v in operands], lanes

    def _by_helper(self, op: str, dtype: DType, operands: list[Value]) -> Value:
        alike, lanes = self._alike(*operands)
        t = carried(dtype, lanes)
        function = self._prelude.helper(op, t)
        return Value(f"{function}({', '.join(v.text for v in alike)})", t)

    def _constant(self, e: Const, operands: list[Value]) -> Value:
        return constant(e, carried(e.dtype))

    def _promise(self, e: Promise, operands: list[Value]) -> Value:
        return operands[0]

    def _cast(self, e: Cast, operands: list[Value]) -> Value:
        return cast(operands[0], e.a.dtype, e.dtype, self._prelude)

    def _unary(self, e: Unary, operands: list[Value]) -> Value:
        (a,) = operands
        if e.dtype.is_bool and a.type.lanes == 1:
            return Value(f"!{a.within(UNARY)}", a.type, UNARY, is_bool=True)
        sign = "-" if e.op == "neg" else "~"
        text = f"{sign}{a.within(ATOM)}"
        return self._wrapped(Value(text, a.type, UNARY, a.is_bool))

    def _binary(self, e: Binary, operands: list[Value]) -> Value:
        if e.op in ("floordiv", "mod"):
            return self._quotient(e, operands)
        if e.op in ("min", "max"):
            return self._by_helper(e.op, e.dtype, operands)
        if e.op in ("shl", "shr"):
            return self._shift(e, operands)
        if e.op in _BITS:
            return self._bits(e, operands)
        (a, b), lanes = self._alike(*operands)
        sign, binds = _ARITHMETIC[e.op]
        tight = binds + (e.op != "add" or e.dtype.is_float)
        value = Value(f"{a.within(binds)} {sign} {b.within(tight)}", carried(e.dtype, lanes), binds)
        return rounded(self._wrapped(value), e.dtype, self._prelude)

    def _wrapped(self, value: Value) -> Value:
        """C computes small integers as int; they wrap when they are converted back."""
        if value.is_bool or value.type.lanes > 1 or value.type.bits >= 32:
            return value
        return Value(f"({value.type.name})({value.text})", value.type, UNARY)

    def _quotient(self, e: Binary, operands: list[Value]) -> Value:
        short = divided(e, operands, self._scope, self._unit)
        return short or self._by_helper(e.op, e.dtype, operands)

    def _shift(self, e: Binary, operands: list[Value]) -> Value:
        (a, b), t = operands, operands[0].type
        if not (isinstance(e.b, Const) and 0 <= int(e.b.value) < t.bits):
            return self._by_helper(e.op, e.dtype, operands)
        if e.op == "shr":
            return Value(f"{a.within(SUM)} >> {b.text}", t, LOOSE)
        # An unsigned shift, since a signed one must not reach the sign.
        self._prelude.type(t.unsigned)
        name = self._prelude.type(t)
        return Value(f"({name})(({t.unsigned.name}){a.within(UNARY)} << {b.text})", t, UNARY)

    def _bits(self, e: Binary, operands: list[Value]) -> Value:
        (a, b), lanes = self._alike(*operands)
        t = carried(e.dtype, lanes)
        if e.dtype.is_bool and lanes > 1:
            t = a.type if a.type.bits >= b.type.bits else b.type
            a, b = (as_mask(v, t.bits, self._prelude) for v in (a, b))
        text = f"{a.within(UNARY)} {_BITS[e.op]} {b.within(UNARY)}"
        return Value(text, t, LOOSE, e.dtype.is_bool)

    def _compare(self, e: Compare, operands: list[Value]) -> Value:
        (a, b), lanes = self._alike(*operands)
        if lanes == 1:
            text = f"{a.within(SUM)} {_COMPARISONS[e.op]} {b.within(SUM)}"
            return Value(text, CType("bool"), LOOSE, is_bool=True)
        if a.is_bool:
            return self._compare_masks(e.op, a, b)
        mask = self._prelude.type(a.type.mask)
        text = f"({mask})({a.within(SUM)} {_COMPARISONS[e.op]} {b.within(SUM)})"
        return Value(text, a.type.mask, UNARY, is_bool=True)

    def _compare_masks(self, op: str, a: Value, b: Value) -> Value:
        bits = max(a.type.bits, b.type.bits)
        a, b = (as_mask(v, bits, self._prelude) for v in (a, b))
        left, right = a.within(UNARY), b.within(UNARY)
        text = {
            "eq": f"~({left} ^ {right})",
            "ne": f"{left} ^ {right}",
            "lt": f"~{a.within(ATOM)} & {right}",
            "le": f"~{a.within(ATOM)} | {right}",
        }[op]
        return Value(text, a.type, LOOSE, is_bool=True)

    def _select(self, e: Select, operands: list[Value]) -> Value:
        condition = operands[0]
        (a, b), lanes = self._alike(*operands[1:])
        if condition.type.lanes > 1 and lanes == 1:
            a, b = (widened(v, condition.type.lanes, self._prelude) for v in (a, b))
        if e.dtype.is_bool and a.type.lanes > 1:
            bits = max(a.type.bits, b.type.bits)
            a, b = (as_mask(v, bits, self._prelude) for v in (a, b))
        if condition.type.lanes == 1:
            text = f"{condition.within(SUM)} ? {a.within(SUM)} : {b.within(SUM)}"
            return Value(text, a.type, LOOSE, e.dtype.is_bool)
        mask = as_mask(condition, a.type.bits, self._prelude)
        function = self._prelude.helper("select", a.type)
        return Value(f"{function}({mask.text}, {a.text}, {b.text})", a.type, ATOM, e.dtype.is_bool)

    def _call(self, e: Call, operands: list[Value]) -> Value:
        dtype = e.args[0].dtype
        if e.function == "random_uniform":
            texts = ", ".join(v.text for v in operands)
            function = self._prelude.helper("random_uniform", CType("f32"))
            return Value(f"{function}({texts})", CType("f32"))
        if e.function in ("isnan", "isinf"):
            return self._test(e.function, dtype, operands[0])
        value = self._by_helper(_HELPERS.get(e.function, e.function), dtype, operands)
        return value if e.function in _EXACT else rounded(value, dtype, self._prelude)

    def _test(self, function: str, dtype: DType, a: Value) -> Value:
        lanes = a.type.lanes
        if function == "isnan":
            text = f"{a.within(SUM)} != {a.within(SUM)}"
        else:
            size = self._by_helper("abs", dtype, [a])
            infinity = widened(Value("INFINITY", size.type.scalar), lanes, self._prelude)
            text = f"{size.text} == {infinity.text}"
        if lanes == 1:
            return Value(text, CType("bool"), LOOSE, is_bool=True)
        mask = self._prelude.type(a.type.mask)
        return Value(f"({mask})({text})", a.type.mask, UNARY, is_bool=True)
