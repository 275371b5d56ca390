"""Strict float operations: the same bits on every machine."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.types import CType


def suffix(t: CType) -> str:
    """Of libm's functions and of constants: f for float."""
    return "f" if t.bits == 32 else ""


def libm(function: str, arity: int = 1) -> Make:
    """A call of libm's function of the right width."""

    def make(c: Asking, t: CType) -> Definition:
        names = ("a", "b", "c")[:arity]
        body = f"return {function}{suffix(t)}({', '.join(names)});"
        return Definition(t, tuple((t, name) for name in names), body)

    return make


def _bits(c: Asking, t: CType) -> Definition:
    """The bits of a float."""
    u = t.unsigned
    return Definition(
        u, ((t, "x"),), f"{u.name} bits;\nmemcpy(&bits, &x, sizeof bits);\nreturn bits;"
    )


def _of_bits(c: Asking, t: CType) -> Definition:
    """The float that has these bits."""
    body = f"{t.name} x;\nmemcpy(&x, &bits, sizeof x);\nreturn x;"
    return Definition(t, ((t.unsigned, "bits"),), body)


def _odd(c: Asking, t: CType) -> Definition:
    """A double rounded to odd, so that rounding it once more is harmless (Boldo and Melquiond)."""
    f32, f64 = CType("f32"), CType("f64")
    body = f"""\
const float nearest = (float)x;
if (x != x || nearest == x) return nearest;
uint32_t bits = {c.helper("bits", f32)}(nearest);
if (fabs((double)nearest) > fabs(x)) bits -= 1;
return {c.helper("of_bits", f32)}(bits | 1);"""
    return Definition(f32, ((f64, "x"),), body)


FLOATS: Table = {
    "floor": libm("floor"),
    "ceil": libm("ceil"),
    # To nearest even: the default rounding mode is never changed.
    "rint": libm("rint"),
    "sqrt": libm("sqrt"),
    "fma": libm("fma", 3),
    "bits": _bits,
    "of_bits": _of_bits,
    "odd": _odd,
}
