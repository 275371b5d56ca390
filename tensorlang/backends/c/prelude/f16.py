"""f16 by the machine's conversion instructions: x86's F16C, aarch64; otherwise by its bits.

gcc has x86's instructions as builtins and turns _Float16 into them one by one; clang has only
_Float16, whose vectors it converts at once.
"""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.types import CType

_F32, _U16 = CType("f32"), CType("u16")
_F32X4, _I16X8 = CType("f32", 4), CType("i16", 8)
# The operand of x86's conversion that asks for nearest even.
_TO_NEAREST = 0

_HAS_FLOAT16 = "defined(__aarch64__) || (defined(__clang__) && defined(__F16C__))"


def _by_machine(float16: str, f16c: str, otherwise: str) -> str:
    """The first of three bodies that the compiler and the machine allow."""
    return (
        f"#if {_HAS_FLOAT16}\n{float16}\n#elif defined(__F16C__)\n{f16c}\n"
        f"#else\n{otherwise}\n#endif"
    )


def _f32_from_f16(c: Asking, t: CType) -> Definition:
    bits, of_bits = c.helper("bits", _F32), c.helper("of_bits", _F32)
    body = _by_machine(
        "_Float16 x;\nmemcpy(&x, &h, sizeof x);\nreturn (float)x;",
        f"return __builtin_ia32_vcvtph2ps(({c.type(_I16X8)}){{(int16_t)h}})[0];",
        f"""\
const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
// Scaling by 2^112 moves the exponent's bias, also of subnormals; inf and NaN keep the top code.
const uint32_t scaled = {bits}({of_bits}(rest << 13) * 0x1p112f);
return {of_bits}(sign | (rest >= 0x7c00 ? rest << 13 | 0x7f800000 : scaled));""",
    )
    return Definition(_F32, ((_U16, "h"),), body)


def _f16_from_f32(c: Asking, t: CType) -> Definition:
    bits, of_bits = c.helper("bits", _F32), c.helper("of_bits", _F32)
    body = _by_machine(
        "const _Float16 h = (_Float16)x;\nuint16_t bits;\nmemcpy(&bits, &h, sizeof bits);\n"
        "return bits;",
        f"return (uint16_t)__builtin_ia32_vcvtps2ph(({c.type(_F32X4)}){{x}}, {_TO_NEAREST})[0];",
        f"""\
const uint32_t bits = {bits}(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
if (rest > 0x7f800000) return sign | 0x7e00;
if (rest >= 0x477ff000) return sign | 0x7c00;
// The last bit of a number near 0.5 is worth 2^-24, the smallest f16.
if (rest < 0x38800000) return sign | ({bits}({of_bits}(rest) + 0.5f) - 0x3f000000);
return sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;""",
    )
    return Definition(_U16, ((_F32, "x"),), body)


def _round_to_f16(c: Asking, t: CType) -> Definition:
    f32, u16 = CType("f32", t.lanes), CType("u16", t.lanes)
    body = f"return {c.helper('f32_from_f16', u16)}({c.helper('f16_from_f32', f32)}(x));"
    return Definition(f32, ((f32, "x"),), body)


def _lanes(scalar: str, result: CType) -> str:
    return f"""\
{result.tag} result;
for (int l = 0; l < {result.lanes}; ++l) result[l] = {scalar}(x[l]);
return result;"""


def _halves(lanes: int) -> str:
    return f"typedef _Float16 halves __attribute__((vector_size({2 * lanes})));"


def _vector_f32_from_f16(c: Asking, t: CType) -> Definition:
    source, result = CType("u16", t.lanes), CType("f32", t.lanes)
    one_by_one = _lanes(c.helper("f32_from_f16", _U16), result)
    body = _by_machine(
        f"{_halves(t.lanes)}\nreturn __builtin_convertvector((halves)x, {c.type(result)});",
        f"return __builtin_ia32_vcvtph2ps256(({c.type(_I16X8)})x);" if t.lanes == 8 else one_by_one,
        one_by_one,
    )
    return Definition(result, ((source, "x"),), body)


def _vector_f16_from_f32(c: Asking, t: CType) -> Definition:
    source, result = CType("f32", t.lanes), CType("u16", t.lanes)
    one_by_one = _lanes(c.helper("f16_from_f32", _F32), result)
    made = c.type(result)
    at_once = f"return ({made})__builtin_ia32_vcvtps2ph256(x, {_TO_NEAREST});"
    body = _by_machine(
        f"{_halves(t.lanes)}\nreturn ({made})__builtin_convertvector(x, halves);",
        at_once if t.lanes == 8 else one_by_one,
        one_by_one,
    )
    return Definition(result, ((source, "x"),), body)


F16: Table = {
    "f32_from_f16": _f32_from_f16,
    "f16_from_f32": _f16_from_f32,
    "round_to_f16": _round_to_f16,
}
F16_VECTORS: Table = {
    "f32_from_f16": _vector_f32_from_f16,
    "f16_from_f32": _vector_f16_from_f32,
    "round_to_f16": _round_to_f16,
}
