"""What generated kernels call: the operations whose meaning Triton leaves open, said once.

Only core builtins of `triton.language` are used (not `tl.sum`, `tl.max`, `tl.zeros` ...), because
those are themselves jitted, and one process both compiles kernels and interprets them.
`interpret.py` runs this same text on CPU tensors, but for what stands in `runtime_numpy.py`.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

# ------------------------------------------------------------------ launches


@triton.jit
def after_the_kernel_before():
    """Let the next kernel start, and wait until what the one before wrote can be read."""
    gdc_launch_dependents()
    gdc_wait()


# ------------------------------------------------------------------ min and max propagate NaN


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


# ------------------------------------------------------------------ reductions along one axis


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _and(a, b):
    return a & b


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def _xor(a, b):
    return a ^ b


@triton.jit
def sum(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _add)


@triton.jit
def prod(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _multiply)


@triton.jit
def max(x, axis: tl.constexpr):
    return tl.reduce(x, axis, maximum)


@triton.jit
def min(x, axis: tl.constexpr):
    return tl.reduce(x, axis, minimum)


@triton.jit
def all(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _and)


@triton.jit
def any(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _or)


@triton.jit
def xor(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _xor)


# ------------------------------------------------------------------ running ones along one axis


@triton.jit
def running_sum(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _add, reverse)


@triton.jit
def running_prod(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _multiply, reverse)


@triton.jit
def running_max(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, maximum, reverse)


@triton.jit
def running_min(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, minimum, reverse)


@triton.jit
def running_all(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _and, reverse)


@triton.jit
def running_any(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _or, reverse)


@triton.jit
def running_xor(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _xor, reverse)


@triton.jit
def _first_of(x, best, at, axis: tl.constexpr):
    """The smallest `at` where x is the best along an axis: equal to it, or the NaN that it is."""
    found = (x == tl.expand_dims(best, axis)) | (x != x)
    highest = 0x7FFFFFFF if at.dtype == tl.int32 else 0x7FFFFFFFFFFFFFFF
    return tl.reduce(tl.where(found, at, highest).to(at.dtype), axis, minimum)


@triton.jit
def argmax(x, at, axis: tl.constexpr):
    """The largest x along an axis and the smallest `at` that has it; NaN is largest."""
    best = tl.reduce(x, axis, maximum)
    return best, _first_of(x, best, at, axis)


@triton.jit
def argmin(x, at, axis: tl.constexpr):
    """The smallest x along an axis and the smallest `at` that has it; NaN is smallest."""
    best = tl.reduce(x, axis, minimum)
    return best, _first_of(x, best, at, axis)


# ------------------------------------------------------------------ integers


@triton.jit
def floordiv(a, b):
    """a // b towards minus infinity, 0 where b is 0 (Triton truncates)."""
    divisor = tl.where((b == 0) | (b == -1), 1, b)
    quotient = a // divisor
    inexact = quotient * divisor != a
    quotient = tl.where(inexact & ((a < 0) != (b < 0)), quotient - 1, quotient)
    # The lowest value over -1 wraps, and must not reach the divider.
    return tl.where(b == 0, 0, tl.where(b == -1, 0 - a, quotient)).to(a.dtype)


@triton.jit
def mod(a, b):
    """a - floordiv(a, b)*b, 0 where b is 0."""
    return tl.where(b == 0, 0, a - floordiv(a, b) * b).to(a.dtype)


