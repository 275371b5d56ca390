"""Functions of one number (and pow), from libm; random_uniform."""

from tensorlang.backends.c.prelude.definition import Asking, Definition, Table
from tensorlang.backends.c.prelude.floats import libm, suffix
from tensorlang.backends.c.types import CType


def _rsqrt(c: Asking, t: CType) -> Definition:
    return Definition(t, ((t, "a"),), f"return 1 / sqrt{suffix(t)}(a);")


def _rcp(c: Asking, t: CType) -> Definition:
    return Definition(t, ((t, "a"),), "return 1 / a;")


def _sigmoid(c: Asking, t: CType) -> Definition:
    # exp of a negative number alone: its overflow would lose the smallest results.
    body = f"""\
const {t.name} e = exp{suffix(t)}(a < 0 ? a : -a);
return (a < 0 ? e : 1) / (1 + e);"""
    return Definition(t, ((t, "a"),), body)


def _random_uniform(c: Asking, t: CType) -> Definition:
    """Philox-4x32-7 (Salmon et al., SC 2011): word index % 4 of counter index // 4 under `seed`."""
    i64, f32 = CType("i64"), CType("f32")
    body = """\
const uint64_t counter = (uint64_t)(index >> 2);
uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)((uint64_t)seed >> 32);
for (int round = 0; round < 7; ++round) {
    const uint64_t a = UINT64_C(0xD2511F53) * c0, b = UINT64_C(0xCD9E8D57) * c2;
    c0 = (uint32_t)(b >> 32) ^ c1 ^ k0, c1 = (uint32_t)b;
    c2 = (uint32_t)(a >> 32) ^ c3 ^ k1, c3 = (uint32_t)a;
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
}
const uint32_t words[4] = {c0, c1, c2, c3};
return (float)(words[index & 3] >> 8) * 0x1p-24f;"""
    return Definition(f32, ((i64, "seed"), (i64, "index")), body)


FUNCTIONS: Table = {
    **{name: libm(name) for name in ("exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf")},
    "pow": libm("pow", 2),
    "rsqrt": _rsqrt,
    "sigmoid": _sigmoid,
    "random_uniform": _random_uniform,
    # The cheap forms are as good as the dear ones here.
    "approx.tanh": libm("tanh"),
    "approx.exp2": libm("exp2"),
    "approx.erf": libm("erf"),
    "approx.rcp": _rcp,
}
