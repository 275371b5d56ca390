"""exp, log, sin, tanh, erf ... of vectors of f32.

Each reduces its argument to a small interval and evaluates there a polynomial, the minimax one for
the relative error of the result (Remez; the coefficients are rounded to f32).  Errors stay below 2
ulp; NaN, infinities, overflow and subnormal results are right.
"""

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.writer import Write, Writer
from tensorlang.backends.c.types import CType

_EXP = ("0x1.fffffcp-2f", "0x1.555492p-3f", "0x1.5558f2p-5f", "0x1.1239d4p-7f", "0x1.6a2446p-10f")
_EXP2 = (
    "0x1.62e430p-1f", "0x1.ebfbdcp-3f", "0x1.c6aee8p-5f", "0x1.3b2d4cp-7f", "0x1.5f3e54p-10f",
    "0x1.41fbbep-13f",
)  # fmt: skip
_LOG = (
    "0x1.555546p-2f", "-0x1.ffffeep-3f", "0x1.99a546p-3f", "-0x1.5562e2p-3f", "0x1.2332c0p-3f",
    "-0x1.fb436ap-4f", "0x1.e650dcp-4f", "-0x1.e2e84ep-4f", "0x1.1b4090p-4f",
)  # fmt: skip
_SIN = ("-0x1.555556p-3f", "0x1.111108p-7f", "-0x1.a00f9ep-13f", "0x1.6cd87ap-19f")
_COS = ("0x1.55554ap-5f", "-0x1.6c0c8cp-10f", "0x1.9a025ap-16f")
_TANH = (
    "-0x1.555554p-2f", "0x1.11106cp-3f", "-0x1.b9ef7ep-5f", "0x1.6394dap-6f", "-0x1.0c214ep-7f",
    "0x1.197b98p-9f",
)  # fmt: skip
_ERF = (
    "0x1.06eba8p-3f", "-0x1.812746p-2f", "0x1.ce2f0ap-4f", "-0x1.b829d8p-6f", "0x1.562b1ap-8f",
    "-0x1.bcd7dap-11f", "0x1.d8b876p-14f", "-0x1.44cf8ap-17f",
)  # fmt: skip
# log(erfc(1 + s)), 0 <= s <= 3
_LOG_ERFC = (
    "-0x1.d97fc0p+0f", "-0x1.51c9b0p+1f", "-0x1.afabbcp-1f", "-0x1.547cf0p-5f", "0x1.4933bep-7f",
    "-0x1.07b65ep-9f", "0x1.2f9778p-12f", "-0x1.6bd7a2p-16f",
)  # fmt: skip


def _counted(w: Writer, x: str, factor: str) -> str:
    """count = the integer nearest to x*factor, below 2^21 in size; biased = count + 254.

    Adding 1.5 * 2^23 leaves no bits behind the point; what is added to it is in the lowest.
    """
    return f"""\
const {w.f} shifted = {w.fma}({x}, {w.splat}({factor}), {w.splat}(12583166.0f));
const {w.i} biased = ({w.i})shifted - 0x4b400000;
const {w.f} count = shifted - 12583166.0f;"""


def _scaled(w: Writer, value: str) -> str:
    """value * 2^count in two steps, so that subnormal results are rounded once."""
    return f"""\
const {w.i} half = biased >> 1;
return {value} * ({w.f})(half << 23) * ({w.f})((biased - half) << 23);"""


def _exp(c: Asking, t: CType, w: Writer) -> str:
    """2^n * exp(r), x = n*log(2) + r, with log(2) in two parts of which the first is short."""
    return f"""\
{w.clamped("x", "-104.0f", "89.0f")}
{_counted(w, "x", "0x1.715476p+0f")}
{w.f} r = {w.fma}(count, {w.splat}(-0x1.62e000p-1f), x);
r = {w.fma}(count, {w.splat}(-0x1.0bfbe8p-15f), r);
{w.polynomial("p", "r", _EXP)}
p = {w.fma}(r * r, p, r) + 1.0f;
{_scaled(w, "p")}"""


def _exp2(c: Asking, t: CType, w: Writer) -> str:
    return f"""\
{w.clamped("x", "-151.0f", "129.0f")}
{_counted(w, "x", "1.0f")}
const {w.f} r = x - count;
{w.polynomial("p", "r", _EXP2)}
p = {w.fma}(p, r, {w.splat}(1.0f));
{_scaled(w, "p")}"""


def taken_apart(w: Writer, x: str) -> str:
    """x = 2^count * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for x > 0."""
    return f"""\
// Subnormals have no exponent of their own.
const {w.i} tiny = ({w.i})({x} < 0x1p-126f);
const {w.f} normal = {w.select}(tiny, {x} * 0x1p23f, {x});
const {w.i} shifted = ({w.i})normal - 0x3f3504f3;
const {w.i} exponent = (shifted >> 23) - (tiny & 23);
const {w.f} f = ({w.f})((shifted & 0x7fffff) + 0x3f3504f3) - 1.0f;
const {w.f} count = __builtin_convertvector(exponent, {w.f});"""


