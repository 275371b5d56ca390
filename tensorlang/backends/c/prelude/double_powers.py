"""pow of vectors of f64, within 1 ulp, through a logarithm in two parts.

The error of a logarithm grows with the exponent that it is multiplied by, up to 2^10 times: the
logarithm is the sum of two f64, of which the second is as small as the rounding of the first.
"""

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.vector_doubles import EXP2, taken_apart
from tensorlang.backends.c.prelude.writer import Writer
from tensorlang.backends.c.types import CType

# ((atanh(s)/s - 1)/s^2 - 1/3)/s^2 of s^2
_ATANH = (
    "0x1.999999999999ap-3", "0x1.2492492492524p-3", "0x1.c71c71c6e9f38p-4",
    "0x1.745d177b266f6p-4", "0x1.3b139598fbdcep-4", "0x1.1118d37799539p-4",
    "0x1.df7a766f361a5p-5", "0x1.e045d4712d5fcp-5",
)  # fmt: skip


def _log2_in_two(w: Writer) -> str:
    """log2(size) = log + log_, of 2*atanh(s)/log(2) with s = f/(2 + f); x_ is the rest of x."""
    third, per_log2 = ("0x1.5555555555555p-2", "0x1.5555555555555p-56"), "0x1.71547652b82fep+1"
    return f"""\
{taken_apart(w, "size")}
const {w.f} d = f + 2.0, d_ = f - (d - 2.0), s = f / d;
const {w.f} s_ = ({w.fma}(-s, d, f) - s * d_) / d;
const {w.f} z = s * s, z_ = {w.fma}(s, s, -z) + 2.0 * s * s_;
{w.polynomial("a", "z", _ATANH)}
// atanh(s) = s + s*z*(1/3 + z*a), each in two parts from the third on.
const {w.f} rest = z * a, u = rest + {third[0]}, u_ = {third[0]} - u + rest + {third[1]};
const {w.f} p = z * u, p_ = {w.fma}(z, u, -p) + {w.fma}(z, u_, z_ * u);
const {w.f} v = s * p, v_ = {w.fma}(s, p, -v) + {w.fma}(s, p_, s_ * p);
const {w.f} h = s + v, h_ = s - h + v + (s_ + v_);
const {w.f} b = h * {per_log2};
const {w.f} b_ = {w.fma}(h, {w.splat}({per_log2}), -b)
    + {w.fma}(h, {w.splat}(0x1.777d0ffda0d24p-55), h_ * {per_log2});
const {w.f} log = count + b, log_ = count - log + b + b_;"""


def size_to_the_power(c: Asking, t: CType, w: Writer) -> str:
    """result = 2^(y*log2(size))"""
    return f"""\
{_log2_in_two(w)}
// A power beyond these decides alone; it would make infinities whose difference is NaN.
{w.f} power = y;
{w.clamped("power", "-0x1p70", "0x1p70")}
{w.f} at = power * log;
const {w.f} at_ = {w.fma}(power, log, -at) + power * log_;
const {w.i} inside = ({w.i})({w.abs}(at) < {w.splat}(1100.0));
{w.clamped("at", "-1100.0", "1100.0")}
const {w.f} moved = at + (0x1.8p52 + 2046);
const {w.u} biased = ({w.u})moved - 0x4338000000000000, first = biased >> 1;
const {w.f} r = at - (moved - (0x1.8p52 + 2046)) + {w.select}(inside, at_, {w.splat}(0));
{w.polynomial("q", "r", EXP2)}
q = {w.fma}(q, r, {w.splat}(1.0));
{w.f} result = q * ({w.f})(first << 52) * ({w.f})((biased - first) << 52);"""
