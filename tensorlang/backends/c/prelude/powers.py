"""pow of vectors of f32, within 1 ulp, through a logarithm and an exponential in f64.

The error of a logarithm grows with the exponent that it is multiplied by; f64 has room for that.
"""

import math

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.prelude.vector_functions import Writer, taken_apart
from tensorlang.backends.c.types import CType

# 1/3, 1/5 ...: log((1 + s)/(1 - s)) = 2*s*(1 + s^2/3 + s^4/5 + ...), |s| < 0.172
_ATANH = tuple(f"1.0 / {2 * k + 1}" for k in range(1, 8))
# log(2)^k / k!, |x| <= 1/2
_TWO_TO_THE = tuple((math.log(2) ** k / math.factorial(k)).hex() for k in range(9))


def _pow_in_f64(c: Asking, t: CType, w: Writer) -> str:
    """result = 2^(y*log2(size)), to a relative error that a f32 does not show."""
    wide = Writer(c, CType("f64", t.lanes))
    return f"""\
{taken_apart(w, "size")}
const {wide.f} d = __builtin_convertvector(f, {wide.f}), s = d / (d + 2.0), z = s * s;
{wide.polynomial("p", "z", _ATANH)}
const {wide.f} log2 = (s + s * z * p) * {2 / math.log(2)!r};
const {wide.f} whole_log2 = log2 + __builtin_convertvector(count, {wide.f});
{wide.f} at = whole_log2 * __builtin_convertvector(y, {wide.f});
{wide.clamped("at", "-160.0", "130.0")}
const {wide.f} moved = at + 0x1.8p52, r = at - (moved - 0x1.8p52);
{wide.polynomial("q", "r", _TWO_TO_THE)}
// The whole part is in the lowest bits, and goes to the exponent.
q = ({wide.f})(({wide.i})q + (({wide.i})moved << 52));
{w.f} result = __builtin_convertvector(q, {w.f});"""


def _pow(c: Asking, t: CType) -> Definition:
    """The power of the size in f64; then what zeros, infinities, signs and NaN make of it."""
    operands = ((t, "x"), (t, "y"))
    if t.element != "f32":
        body = f"""\
{t.tag} result;
for (int l = 0; l < {t.lanes}; ++l) result[l] = {c.helper("pow", t.scalar)}(x[l], y[l]);
return result;"""
        return Definition(t, operands, body)
    w = Writer(c, t)
    body = f"""\
const {w.f} size = {w.abs}(x), half = y * 0.5f;
{_pow_in_f64(c, t, w)}
const {w.i} extreme = ({w.i})(size == 0.0f) | ({w.i})(size == INFINITY);
const {w.i} shrinks = ({w.i})(y > 0.0f) ^ ({w.i})(size > 1.0f);
const {w.f} end = {w.select}(shrinks, {w.splat}(0.0f), {w.splat}(INFINITY));
result = {w.select}(extreme, end, result);
const {w.i} whole = ({w.i})({w.rint}(y) == y), odd = whole & ({w.i})({w.rint}(half) != half);
result = {w.select}((({w.i})x >> 31) & odd, -result, result);
result = {w.select}(({w.i})(x < 0.0f) & ~whole & ~extreme, {w.splat}(NAN), result);
result = {w.select}(({w.i})(x != x) | ({w.i})(y != y), x + y, result);
const {w.i} unity = ({w.i})(size == 1.0f) & ({w.i})({w.abs}(y) == INFINITY);
return {w.select}(({w.i})(x == 1.0f) | ({w.i})(y == 0.0f) | unity, {w.splat}(1.0f), result);"""
    return Definition(t, operands, body)


POWERS: Table = {"pow": _pow}
