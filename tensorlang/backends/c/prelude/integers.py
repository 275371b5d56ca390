"""Integer operations that C leaves undefined or defines otherwise.

Floor division and remainder (0 for a divisor of 0), shifts by the width or more, absolute values,
minimum and maximum, and conversions from floats that saturate.
"""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.types import CType


def _pair(t: CType) -> tuple[tuple[CType, str], ...]:
    return ((t, "a"), (t, "b"))


def _floordiv(c: Asking, t: CType) -> Definition:
    if not t.is_signed:
        return Definition(t, _pair(t), "return b == 0 ? 0 : a / b;")
    # a / -1 traps where a is the lowest value; negation wraps.
    body = f"""\
if (b == 0) return 0;
if (b == -1) return ({t.name})-a;
const {t.name} quotient = a / b;
return quotient - ((a % b != 0) & ((a ^ b) < 0));"""
    return Definition(t, _pair(t), body)


def _mod(c: Asking, t: CType) -> Definition:
    if not t.is_signed:
        return Definition(t, _pair(t), "return b == 0 ? 0 : a % b;")
    body = f"""\
if (b == 0 || b == -1) return 0;
const {t.name} rest = a % b;
return rest + (rest != 0 && (rest ^ b) < 0 ? b : 0);"""
    return Definition(t, _pair(t), body)


def _shl(c: Asking, t: CType) -> Definition:
    u = t.unsigned.name
    body = f"return ({u})b < {t.bits} ? ({t.name})(({u})a << ({u})b) : 0;"
    return Definition(t, _pair(t), body)


def _shr(c: Asking, t: CType) -> Definition:
    u = t.unsigned.name
    beyond = f"a >> {t.bits - 1}" if t.is_signed else "0"
    return Definition(t, _pair(t), f"return ({u})b < {t.bits} ? a >> ({u})b : {beyond};")


def _abs(c: Asking, t: CType) -> Definition:
    if t.is_float:
        return Definition(t, ((t, "a"),), f"return fabs{'f' if t.bits == 32 else ''}(a);")
    body = f"return a < 0 ? ({t.name})-a : a;" if t.is_signed else "return a;"
    return Definition(t, ((t, "a"),), body)


def _extreme(sign: str) -> Make:
    """min and max; of floats, NaN if either is NaN: a is left where no comparison holds."""

    def make(c: Asking, t: CType) -> Definition:
        if not t.is_float:
            return Definition(t, _pair(t), f"return a {sign} b ? a : b;")
        body = f"const {t.name} winner = b {sign} a ? b : a;\nreturn b != b ? b : winner;"
        return Definition(t, _pair(t), body)

    return make


def _saturated(integer: CType, source: CType) -> Make:
    """A float truncated and held in the range of an integer type; NaN gives 0."""
    low, high = (-(1 << (integer.bits - 1)), 1 << (integer.bits - 1))
    if not integer.is_signed:
        low, high = 0, 1 << integer.bits
    name = integer.name.upper().removesuffix("_T")
    lowest = f"{name}_MIN" if integer.is_signed else "0"
    # The lowest value less 1 may not be a float; then truncation reaches the lowest exactly.
    exact = low - 1 >= -(1 << (24 if source.bits == 32 else 53))
    bound = f"x > {float(low - 1).hex()}" if exact else f"x >= {float(low).hex()}"
    suffix = "f" if source.bits == 32 else ""

    def make(c: Asking, t: CType) -> Definition:
        body = f"""\
if (x >= {float(high).hex()}{suffix}) return {name}_MAX;
if ({bound}{suffix}) return ({integer.name})x;
return x != x ? 0 : {lowest};"""
        return Definition(integer, ((source, "x"),), body)

    return make


INTEGERS: Table = {
    "floordiv": _floordiv,
    "mod": _mod,
    "shl": _shl,
    "shr": _shr,
    "abs": _abs,
    "min": _extreme("<"),
    "max": _extreme(">"),
    **{
        f"{sign}{bits}_from_f{width}": _saturated(CType(f"{sign}{bits}"), CType(f"f{width}"))
        for sign in "iu"
        for bits in (8, 16, 32, 64)
        for width in (32, 64)
    },
}
