"""exp, log, sin, tanh, erf ... of vectors of f32.

Each reduces its argument to a small interval and evaluates there a polynomial, the minimax one for
the relative error of the result (Remez; the coefficients are rounded to f32).  Errors stay below 2
ulp; NaN, infinities, overflow and subnormal results are right.
"""

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.formulas import Formulas
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


_FORMULAS = Formulas(
    suffix="f",
    mantissa=23,
    to_count="12583166.0f",
    of_count="0x4b400000",
    log2=("0x1.62e000p-1f", "0x1.0bfbe8p-15f"),
    per_log2=("0x1.715476p+0f", "0x1.4ae0c0p-26f"),
    exp_range=("-104.0f", "89.0f"),
    exp2_range=("-151.0f", "129.0f"),
    exp=_EXP,
    exp2=_EXP2,
    tanh=_TANH,
    erf=_ERF,
    log_erfc=_LOG_ERFC,
    erf_end="4.0f",
    reduced_log=_reduced_log,
)
F32_FUNCTIONS: dict[str, Write] = {
    **_FORMULAS.functions(),
    "sin": _wave("sin", 0),
    "cos": _wave("cos", 1),
}
