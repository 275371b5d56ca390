"""exp, log, sin, tanh, erf ... of vectors of f64, within 2 ulp.

As in `vector_functions`: an interval around 0, and a polynomial there, minimax for the absolute
error of what it stands for.  No machine before AVX-512 converts between f64 and i64 in vectors;
what is added to 1.5 * 2^52 stands in its lowest bits, both ways.
"""

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.formulas import Formulas
from tensorlang.backends.c.prelude.writer import Write, Writer
from tensorlang.backends.c.types import CType

# Of r: exp(r) less 1 and r, over r^2.
_EXP = (
    "0x1.0000000000001p-1", "0x1.5555555555558p-3", "0x1.5555555553d35p-5", "0x1.111111110f7d5p-7",
    "0x1.6c16c1789d8a0p-10", "0x1.a01a01b02246cp-13", "0x1.a019b8c8be1fbp-16",
    "0x1.71ddf6757d7e1p-19", "0x1.2891d676885b5p-22", "0x1.af63a06ec766ep-26",
)  # fmt: skip
# Of r: 2^r less 1, over r.
EXP2 = (
    "0x1.62e42fefa39efp-1", "0x1.ebfbdff82c58fp-3", "0x1.c6b08d704a0c6p-5", "0x1.3b2ab6fba4e7dp-7",
    "0x1.5d87fe78a3f49p-10", "0x1.430912f86a08cp-13", "0x1.ffcbfc6dc7ef4p-17",
    "0x1.62c0224961aa8p-20", "0x1.b524eb7c9271ap-24", "0x1.e4cef638c2fa7p-28",
    "0x1.e9ecb5f25e2d4p-32", "0x1.c4c957cc8dc8dp-36",
)  # fmt: skip
# (atanh(s)/s - 1)/s^2 of s^2
_ATANH = (
    "0x1.5555555555558p-2", "0x1.99999999951bfp-3", "0x1.2492492e0f030p-3", "0x1.c71c62c21809fp-4",
    "0x1.7462be2caad05p-4", "0x1.39fd33f7c7c28p-4", "0x1.2b662bd638363p-4",
)  # fmt: skip
# (sin(r)/r - 1)/r^2, (cos(r) - 1 + r^2/2)/r^4 and (tanh(x)/x - 1)/x^2, of the square
_SIN = (
    "-0x1.5555555555555p-3", "0x1.1111111110ba6p-7", "-0x1.a01a019e80a1ep-13",
    "0x1.71de379292381p-19", "-0x1.ae6006d9b1e01p-26", "0x1.5e09988c5b3dfp-33",
)  # fmt: skip
_COS = (
    "0x1.5555555555555p-5", "-0x1.6c16c16c16960p-10", "0x1.a01a019f4d280p-16",
    "-0x1.27e4fa15da111p-22", "0x1.1eeb66d0ea81cp-29", "-0x1.907c1f79fb1b5p-37",
)  # fmt: skip
_TANH = (
    "-0x1.5555555555555p-2", "0x1.11111111110adp-3", "-0x1.ba1ba1ba0f95bp-5",
    "0x1.664f487e32865p-6", "-0x1.226e347a22531p-7", "0x1.d6d39c08c5da2p-9",
    "-0x1.7d9f7fd54e811p-10", "0x1.3527862a7f28cp-11", "-0x1.f24ad8ccb7b39p-13",
    "0x1.8460ea9f43d01p-14", "-0x1.05f59d05c4009p-15", "0x1.b40899a309727p-18",
)  # fmt: skip
# erf(x)/x - 1 of x^2 <= 1
_ERF = (
    "0x1.06eba8214db69p-3", "-0x1.812746b0379e6p-2", "0x1.ce2f21a042b32p-4",
    "-0x1.b82ce31284ea4p-6", "0x1.565bcd0dbc15dp-8", "-0x1.c02db3db018fbp-11",
    "0x1.f9a321dc22456p-14", "-0x1.f4d1e388847f3p-17", "0x1.b9df276328e4ap-20",
    "-0x1.5f1ef21b91138p-23", "0x1.f7b6306ec2d0cp-27", "-0x1.38a1375425851p-30",
    "0x1.0608f5fa982dbp-34",
)  # fmt: skip
# log(erfc(1 + s)), 0 <= s <= 4.95, as close as erfc is small
_LOG_ERFC = (
    "-0x1.d97fbf27aa2a1p+0", "-0x1.51c9b0006c21ap+1", "-0x1.afabc11a2afd8p-1",
    "-0x1.5477f099b6d90p-5", "0x1.48c9d37fc2500p-7", "-0x1.033f5a12cfd73p-9",
    "0x1.f1b04a78e09bdp-13", "0x1.b92ddc3368b32p-16", "-0x1.c852b0a630a5dp-16",
    "0x1.448479bd006dbp-17", "-0x1.1e24d508dbb8bp-19", "0x1.b7d4145e25918p-23",
    "0x1.f2513e9a4f310p-25", "-0x1.1ed4125314fc5p-25", "0x1.24b3932cacce5p-27",
    "-0x1.6a96cba04dab0p-30", "0x1.066587f3d6282p-33", "-0x1.56568db053f99p-38",
)  # fmt: skip


