"""C[M, N] = activation(A[M, K] B[K, N] + bias[N]) by hand: pointers, TMA, persistent, padded."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.case import Call
from benchmarks.schedules import Tile

ACTIVATIONS = {"none": 0, "relu": 1, "gelu_tanh": 2, "gelu_erf": 3}


@triton.jit
def _activated(x, ACT: tl.constexpr):
    if ACT == 1:
        x = tl.maximum(x, 0.0)
    elif ACT == 2:  # the hardware's tanh: one instruction
        u = x * (0.7978845608028654 + 0.035677408136300125 * x * x)
        t = tl.inline_asm_elementwise(
            "tanh.approx.f32 $0, $1;", "=f,f", [u], dtype=tl.float32, is_pure=True, pack=1
        )
        half = 0.5 * x
        x = half + half * t
    elif ACT == 3:  # erf by Abramowitz and Stegun 7.1.26, error below 1.5e-7
        u = x * 0.70710678118654752
        t = 1.0 / (1.0 + 0.3275911 * tl.abs(u))
        p = -1.453152027 + t * 1.061405429
        p = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * p)))
        e = 1.0 - p * tl.exp2(-1.4426950408889634 * u * u)
        x = 0.5 * x * (1.0 + tl.where(u < 0, -e, e))
    return x


@triton.jit
def _tile_of(t, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Tiles in groups of rows, column by column within a group."""
    width = GROUP * tiles_n
    first = t // width * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + (t % width) % rows, (t % width) // rows


