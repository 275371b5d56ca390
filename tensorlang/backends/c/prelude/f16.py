"""Vectors of f16 by x86's conversion instructions, where the machine has them."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.types import CType

_I16X8 = CType("i16", 8)


def _lanes(scalar: str, result: CType) -> str:
    return f"""\
{result.tag} result;
for (int l = 0; l < {result.lanes}; ++l) result[l] = {scalar}(x[l]);
return result;"""


def _f32_from_f16(c: Asking, t: CType) -> Definition:
    source, result = CType("u16", t.lanes), CType("f32", t.lanes)
    body = _lanes(c.helper("f32_from_f16", source.scalar), result)
    if t.lanes == 8:
        c.type(result)
        body = _if_f16c(f"return __builtin_ia32_vcvtph2ps256(({c.type(_I16X8)})x);", body)
    return Definition(result, ((source, "x"),), body)


def _f16_from_f32(c: Asking, t: CType) -> Definition:
    source, result = CType("f32", t.lanes), CType("u16", t.lanes)
    body = _lanes(c.helper("f16_from_f32", source.scalar), result)
    if t.lanes == 8:
        body = _if_f16c(f"return ({c.type(result)})__builtin_ia32_vcvtps2ph256(x, 0);", body)
    return Definition(result, ((source, "x"),), body)


def _if_f16c(fast: str, slow: str) -> str:
    return f"#if defined(__F16C__)\n{fast}\n#else\n{slow}\n#endif"


def _round_to_f16(c: Asking, t: CType) -> Definition:
    f32 = CType("f32", t.lanes)
    there = c.helper("f16_from_f32", f32)
    back = c.helper("f32_from_f16", CType("u16", t.lanes))
    return Definition(f32, ((f32, "x"),), f"return {back}({there}(x));")


F16_VECTORS: Table = {
    "f32_from_f16": _f32_from_f16,
    "f16_from_f32": _f16_from_f32,
    "round_to_f16": _round_to_f16,
}