def taken_apart(w: Writer, x: str) -> str:
    """x = 2^count * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for x > 0."""
    return f"""\
// Subnormals have no exponent of their own.
const {w.i} tiny = ({w.i})({x} < {w.splat}(0x1p-1022));
const {w.f} normal = {w.select}(tiny, {x} * 0x1p52, {x});
const {w.u} shifted = ({w.u})normal - 0x3fe6a09e667f3bcd;
// 1024 more than the exponent, so that it is not negative.
const {w.u} exponent = ((shifted + 0x4000000000000000) >> 52) - (({w.u})tiny & 52);
const {w.f} f = ({w.f})((shifted & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1.0;
const {w.f} count = ({w.f})(exponent + 0x4338000000000000) - (0x1.8p52 + 1024);"""


def _reduced_log(w: Writer) -> str:
    """x = 2^count * (1 + f), and tail = log(1 + f) - f, of s = f/(2 + f) and atanh(s)."""
    return f"""\
{taken_apart(w, "x")}
const {w.f} s = f / (f + 2.0), z = s * s, square = f * f * 0.5;
{w.polynomial("p", "z", _ATANH)}
const {w.f} tail = {w.fma}(s, {w.fma}(z + z, p, square), -square);"""


def _wave(function: str, shift: int) -> Write:
    """sin(x + shift*pi/2): x less the nearest multiple of pi/2, and one of two polynomials."""

    def write(c: Asking, t: CType, w: Writer) -> str:
        scalar = c.helper(function, t.scalar)
        # The sine has the sign of x, of 0 too.
        wave = "wave" if shift else w.signed_by("wave")
        return f"""\
const {w.f} size = {w.abs}(x);
// Three parts of pi/2 reach this far; what is beyond goes one by one.
if (!{w.all}(({w.i})(size <= {w.splat}(0x1p25)))) {{
    {w.f} result;
    for (int l = 0; l < {t.lanes}; ++l) result[l] = {scalar}(x[l]);
    return result;
}}
const {w.f} shifted = {w.fma}(size, {w.splat}(0x1.45f306dc9c883p-1), {w.splat}(0x1.8p52));
const {w.u} quadrant = ({w.u})shifted + {shift};
const {w.f} count = shifted - 0x1.8p52;
{w.f} r = {w.fma}(count, {w.splat}(-0x1.921fb54442d18p+0), size);
r = {w.fma}(count, {w.splat}(-0x1.1a62633145c07p-54), r);
r = {w.fma}(count, {w.splat}(0x1.f1976b7ed8fbcp-110), r);
const {w.f} z = r * r;
{w.polynomial("p", "z", _SIN)}
const {w.f} sine = {w.fma}(p * z, r, r);
{w.polynomial("q", "z", _COS)}
const {w.f} cosine = {w.fma}(q, z * z, {w.fma}(z, {w.splat}(-0.5), {w.splat}(1.0)));
const {w.f} wave = {w.select}(({w.i})-(quadrant & 1), cosine, sine);
return ({w.f})(({w.u}){wave} ^ (quadrant & 2) << 62);"""

    return write


_FORMULAS = Formulas(
    suffix="",
    mantissa=52,
    to_count="(0x1.8p52 + 2046)",
    of_count="0x4338000000000000",
    log2=("0x1.62e42fefa0000p-1", "0x1.cf79abc9e3b3ap-40"),
    per_log2=("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56"),
    exp_range=("-746.0", "710.0"),
    exp2_range=("-1076.0", "1025.0"),
    exp=_EXP,
    exp2=EXP2,
    tanh=_TANH,
    erf=_ERF,
    log_erfc=_LOG_ERFC,
    erf_end="5.95",
    reduced_log=_reduced_log,
)
F64_FUNCTIONS: dict[str, Write] = {
    **_FORMULAS.functions(),
    "sin": _wave("sin", 0),
    "cos": _wave("cos", 1),
}
