"""Decode-size matmuls by hand: y[M, N] = x[M, K] W[N, K]^T with few rows M."""

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.case import Call
from benchmarks.schedules import Tile


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def gemv_kernel(
    x_ptr, w_ptr, y_ptr, N: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr
):
    on = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    ok = tl.arange(0, STEP)
    acc = tl.full((ROWS, STEP), 0.0, tl.float32)
    for k in tl.static_range(0, K, STEP):
        at = w_ptr + on[:, None] * K + (k + ok)[None, :]
        w = tl.load(at, eviction_policy="evict_first")
        x = tl.load(x_ptr + k + ok, eviction_policy="evict_last")
        acc += w.to(tl.float32) * x.to(tl.float32)[None, :]
    tl.store(y_ptr + on, tl.reduce(acc, 1, _add).to(y_ptr.dtype.element_ty))


@triton.jit
def swapped_kernel(
    x_d, w_d, c_ptr, partial_ptr, arrived_ptr, M, N, K,
    TOKENS: tl.constexpr, ROWS: tl.constexpr, STEP: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """The weights are the operand with 64 rows; the last part to arrive adds the others up."""
    row = tl.program_id(0)
    part = tl.program_id(1)
    steps = K // PARTS // STEP
    acc = tl.full((ROWS, TOKENS), 0.0, tl.float32)
    for k in range(steps):
        w = w_d.load([row * ROWS, (part * steps + k) * STEP])
        x = x_d.load([0, (part * steps + k) * STEP])
        acc = tl.dot(w, x.T, acc)
    ow = row * ROWS + tl.arange(0, ROWS)
    ot = tl.arange(0, TOKENS)
    at = c_ptr + ot[None, :] * N + ow[:, None]
    if PARTS == 1:
        tl.store(at, acc.to(c_ptr.dtype.element_ty), mask=ot[None, :] < M)
    else:
        lane = tl.arange(0, ROWS)[:, None] * TOKENS + ot[None, :]
        base = partial_ptr + row * PARTS * ROWS * TOKENS
        tl.store(base + part * ROWS * TOKENS + lane, acc)
        tl.debug_barrier()
        if tl.atomic_add(arrived_ptr + row, 1, sem="acq_rel") == PARTS - 1:
            total = tl.full((ROWS, TOKENS), 0.0, tl.float32)
            for p in range(PARTS):
                total += tl.load(base + p * ROWS * TOKENS + lane, cache_modifier=".cg")
            tl.store(at, total.to(c_ptr.dtype.element_ty), mask=ot[None, :] < M)
            tl.store(arrived_ptr + row, 0)


def gemv(rows: int, step: int, warps: int) -> Callable[[Any], Call]:
    """One row of tokens; sizes are compile-time constants, the loop over K is unrolled."""

    def prepare(inputs: Any) -> Call:
        x, w = inputs
        n, k = w.shape
        y = x.new_empty(1, n)

        def call() -> Any:
            gemv_kernel[(n // rows,)](x, w, y, n, k, rows, step, num_warps=warps)
            return y

        return call

    return prepare


def swapped(tile: Tile, parts: int) -> Callable[[Any], Call]:
    """`tile`: rows = tokens (padded), columns = weights a program."""

    def prepare(inputs: Any) -> Call:
        x, w = inputs
        (m, k), n = x.shape, w.shape[0]
        c = x.new_empty(m, n)
        programs = triton.cdiv(n, tile.columns)
        partial = torch.empty(
            programs * parts * tile.rows * tile.columns, dtype=torch.float32, device=x.device
        )
        arrived = torch.zeros(programs, dtype=torch.int32, device=x.device)
        x_d = TensorDescriptor.from_tensor(x, [tile.rows, tile.depth])
        w_d = TensorDescriptor.from_tensor(w, [tile.columns, tile.depth])
        fixed = {"TOKENS": tile.rows, "ROWS": tile.columns, "STEP": tile.depth, "PARTS": parts}
        fixed |= {"num_warps": tile.warps, "num_stages": tile.stages}

        def call() -> Any:
            swapped_kernel[(programs, parts)](x_d, w_d, c, partial, arrived, m, n, k, **fixed)
            return c

        return call

    return prepare
