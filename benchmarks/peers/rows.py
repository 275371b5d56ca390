"""Row operations by hand: one row a program, its length a compile-time constant, no mask."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.case import Call


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def softmax_kernel(x, y, N: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    v = tl.load(x + at).to(tl.float32) * 1.4426950408889634
    e = tl.exp2(v - tl.reduce(v, 0, _larger))
    tl.store(y + at, (e * (1.0 / tl.reduce(e, 0, _add))).to(y.dtype.element_ty))


@triton.jit
def long_softmax_kernel(x, y, M, PROGRAMS, N: tl.constexpr, BLOCK: tl.constexpr):
    """Few programs, so that their rows stay in the L2 for the second pass."""
    c = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), M, PROGRAMS):
        start = tl.full((), N, tl.int64) * row
        top = float("-inf")
        total = tl.full((BLOCK,), 0.0, tl.float32)
        for j in range(0, N, BLOCK):
            v = tl.load(x + start + j + c, eviction_policy="evict_last").to(tl.float32)
            v = v * 1.4426950408889634
            higher = tl.maximum(top, tl.reduce(v, 0, _larger))
            total = total * tl.exp2(top - higher) + tl.exp2(v - higher)
            top = higher
        scale = 1.0 / tl.reduce(total, 0, _add)
        for j in range(0, N, BLOCK):
            v = tl.load(x + start + j + c, eviction_policy="evict_first").to(tl.float32)
            e = tl.exp2(v * 1.4426950408889634 - top) * scale
            at = y + start + j + c
            tl.store(at, e.to(y.dtype.element_ty), eviction_policy="evict_first")


@triton.jit
def layer_norm_kernel(x, w, b, y, eps, N: tl.constexpr):
    c = tl.arange(0, N)
    at = tl.program_id(0).to(tl.int64) * N + c
    v = tl.load(x + at).to(tl.float32)
    d = v - tl.reduce(v, 0, _add) * (1.0 / N)
    scale = tl.rsqrt(tl.reduce(d * d, 0, _add) * (1.0 / N) + eps)
    out = d * scale * tl.load(w + c).to(tl.float32) + tl.load(b + c).to(tl.float32)
    tl.store(y + at, out.to(y.dtype.element_ty))


@triton.jit
def rms_norm_kernel(x, residual, w, y, h, eps, N: tl.constexpr, RESIDUAL: tl.constexpr):
    c = tl.arange(0, N)
    at = tl.program_id(0).to(tl.int64) * N + c
    v = tl.load(x + at).to(tl.float32)
    if RESIDUAL:
        v += tl.load(residual + at).to(tl.float32)
        tl.store(h + at, v.to(h.dtype.element_ty))
    scale = tl.rsqrt(tl.reduce(v * v, 0, _add) * (1.0 / N) + eps)
    tl.store(y + at, (v * scale * tl.load(w + c).to(tl.float32)).to(y.dtype.element_ty))


@triton.jit
def rope_kernel(x, cos, sin, y, H: tl.constexpr, D: tl.constexpr, HEADS: tl.constexpr):
    """Halves of D elements each, read once and written once."""
    t = tl.program_id(0)
    h = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    d = tl.arange(0, D)
    c = tl.load(cos + t * D + d).to(tl.float32)[None, :]
    s = tl.load(sin + t * D + d).to(tl.float32)[None, :]
    at = t.to(tl.int64) * H * 2 * D + h[:, None] * 2 * D + d[None, :]
    a = tl.load(x + at).to(tl.float32)
    b = tl.load(x + at + D).to(tl.float32)
    tl.store(y + at, (a * c - b * s).to(y.dtype.element_ty))
    tl.store(y + at + D, (b * c + a * s).to(y.dtype.element_ty))


@triton.jit
def dropout_add_layer_norm_kernel(x, residual, w, b, y, eps, rate, seed, N: tl.constexpr):
    """One call of philox gives four random numbers; seven rounds of it are enough."""
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, N)
    quarter = (row * (N // 4)).to(tl.int32) + tl.arange(0, N // 4)
    r0, r1, r2, r3 = tl.rand4x(seed, quarter, n_rounds=7)
    uniform = tl.reshape(tl.join(tl.join(r0, r2), tl.join(r1, r3)), (N,))
    v = tl.load(x + row * N + c).to(tl.float32)
    v = tl.where(uniform >= rate, v * (1.0 / (1.0 - rate)), 0.0)
    v += tl.load(residual + row * N + c).to(tl.float32)
    d = v - tl.reduce(v, 0, _add) * (1.0 / N)
    scale = tl.rsqrt(tl.reduce(d * d, 0, _add) * (1.0 / N) + eps)
    out = d * scale * tl.load(w + c).to(tl.float32) + tl.load(b + c).to(tl.float32)
    tl.store(y + row * N + c, out.to(y.dtype.element_ty))


def softmax(warps: int) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        (x,) = inputs
        y = torch.empty_like(x)
        return _returning(y, softmax_kernel[(x.shape[0],)], x, y, x.shape[1], num_warps=warps)

    return prepare


def long_softmax(programs: int, block: int, warps: int) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        (x,) = inputs
        y, (m, n) = torch.empty_like(x), x.shape
        kernel = long_softmax_kernel[(programs,)]
        return _returning(y, kernel, x, y, m, programs, n, block, num_warps=warps)

    return prepare


def layer_norm(warps: int) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        x, w, b = inputs
        y, (m, n) = torch.empty_like(x), x.shape
        return _returning(y, layer_norm_kernel[(m,)], x, w, b, y, 1e-5, n, num_warps=warps)

    return prepare


def rms_norm(warps: int, *, residual: bool) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        x, w = inputs[0], inputs[-1]
        y, h, (m, n) = torch.empty_like(x), torch.empty_like(x), x.shape
        kernel, added = rms_norm_kernel[(m,)], inputs[1] if residual else x
        outputs = (y, h) if residual else y
        return _returning(outputs, kernel, x, added, w, y, h, 1e-5, n, residual, num_warps=warps)

    return prepare


def rope(heads: int, warps: int) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        x, cos, sin = inputs
        y, (t, h, _, d) = torch.empty_like(x), x.shape
        kernel = rope_kernel[(t, h // heads)]
        return _returning(y, kernel, x, cos, sin, y, h, d, heads, num_warps=warps)

    return prepare


def dropout_add_layer_norm(rate: float, warps: int) -> Callable[[Any], Call]:
    def prepare(inputs: Any) -> Call:
        x, residual, w, b = inputs
        y, (m, n) = torch.empty_like(x), x.shape
        kernel = dropout_add_layer_norm_kernel[(m,)]
        return _returning(y, kernel, x, residual, w, b, y, 1e-5, rate, 7, n, num_warps=warps)

    return prepare


def _returning(outputs: Any, kernel: Any, *args: Any, **options: Any) -> Call:
    """A call that launches a kernel and returns what it has written."""

    def call() -> Any:
        kernel(*args, **options)
        return outputs

    return call