@triton.jit
def floordiv_unsigned(a, b):
    return tl.where(b == 0, 0, a // tl.where(b == 0, 1, b)).to(a.dtype)


@triton.jit
def mod_unsigned(a, b):
    return tl.where(b == 0, 0, a % tl.where(b == 0, 1, b)).to(a.dtype)


@triton.jit
def shl(a, b, bits: tl.constexpr):
    """a << b, 0 when b is the width or more."""
    inside = (b >= 0) & (b < bits)
    return tl.where(inside, a << tl.where(inside, b, 0), 0).to(a.dtype)


@triton.jit
def shr(a, b, bits: tl.constexpr):
    """a >> b; by the width or more it gives the sign, which the shift by bits - 1 also gives."""
    inside = (b >= 0) & (b < bits)
    return (a >> tl.where(inside, b, bits - 1)).to(a.dtype)


@triton.jit
def shr_unsigned(a, b, bits: tl.constexpr):
    """a >> b, 0 when b is the width or more."""
    inside = (b >= 0) & (b < bits)
    return tl.where(inside, a >> tl.where(inside, b, 0), 0).to(a.dtype)


# ------------------------------------------------------------------ floats


@triton.jit
def to_int(x, dtype: tl.constexpr, lowest: tl.constexpr, highest: tl.constexpr):
    """Truncate and saturate a float, NaN to 0; highest + 1 is a power of two, hence a float."""
    below = x < lowest * 1.0
    above = x >= highest * 1.0 + 1.0
    inside = (below | above | (x != x)) == 0
    whole = tl.where(inside, x, 0.0).to(dtype)
    return tl.where(above, tl.full((), highest, dtype), tl.where(below, lowest, whole)).to(dtype)


@triton.jit
def half(x, axis: tl.constexpr, second: tl.constexpr):
    """The first or the second half of a tile of one or two axes along one of them."""
    if len(x.shape) == 1:
        parts = tl.permute(tl.reshape(x, (2, x.shape[0] // 2)), (1, 0))
    elif axis == 0:
        parts = tl.permute(tl.reshape(x, (2, x.shape[0] // 2, x.shape[1])), (1, 2, 0))
    else:
        parts = tl.permute(tl.reshape(x, (x.shape[0], 2, x.shape[1] // 2)), (0, 2, 1))
    first, last = tl.split(parts)
    return last if second else first


@triton.jit
def div(a, b):
    """a / b correctly rounded, of f32 tiles or literals."""
    return tl.div_rn(tl.cast(a, tl.float32), tl.cast(b, tl.float32))


@triton.jit
def negate(x):
    """-x for floats: 0 - x, which Triton makes of it, has the wrong sign at 0."""
    return x * -1.0


@triton.jit
def tf32(x):
    """A float32 rounded to 10 mantissa bits, ties to even."""
    bits = x.to(tl.uint32, bitcast=True)
    rounded = (bits + 0xFFF + ((bits >> 13) & 1)) & 0xFFFFE000
    return tl.where(x == x, rounded.to(tl.float32, bitcast=True), x)


@triton.jit
def isnan(x):
    return x != x


@triton.jit
def isinf(x):
    return tl.abs(x) == float("inf")


@triton.jit
def floor(x):
    """The GPU's own takes a subnormal for 0."""
    below = tl.floor(x)
    return tl.where(below > x, below - 1.0, below)


@triton.jit
def ceil(x):
    """The GPU's own takes a subnormal for 0."""
    above = tl.ceil(x)
    return tl.where(above < x, above + 1.0, above)


@triton.jit
def rsqrt(x):
    """1 / sqrt(x), of a subnormal too: rsqrt(x) is rsqrt(x * 2^24) * 2^12."""
    small = x < 1.1754943508222875e-38
    root = tl.rsqrt(tl.where(small, x * 16777216.0, x))
    return tl.where(small, root * 4096.0, root)


@triton.jit
def round(x):
    """To the nearest integer, ties to even."""
    return libdevice.rint(x)


@triton.jit
def exp(x):
    return libdevice.exp(x)


@triton.jit
def tanh(x):
    return libdevice.tanh(x)


@triton.jit
def pow(x, y):
    return libdevice.pow(x, y)


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + libdevice.exp(x * -1.0))


@triton.jit
def rcp(x):
    return 1.0 / x


@triton.jit
def approx_tanh(x):
    return tl.inline_asm_elementwise(
        "tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def approx_exp2(x):
    return tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def approx_rcp(x):
    return tl.inline_asm_elementwise(
        "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def approx_erf(x):
    """sign(x) (1 - 2^-q(|x|)), q a polynomial of degree 8: absolute error below 3e-7."""
    size = tl.abs(x)
    q = tl.fma(size, 4.53585881e-05, -4.45507562e-04)
    q = tl.fma(size, q, 1.48944137e-03)
    q = tl.fma(size, q, 7.74630056e-04)
    q = tl.fma(size, q, -2.82536814e-02)
    q = tl.fma(size, q, 1.48481615e-01)
    q = tl.fma(size, q, 9.18416393e-01)
    q = tl.fma(size, q, 1.62790859)
    result = 1.0 - approx_exp2(q * (size * -1.0))
    return tl.where(x < 0, result * -1.0, result)


# ------------------------------------------------------------------ random numbers


@triton.jit
def _philox(seed, counter):
    """The four words of Philox-4x32-7 at a counter below 2^64 under the key `seed`."""
    key = seed.to(tl.uint64)
    k0 = key.to(tl.uint32)
    k1 = (key >> 32).to(tl.uint32)
    c0 = counter.to(tl.uint64).to(tl.uint32)
    c1 = (counter.to(tl.uint64) >> 32).to(tl.uint32)
    c2 = c0 & 0
    c3 = c0 & 0
    for _ in tl.static_range(7):
        product0 = c0.to(tl.uint64) * 0xD2511F53
        product2 = c2.to(tl.uint64) * 0xCD9E8D57
        c0 = (product2 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = product2.to(tl.uint32)
        c2 = (product0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = product0.to(tl.uint32)
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    return c0, c1, c2, c3


@triton.jit
def _unit(word):
    """The upper 24 bits of a word as a number in [0, 1)."""
    return (word >> 8).to(tl.float32) * 5.9604644775390625e-08


@triton.jit
def random_uniform(seed, index):
    """Word index % 4 of Philox at counter index // 4, in [0, 1)."""
    c0, c1, c2, c3 = _philox(seed, index >> 2)
    word = index & 3
    return _unit(tl.where(word == 0, c0, tl.where(word == 1, c1, tl.where(word == 2, c2, c3))))


@triton.jit
def _aligned_row(seed, first, WIDTH: tl.constexpr):
    """random_uniform(seed, first + [0, WIDTH)), `first` a multiple of 4: every word is used."""
    c0, c1, c2, c3 = _philox(seed, (first >> 2) + tl.arange(0, WIDTH // 4))
    return _unit(tl.reshape(tl.join(tl.join(c0, c2), tl.join(c1, c3)), (WIDTH,)))


@triton.jit
def random_row(seed, first, WIDTH: tl.constexpr, MULTIPLE: tl.constexpr):
    """random_uniform(seed, first + [0, WIDTH)), `first` being a multiple of MULTIPLE."""
    if MULTIPLE % 4 == 0 and WIDTH >= 4:
        row = _aligned_row(seed, first, WIDTH)
    elif WIDTH < 4:
        row = random_uniform(seed, first + tl.arange(0, WIDTH))
    elif first % 4 == 0:
        row = _aligned_row(seed, first, WIDTH)
    else:
        row = random_uniform(seed, first + tl.arange(0, WIDTH))
    return row