@triton.jit
def pointer_kernel(
    a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K, sam, sak, sbk, sbn, scm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    EVEN: tl.constexpr, BIAS: tl.constexpr, ACT: tl.constexpr,
):  # fmt: skip
    m, n = _tile_of(tl.program_id(0), (M + BM - 1) // BM, (N + BN - 1) // BN, GROUP)
    om = m * BM + tl.arange(0, BM)
    on = n * BN + tl.arange(0, BN)
    ok = tl.arange(0, BK)
    rm = om if EVEN else om % M
    rn = on if EVEN else on % N
    ap = a_ptr + rm[:, None] * sam + ok[None, :] * sak
    bp = b_ptr + ok[:, None] * sbk + rn[None, :] * sbn
    acc = tl.full((BM, BN), 0.0, tl.float32)
    for k in range((K + BK - 1) // BK):
        if EVEN:
            a = tl.load(ap)
            b = tl.load(bp)
        else:
            a = tl.load(ap, mask=ok[None, :] < K - k * BK, other=0.0)
            b = tl.load(bp, mask=ok[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        ap += BK * sak
        bp += BK * sbk
    if BIAS:
        acc += tl.load(bias_ptr + on, mask=on < N, other=0.0)[None, :].to(tl.float32)
    acc = _activated(acc, ACT).to(c_ptr.dtype.element_ty)
    mask = (om[:, None] < M) & (on[None, :] < N)
    tl.store(c_ptr + om[:, None] * scm + on[None, :], acc, mask=mask)


@triton.jit
def descriptor_kernel(
    a_d, b_d, c_d, bias_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    NT: tl.constexpr, BIAS: tl.constexpr, ACT: tl.constexpr,
):  # fmt: skip
    m, n = _tile_of(tl.program_id(0), (M + BM - 1) // BM, (N + BN - 1) // BN, GROUP)
    acc = tl.full((BM, BN), 0.0, tl.float32)
    for k in range((K + BK - 1) // BK):
        a = a_d.load([m * BM, k * BK])
        if NT:
            acc = tl.dot(a, b_d.load([n * BN, k * BK]).T, acc)
        else:
            acc = tl.dot(a, b_d.load([k * BK, n * BN]), acc)
    if BIAS:
        on = n * BN + tl.arange(0, BN)
        acc += tl.load(bias_ptr + on, mask=on < N, other=0.0)[None, :].to(tl.float32)
    c_d.store([m * BM, n * BN], _activated(acc, ACT).to(c_d.dtype))


@triton.jit
def persistent_kernel(
    a_d, b_d, c_d, bias_ptr, M, N, K, SMS,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
    NT: tl.constexpr, BIAS: tl.constexpr, ACT: tl.constexpr,
):  # fmt: skip
    tiles_m = (M + BM - 1) // BM
    tiles_n = (N + BN - 1) // BN
    steps = (K + BK - 1) // BK
    for t in tl.range(tl.program_id(0), tiles_m * tiles_n, SMS, flatten=True):
        m, n = _tile_of(t, tiles_m, tiles_n, GROUP)
        acc = tl.full((BM, BN), 0.0, tl.float32)
        for k in range(steps):
            a = a_d.load([m * BM, k * BK])
            if NT:
                acc = tl.dot(a, b_d.load([n * BN, k * BK]).T, acc)
            else:
                acc = tl.dot(a, b_d.load([k * BK, n * BN]), acc)
        # The epilogue in two halves of the columns: half the registers.
        c0, c1 = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
        on = n * BN + tl.arange(0, BN // 2)
        if BIAS:
            c0 += tl.load(bias_ptr + on, mask=on < N, other=0.0)[None, :].to(tl.float32)
            high = on + BN // 2
            c1 += tl.load(bias_ptr + high, mask=high < N, other=0.0)[None, :].to(tl.float32)
        c_d.store([m * BM, n * BN], _activated(c0, ACT).to(c_d.dtype))
        c_d.store([m * BM, n * BN + BN // 2], _activated(c1, ACT).to(c_d.dtype))


@triton.jit
def pad_kernel(x, y, M, N, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, width, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + c, mask=c < tl.where(row < M, N, 0), other=0.0)
        tl.store(y + row * width + c, v, mask=c < width)


@triton.jit
def odd_kernel(
    a_d, b_d, c_ptr, M, N, K, scm,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    m, n = _tile_of(tl.program_id(0), (M + BM - 1) // BM, (N + BN - 1) // BN, GROUP)
    acc = tl.full((BM, BN), 0.0, tl.float32)
    for k in range((K + BK - 1) // BK):
        acc = tl.dot(a_d.load([m * BM, k * BK]), b_d.load([k * BK, n * BN]), acc)
    om = m * BM + tl.arange(0, BM)
    on = n * BN + tl.arange(0, BN)
    mask = (om[:, None] < M) & (on[None, :] < N)
    at = c_ptr + om[:, None].to(tl.int64) * scm + on[None, :]
    tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=mask)


def _tiles(m: int, n: int, tile: Tile) -> int:
    return triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.columns)


def _shape(tile: Tile) -> dict[str, int]:
    return {"BM": tile.rows, "BN": tile.columns, "BK": tile.depth, "GROUP": tile.group}


def pointers(tile: Tile, *, nt: bool, act: str = "none") -> Callable[[Any], Call]:
    """Each operand by pointers; the inputs are A, B or B^T, and perhaps the bias."""

    def prepare(inputs: Any) -> Call:
        a, b, bias = (*inputs, None)[:3]
        b = b.t() if nt else b
        (m, k), n = a.shape, b.shape[1]
        c = a.new_empty(m, n)
        even = m % tile.rows == 0 and n % tile.columns == 0 and k % tile.depth == 0
        strides = (*a.stride(), *b.stride(), c.stride(0))
        fixed = {**_shape(tile), "EVEN": even, "BIAS": bias is not None, "ACT": ACTIVATIONS[act]}
        fixed |= {"num_warps": tile.warps, "num_stages": tile.stages}

        def call() -> Any:
            pointer_kernel[(_tiles(m, n, tile),)](
                a, b, c, c if bias is None else bias, m, n, k, *strides, **fixed
            )
            return c

        return call

    return prepare


def descriptors(
    tile: Tile, *, nt: bool, act: str = "none", persistent: bool = False
) -> Callable[[Any], Call]:
    """Operands and result through tensor descriptors that the host makes once."""

    def prepare(inputs: Any) -> Call:
        a, b, bias = (*inputs, None)[:3]
        (m, k), n = a.shape, b.shape[0] if nt else b.shape[1]
        c = a.new_empty(m, n)
        box = [tile.columns, tile.depth] if nt else [tile.depth, tile.columns]
        a_d = TensorDescriptor.from_tensor(a, [tile.rows, tile.depth])
        b_d = TensorDescriptor.from_tensor(b, box)
        width = tile.columns // 2 if persistent else tile.columns
        c_d = TensorDescriptor.from_tensor(c, [tile.rows, width])
        fixed = {**_shape(tile), "NT": nt, "BIAS": bias is not None, "ACT": ACTIVATIONS[act]}
        fixed |= {"num_warps": tile.warps, "num_stages": tile.stages}
        head = (a_d, b_d, c_d, c if bias is None else bias, m, n, k)

        def call() -> Any:
            if persistent:
                sms = _multiprocessors(a)
                persistent_kernel[(min(sms, _tiles(m, n, tile)),)](*head, sms, **fixed)
            else:
                descriptor_kernel[(_tiles(m, n, tile),)](*head, **fixed)
            return c

        return call

    return prepare


def padded(tile: Tile) -> Callable[[Any], Call]:
    """Rows of odd length: operands are padded once a call, the result is stored under a mask."""

    def prepare(inputs: Any) -> Call:
        a, b = inputs
        (m, k), n = a.shape, b.shape[1]
        wide_k, wide_n = -(-k // 64) * 64, -(-n // 64) * 64
        a_padded, b_padded = a.new_empty(m, wide_k), b.new_empty(wide_k, wide_n)
        c = a.new_empty(m, n)
        a_d = TensorDescriptor.from_tensor(a_padded, [tile.rows, tile.depth])
        b_d = TensorDescriptor.from_tensor(b_padded, [tile.depth, tile.columns])
        fixed = {**_shape(tile), "num_warps": tile.warps, "num_stages": tile.stages}

        def call() -> Any:
            pad_kernel[(m,)](a, a_padded, m, k, wide_k, BLOCK=1024)
            pad_kernel[(wide_k,)](b, b_padded, k, n, wide_n, BLOCK=1024)
            odd_kernel[(_tiles(m, n, tile),)](a_d, b_d, c, m, n, k, n, **fixed)
            return c

        return call

    return prepare


def _multiprocessors(like: Any) -> int:
    if not like.is_cuda:
        return 4
    return torch.cuda.get_device_properties(like.device).multi_processor_count
