"""What is an instruction or few for a whole vector: fma, sqrt, rint, masked load, saturation ...

Written out, because a loop over lanes becomes one only where the compiler may gather scalars into
vectors, which is switched off (see `toolchain`).  gcc has x86's instructions as builtins, clang a
builtin for every machine; elsewhere the operation goes lane by lane.
"""

from dataclasses import dataclass

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.types import CType


@dataclass(frozen=True, slots=True)
class _Instruction:
    """x86's builtins by bytes of a register, `{kind}` for ps or pd, and the macro each needs.

    `rest`: the operands after those of the function; of 64 bytes, with a mask of all lanes.
    """

    name: str
    operands: tuple[str, ...]
    builtins: dict[int, str]
    macros: dict[int, str]
    rest: str = ""


# The second operand where neither wins: they are equal, or one is NaN.
_LARGER, _SMALLER = (
    _Instruction(
        name,
        ("a", "b"),
        {16: f"{op}{{kind}}", 32: f"{op}{{kind}}256", 64: f"{op}{{kind}}512_mask"},
        {16: "__SSE2__", 32: "__AVX__", 64: "__AVX512F__"},
    )
    for name, op in (("larger", "max"), ("smaller", "min"))
)
_FMA = _Instruction(
    "fma",
    ("a", "b", "c"),
    {16: "vfmadd{kind}", 32: "vfmadd{kind}256", 64: "vfmadd{kind}512_mask"},
    {16: "__FMA__", 32: "__FMA__", 64: "__AVX512F__"},
)
_SQRT = _Instruction(
    "sqrt",
    ("a",),
    {16: "sqrt{kind}", 32: "sqrt{kind}256", 64: "sqrt{kind}512_mask"},
    {16: "__SSE2__", 32: "__AVX__", 64: "__AVX512F__"},
)
# The mode of rounding, and that inexact results are not reported.
_MODES = {"floor": 1 | 8, "ceil": 2 | 8, "rint": 8}


def _rounding(name: str) -> _Instruction:
    return _Instruction(
        name,
        ("a",),
        {16: "round{kind}", 32: "round{kind}256", 64: "rndscale{kind}_mask"},
        {16: "__SSE4_1__", 32: "__AVX__", 64: "__AVX512F__"},
        f", {_MODES[name]}",
    )


def _made(instruction: _Instruction, libm: str) -> Make:
    """The vector form of a function of floats."""

    def make(c: Asking, t: CType) -> Definition:
        function = c.helper(libm, t.scalar)
        operands = ", ".join(instruction.operands)
        lanes = ", ".join(f"{name}[l]" for name in instruction.operands)
        body = f"""\
#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_{instruction.name})
return __builtin_elementwise_{instruction.name}({operands});
#endif
{_builtins(c, instruction, t)}
#endif
{c.type(t)} result;
for (int l = 0; l < {t.lanes}; ++l) result[l] = {function}({lanes});
return result;"""
        return Definition(t, tuple((t, name) for name in instruction.operands), body)

    return make


def _builtins(c: Asking, instruction: _Instruction, t: CType) -> str:
    """x86's instruction, for the widest registers that the vector fills and the machine has."""
    return "\n".join(
        f"#elif defined({instruction.macros[size]})\n{_in_parts(c, instruction, t, size)}"
        for size in (64, 32, 16)
        if t.bytes % size == 0 and (t.bytes == size or size == 32)
    )


def _winner(instruction: _Instruction, sign: str) -> Make:
    """a where a > b (or a < b), else b, as x86 has it; clang finds the instruction itself."""

    def make(c: Asking, t: CType) -> Definition:
        chosen = f"{c.helper('select', t)}(({t.mask.tag})(a {sign} b), a, b)"
        body = f"""\
#if defined(__clang__)
{_builtins(c, instruction, t)}
#endif
return {chosen};"""
        return Definition(t, ((t, "a"), (t, "b")), body)

    return make