def _reduced_log(w: Writer) -> str:
    """x = 2^count * (1 + f), and tail = log(1 + f) - f."""
    return f"""\
{taken_apart(w, "x")}
{w.polynomial("p", "f", _LOG)}
const {w.f} tail = f * f * {w.fma}(p, f, {w.splat}(-0.5f));"""


def _log(c: Asking, t: CType, w: Writer) -> str:
    low = f"{w.fma}(count, {w.splat}(0x1.0bfbe8p-15f), tail)"
    value = f"{w.fma}(count, {w.splat}(0x1.62e000p-1f), f + {low})"
    return f"{_reduced_log(w)}\n{w.with_edges(value)}"


def _log2(c: Asking, t: CType, w: Writer) -> str:
    # log2(e) in two parts, and f apart from the smaller tail.
    return f"""\
{_reduced_log(w)}
{w.f} low = {w.fma}(tail, {w.splat}(0x1.4ae0c0p-26f), f * 0x1.4ae0c0p-26f);
low = {w.fma}(tail, {w.splat}(0x1.715476p+0f), low);
{w.with_edges(f"{w.fma}(f, {w.splat}(0x1.715476p+0f), low) + count")}"""


def _wave(function: str, shift: int) -> Write:
    """sin(x + shift*pi/2): x less the nearest multiple of pi/2, and one of two polynomials."""

    def write(c: Asking, t: CType, w: Writer) -> str:
        scalar = c.helper(function, t.scalar)
        # The sine has the sign of x, of 0 too.
        wave = "wave" if shift else w.signed_by("wave")
        return f"""\
const {w.f} size = {w.abs}(x);
// Three parts of pi/2 reach this far; what is beyond goes one by one.
if (!{w.all}(({w.i})(size <= 30000.0f))) {{
    {w.f} result;
    for (int l = 0; l < {t.lanes}; ++l) result[l] = {scalar}(x[l]);
    return result;
}}
const {w.f} count = {w.rint}(size * 0x1.45f306p-1f);
{w.f} r = {w.fma}(count, {w.splat}(-0x1.921fb6p+0f), size);
r = {w.fma}(count, {w.splat}(0x1.777a5cp-25f), r);
r = {w.fma}(count, {w.splat}(0x1.ee59dap-50f), r);
const {w.i} quadrant = __builtin_convertvector(count, {w.i}) + {shift};
const {w.f} z = r * r;
{w.polynomial("p", "z", _SIN)}
const {w.f} sine = {w.fma}(p * z, r, r);
{w.polynomial("q", "z", _COS)}
const {w.f} cosine = {w.fma}(q, z * z, {w.fma}(z, {w.splat}(-0.5f), {w.splat}(1.0f)));
const {w.f} wave = {w.select}(-(quadrant & 1), cosine, sine);
return ({w.f})(({w.i}){wave} ^ (quadrant & 2) << 30);"""

    return write


def _tanh(c: Asking, t: CType, w: Writer) -> str:
    """x + x^3*P(x^2) near 0, else 1 - 2/(exp(2|x|) + 1)."""
    exp = c.helper("exp", t)
    return f"""\
const {w.f} size = {w.abs}(x), z = x * x;
{w.polynomial("p", "z", _TANH)}
const {w.f} near = {w.fma}(p * z, size, size);
const {w.f} far = 1.0f - 2.0f / ({exp}(size + size) + 1.0f);
const {w.f} result = {w.select}(({w.i})(size < 0.625f), near, far);
return {w.signed("result")};"""


def _erf(c: Asking, t: CType, w: Writer) -> str:
    """x + x*P(x^2) below 1, else 1 - exp(Q(|x|)) with Q = log(erfc); 1 from 4 on."""
    exp = c.helper("exp", t)
    return f"""\
const {w.f} size = {w.abs}(x), z = x * x;
{w.polynomial("p", "z", _ERF)}
{w.f} at = size;
{w.clamped("at", "1.0f", "4.0f")}
const {w.f} s = at - 1.0f;
{w.polynomial("q", "s", _LOG_ERFC)}
const {w.f} far = 1.0f - {exp}(q);
const {w.f} near = {w.fma}(p, x, x);
return {w.select}(({w.i})(size < 1.0f), near, {w.signed("far")});"""


F32_FUNCTIONS: dict[str, Write] = {
    "exp": _exp,
    "exp2": _exp2,
    "log": _log,
    "log2": _log2,
    "sin": _wave("sin", 0),
    "cos": _wave("cos", 1),
    "tanh": _tanh,
    "erf": _erf,
}
