"""pow of vectors of f32, within 1 ulp, through a logarithm and an exponential in f64.

The error of a logarithm grows with the exponent that it is multiplied by; f64 has room for that.
"""

import math

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.vector_functions import taken_apart
from tensorlang.backends.c.prelude.writer import Writer
from tensorlang.backends.c.types import CType

# 1/3, 1/5 ...: log((1 + s)/(1 - s)) = 2*s*(1 + s^2/3 + s^4/5 + ...), |s| < 0.172
_ATANH = tuple(f"1.0 / {2 * k + 1}" for k in range(1, 8))
# log(2)^k / k!, |x| <= 1/2
_TWO_TO_THE = tuple((math.log(2) ** k / math.factorial(k)).hex() for k in range(9))


def size_to_the_power(c: Asking, t: CType, w: Writer) -> str:
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
