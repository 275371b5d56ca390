"""Quotients and remainders that need no correction: of what is never negative, by a constant."""

from tensorlang.backends.c.context import Scope, Unit
from tensorlang.backends.c.values import LOOSE, PRODUCT, Value
from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.ranges import UNKNOWN, Range, range_of
from tensorlang.ir.types import index
from tensorlang.ir.walk import fold


def divided(e: Binary, operands: list[Value], scope: Scope, unit: Unit) -> Value | None:
    """a // b or a % b by C's own operator, or None where that could differ."""
    a, b = operands
    divisor = range_over(e.b, scope)
    if b.type.lanes > 1 or divisor[0] is None or divisor[0] < 1:
        return None
    if a.type.lanes > 1 and not isinstance(e.b, Const):
        return None
    dividend = range_over(e.a, scope)
    if dividend[0] is not None and dividend[0] >= 0:
        sign = "/" if e.op == "floordiv" else "%"
        small = a.type.bits < 32 and a.type.lanes == 1
        text = f"{a.within(PRODUCT)} {sign} {b.within(PRODUCT + 1)}"
        return Value(f"({a.type.name})({text})" if small else text, a.type, PRODUCT)
    if isinstance(e.b, Const):
        power = int(e.b.value)
        if power & (power - 1) == 0:
            # A shift floors.
            text = (
                f"{a.within(PRODUCT)} >> {power.bit_length() - 1}"
                if e.op == "floordiv"
                else f"{a.within(PRODUCT)} & {power - 1}"
            )
            return Value(text, a.type, LOOSE)
        if a.type.lanes > 1:
            function = unit.prelude.helper(f"{e.op}_by_{power}", a.type)
            return Value(f"{function}({a.text})", a.type)
    return None


def range_over(e: Expr, scope: Scope) -> Range:
    """The numeric range of an expression, from what is known of the loops around it."""

    def step(part: Expr, operands: list[Range]) -> Range:
        if isinstance(part, Var) and part.dtype is index and part.name in scope.natural:
            return 0, None
        return range_of(part, operands)

    return fold(e, step) if e.dtype.is_integer else UNKNOWN
