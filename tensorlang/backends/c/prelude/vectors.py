"""Vector operations that have no operator in C: splat, load, store, select, minimum, maximum."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.types import CType


def _splat(c: Asking, t: CType) -> Definition:
    lanes = ", ".join(["x"] * t.lanes)
    return Definition(t, ((t.scalar, "x"),), f"return ({t.tag}){{{lanes}}};")


def _steps(c: Asking, t: CType) -> Definition:
    """x, x + 1, x + 2, ..."""
    lanes = ", ".join(map(str, range(t.lanes)))
    body = f"return {c.helper('splat', t)}(x) + ({t.tag}){{{lanes}}};"
    return Definition(t, ((t.scalar, "x"),), body)


def _first(c: Asking, t: CType) -> Definition:
    """The mask of the first `count` lanes."""
    element = t.scalar.name
    lanes = ", ".join(map(str, range(t.lanes)))
    body = f"""\
const {element} limit = count < 0 ? 0 : count > {t.lanes} ? {t.lanes} : ({element})count;
return ({t.tag})(({t.tag}){{{lanes}}} < {c.helper("splat", t)}(limit));"""
    return Definition(t, ((CType("i64"), "count"),), body)


def _load(c: Asking, t: CType) -> Definition:
    return Definition(t, ((t.scalar, "const *p"),), f"return *(const {t.tag}_at *)p;")


def _store(c: Asking, t: CType) -> Definition:
    return Definition(None, ((t.scalar, "*p"), (t, "x")), f"*({t.tag}_at *)p = x;")


def _all(c: Asking, t: CType) -> Definition:
    """Whether every lane of a mask is set."""
    if t.bytes < 16:
        body = f"""\
{t.scalar.name} every = -1;
for (int l = 0; l < {t.lanes}; ++l) every &= mask[l];
return every != 0;"""
        return Definition(CType("bool"), ((t, "mask"),), body)
    words = CType("i64", t.bytes // 8)
    chosen = " & ".join(f"words[{k}]" for k in range(words.lanes))
    body = f"const {c.type(words)} words = ({words.tag})mask;\nreturn ({chosen}) == -1;"
    return Definition(CType("bool"), ((t, "mask"),), body)


def _any(c: Asking, t: CType) -> Definition:
    """Whether some lane of a mask is set."""
    body = f"return !{c.helper('all', t)}(~mask);"
    return Definition(CType("bool"), ((t, "mask"),), body)


def _select(c: Asking, t: CType) -> Definition:
    """Lane by lane, a where the mask is set, else b."""
    mask = t.mask.tag
    body = f"return ({t.tag})((mask & ({mask})a) | (~mask & ({mask})b));"
    if t.bytes in (16, 32):
        # One instruction, which compilers find only where they see where the mask comes from.
        macro = "SSE4_1" if t.bytes == 16 else "AVX2"
        operands = ", ".join(f"(bytes){x}" for x in ("b", "a", "mask"))
        body = f"""\
#if defined(__{macro}__)
typedef char bytes __attribute__((vector_size({t.bytes})));
return ({t.tag})__builtin_ia32_pblendvb{t.bytes * 8}({operands});
#else
{body}
#endif"""
    return Definition(t, ((t.mask, "mask"), (t, "a"), (t, "b")), body)


def _extreme(sign: str) -> Make:
    """min and max; of floats, NaN if either is NaN.

    What is known first of the two, as is b where a is an accumulator, does not wait for the other.
    """

    def make(c: Asking, t: CType) -> Definition:
        select, operands = c.helper("select", t), ((t, "a"), (t, "b"))
        if not t.is_float:
            return Definition(t, operands, f"return {select}(({t.mask.tag})(a {sign} b), a, b);")
        winner = c.helper("larger" if sign == ">" else "smaller", t)
        c.type(t.mask)
        body = f"return {select}(({t.mask.tag})(b != b), b, {winner}(b, a));"
        return Definition(t, operands, body)

    return make


def division_by(op: str, divisor: int) -> Make:
    """floordiv or mod of signed lanes by a constant, which compilers turn into a product."""

    def make(c: Asking, t: CType) -> Definition:
        quotient = f"const {t.tag} quotient = a / {divisor}, rest = a - quotient * {divisor};"
        below = f"({t.mask.tag})(rest < 0)"
        result = f"quotient + {below}" if op == "floordiv" else f"rest + ({below} & {divisor})"
        return Definition(t, ((t, "a"),), f"{quotient}\nreturn {result};")

    return make


VECTORS: Table = {
    "splat": _splat,
    "steps": _steps,
    "first": _first,
    "load": _load,
    "store": _store,
    "all": _all,
    "any": _any,
    "select": _select,
    "min": _extreme("<"),
    "max": _extreme(">"),
}
