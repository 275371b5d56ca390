"""The floats that C lacks: f16, bf16, tf32, f8e4m3, f8e5m2; carried as floats, stored as bits.

`round_to_D(x)` is the nearest value of D, ties to even; `D_from_f32(x)` its bits (for the f8s x has
to be a value of D); `f32_from_D(bits)` the value of the bits.
"""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.prelude.f16 import F16
from tensorlang.backends.c.types import CType

_F32, _U16, _U8 = CType("f32"), CType("u16"), CType("u8")


def _f32_from_bf16(c: Asking, t: CType) -> Definition:
    body = f"return {c.helper('of_bits', _F32)}((uint32_t)bits << 16);"
    return Definition(_F32, ((_U16, "bits"),), body)


def _bf16_from_f32(c: Asking, t: CType) -> Definition:
    body = f"""\
const uint32_t bits = {c.helper("bits", _F32)}(x);
return x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);"""
    return Definition(_U16, ((_F32, "x"),), body)


def _dropping(drop: int) -> Make:
    """Rounding away `drop` bits of the mantissa: adding half carries into the exponent."""
    half, kept = (1 << (drop - 1)) - 1, 0x1_0000_0000 - (1 << drop)

    def make(c: Asking, t: CType) -> Definition:
        body = f"""\
const uint32_t bits = {c.helper("bits", _F32)}(x);
const uint32_t rounded = (bits + {half:#x} + (bits >> {drop} & 1)) & {kept:#x};
return x != x ? NAN : {c.helper("of_bits", _F32)}(rounded);"""
        return Definition(_F32, ((_F32, "x"),), body)

    return make


def _round_to_f8(mantissa: int, lowest_exponent: int, largest: float) -> Make:
    """Subnormals are rounded by adding a number whose last bit is worth the smallest of them."""
    drop = 23 - mantissa
    magic = float(2.0 ** (lowest_exponent + drop)).hex()

    def make(c: Asking, t: CType) -> Definition:
        dropped = c.helper(f"drop{drop}", _F32)
        body = f"""\
const float size = fabsf(x);
const float nearest = size < {float(2.0**lowest_exponent).hex()}f
    ? size + {magic}f - {magic}f : {dropped}(size);
return copysignf(nearest > {largest}f ? {largest}f : nearest, x);"""
        return Definition(_F32, ((_F32, "x"),), body)

    return make


def _f8_from_f32(mantissa: int, bias: int) -> Make:
    drop = 23 - mantissa
    scale = float(2.0 ** (mantissa + bias - 1)).hex()

    def make(c: Asking, t: CType) -> Definition:
        infinity = "if (size == INFINITY) return sign | 0x7c;\n" if mantissa == 2 else ""
        body = f"""\
const float size = fabsf(x);
const uint32_t bits = {c.helper("bits", _F32)}(size), sign = signbit(x) ? 0x80 : 0;
if (x != x) return sign | 0x7f;
{infinity}if (size < {float(2.0 ** (1 - bias)).hex()}f) return sign | (uint32_t)(size * {scale}f);
return sign | ((bits >> {drop}) - {(127 - bias) << mantissa});"""
        return Definition(_U8, ((_F32, "x"),), body)

    return make


def _f32_from_f8e4m3(c: Asking, t: CType) -> Definition:
    of_bits = c.helper("of_bits", _F32)
    body = f"""\
const uint32_t rest = bits & 0x7f;
const float size = rest == 0x7f ? NAN : {of_bits}(rest << 20) * 0x1p120f;
return bits & 0x80 ? -size : size;"""
    return Definition(_F32, ((_U8, "bits"),), body)


def _f32_from_f8e5m2(c: Asking, t: CType) -> Definition:
    # f8e5m2 is the upper half of f16.
    body = f"return {c.helper('f32_from_f16', _U16)}((uint16_t)(bits << 8));"
    return Definition(_F32, ((_U8, "bits"),), body)


NARROW: Table = {
    **F16,
    "f32_from_bf16": _f32_from_bf16,
    "bf16_from_f32": _bf16_from_f32,
    "round_to_bf16": _dropping(16),
    "round_to_tf32": _dropping(13),
    "drop20": _dropping(20),
    "drop21": _dropping(21),
    "f32_from_f8e4m3": _f32_from_f8e4m3,
    "f8e4m3_from_f32": _f8_from_f32(3, 7),
    "round_to_f8e4m3": _round_to_f8(3, -6, 448.0),
    "f32_from_f8e5m2": _f32_from_f8e5m2,
    "f8e5m2_from_f32": _f8_from_f32(2, 15),
    "round_to_f8e5m2": _round_to_f8(2, -14, 57344.0),
}