def _in_parts(c: Asking, instruction: _Instruction, t: CType, size: int) -> str:
    """The builtin on each register that the vector fills."""
    part = CType(t.element, size // (t.bits // 8))
    if size == t.bytes:
        return f"return {_call(instruction, part, instruction.operands)};"
    count = t.bytes // size
    unions = ", ".join(f"{name}_ = {{{name}}}" for name in instruction.operands)
    last = instruction.operands[-1]
    calls = "\n".join(
        f"{last}_.part[{k}] = "
        + _call(instruction, part, tuple(f"{name}_.part[{k}]" for name in instruction.operands))
        + ";"
        for k in range(count)
    )
    return f"""\
union {{ {t.tag} whole; {c.type(part)} part[{count}]; }} {unions};
{calls}
return {last}_.whole;"""


def _call(instruction: _Instruction, t: CType, operands: tuple[str, ...]) -> str:
    kind = "ps" if t.bits == 32 else "pd"
    name = instruction.builtins[t.bytes].format(kind=kind)
    every, current = f"({'uint16_t' if t.bits == 32 else 'uint8_t'})-1", 4
    given = ", ".join(operands)
    if t.bytes < 64:
        return f"__builtin_ia32_{name}({given}{instruction.rest})"
    if instruction.name != "fma":
        # What the lanes hold that the mask leaves out: there are none.
        given = f"{given}{instruction.rest}, {operands[0]}"
    return f"__builtin_ia32_{name}({given}, {every}, {current})"


def _load_where(c: Asking, t: CType) -> Definition:
    """The lanes that the mask chooses, and 0 elsewhere; no other element is touched."""
    body = f"""\
#if defined(__clang__)
#if __has_builtin(__builtin_masked_load)
{_CHOSEN.format(lanes=t.lanes)}
return ({t.tag})__builtin_masked_load(__builtin_convertvector(mask, chosen), p);
#endif
{_masked(t, "return ({t})__builtin_ia32_{load};")}
#endif
if ({c.helper("all", t.mask)}(mask)) return {c.helper("load", t)}(p);
{t.tag} result = {{0}};
for (int l = 0; l < {t.lanes}; ++l) if (mask[l]) result[l] = p[l];
return result;"""
    return Definition(t, ((t.mask, "mask"), (t.scalar, "const *p")), body)


def _store_where(c: Asking, t: CType) -> Definition:
    """The lanes that the mask chooses; no other element is touched."""
    body = f"""\
#if defined(__clang__)
#if __has_builtin(__builtin_masked_store)
{_CHOSEN.format(lanes=t.lanes)}
typedef {t.scalar.name} lanes __attribute__((ext_vector_type({t.lanes})));
__builtin_masked_store(__builtin_convertvector(mask, chosen), (lanes)x, p);
return;
#endif
{_masked(t, "__builtin_ia32_{store};{newline}return;")}
#endif
if ({c.helper("all", t.mask)}(mask)) {c.helper("store", t)}(p, x);
else for (int l = 0; l < {t.lanes}; ++l) if (mask[l]) p[l] = x[l];"""
    return Definition(None, ((t.mask, "mask"), (t.scalar, "*p"), (t, "x")), body)


# Clang's masks have a bit a lane.
_CHOSEN = "typedef bool chosen __attribute__((ext_vector_type({lanes})));"


def _masked(t: CType, statement: str) -> str:
    """A statement with x86's masked {load} or {store} of registers that t fills, for gcc."""
    if t.bits not in (32, 64) or t.bytes not in (16, 32, 64):
        return ""
    element, kind, real = ("int", "d", "s") if t.bits == 32 else ("long long", "q", "d")
    size = {16: "", 32: "256", 64: "512"}[t.bytes]
    if t.bytes < 64:
        macro, given = "__AVX2__", "(lanes)mask"
        load = f"maskload{kind}{size}((const lanes *)p, {given})"
        store = f"maskstore{kind}{size}((lanes *)p, {given}, (lanes)x)"
    else:
        macro, given = "__AVX512DQ__", f"__builtin_ia32_cvt{kind}2mask512((lanes)mask)"
        load = f"loadup{real}512_mask((const void *)p, ({t.tag}){{0}}, {given})"
        store = f"storeup{real}512_mask((void *)p, x, {given})"
    written = statement.format(t=t.tag, load=load, store=store, newline="\n")
    return f"""\
#elif defined({macro})
typedef {element} lanes __attribute__((vector_size({t.bytes})));
{written}"""


def _abs(c: Asking, t: CType) -> Definition:
    mask = t.mask
    if t.is_float:
        c.type(mask)
        magnitude = f"INT{t.bits}_MAX"
        return Definition(t, ((t, "a"),), f"return ({t.tag})(({mask.tag})a & {magnitude});")
    if not t.is_signed:
        return Definition(t, ((t, "a"),), "return a;")
    body = f"const {t.tag} sign = ({t.tag})(a < 0);\nreturn (a ^ sign) - sign;"
    return Definition(t, ((t, "a"),), body)


def _kept(c: Asking, t: CType) -> Definition:
    """x in a register: to the compiler a value that it cannot read from memory again."""
    register = "v" if t.bytes == 64 else "x"
    body = f"""\
#if defined(__x86_64__)
__asm__("" : "+{register}"(x));
#endif
return x;"""
    return Definition(t, ((t, "x"),), body)


def _rsqrt(c: Asking, t: CType) -> Definition:
    return Definition(t, ((t, "a"),), f"return 1 / {c.helper('sqrt', t)}(a);")


def _rcp(c: Asking, t: CType) -> Definition:
    return Definition(t, ((t, "a"),), "return 1 / a;")


def _saturated(integer: str) -> Make:
    """Floats truncated and held in the range of an integer type of at most 32 bits; NaN gives 0."""
    bits = int(integer[1:])
    low, high = (0, 1 << bits) if integer[0] == "u" else (-(1 << (bits - 1)), 1 << (bits - 1))

    def make(c: Asking, t: CType) -> Definition:
        whole, result = CType("i32", t.lanes), CType(integer, t.lanes)
        select, splat = c.helper("select", t), c.helper("splat", t)
        body = f"""\
const {c.type(whole)} above = ({whole.tag})(x >= {float(high).hex()}f);
x = {select}(above | ({whole.tag})(x != x), {splat}(0.0f), x);
x = {select}(({whole.tag})(x < {float(low).hex()}f), {splat}({float(low).hex()}f), x);
const {whole.tag} inside = __builtin_convertvector(x, {whole.tag}) | (above & {high - 1});
return __builtin_convertvector(inside, {c.type(result)});"""
        return Definition(result, ((t, "x"),), body)

    return make


INSTRUCTIONS: Table = {
    **{f"{name}_from_f32": _saturated(name) for name in ("i8", "i16", "i32", "u8", "u16")},
    "abs": _abs,
    "kept": _kept,
    "rsqrt": _rsqrt,
    "approx.rcp": _rcp,
    "fma": _made(_FMA, "fma"),
    "sqrt": _made(_SQRT, "sqrt"),
    "larger": _winner(_LARGER, ">"),
    "smaller": _winner(_SMALLER, "<"),
    **{name: _made(_rounding(name), name) for name in _MODES},
    "load_where": _load_where,
    "store_where": _store_where,
}
