"""Values that are quantised to f8 as they are made, with a scale a row or a block of 128."""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.contenders import compiled, copy_of, eager, ours
from tensorlang.nn import normalization, quantized
from tensorlang.nn.quantized_rows import in_one_read

EPS, LARGEST, LEAST, BLOCK = 1e-6, 448.0, 1e-12, 128


def cases(place: Place) -> list[Case]:
    m, n, wide = (3, 256, 256) if place.dry else (8192, 4096, 14336)
    return [
        quantize_case(place, m, n, 0),
        rms_norm_case(place, m, n, 0),
        rms_norm_case(place, m, n, BLOCK),
        silu_mul_case(place, m, wide, 0),
        silu_mul_case(place, m, wide, BLOCK),
    ]


def _split(y: Any, block: int) -> tuple[Any, Any]:
    """y as f8 and its scales, as torch writes it."""
    blocks = y.reshape(y.shape[0], -1, block or y.shape[1])
    top = blocks.abs().amax(-1, keepdim=True).clamp(min=LEAST)
    q = (blocks * (LARGEST / top)).to(torch.float8_e4m3fn)
    return q.reshape(y.shape), (top / LARGEST).squeeze(-1)


def quantize_case(place: Place, m: int, n: int, block: int, prefix: str = "") -> Case:
    def quantize(x: Any) -> Any:
        return _split(x.float(), block)

    pipeline = quantized.quantize(tl.bf16, out_dtype="f8e4m3")
    return _case(place, f"{prefix}quantize {m}x{n}", pipeline, quantize, (m, n), 1, block)


def rms_norm_case(place: Place, m: int, n: int, block: int, prefix: str = "") -> Case:
    def rms_norm(x: Any, w: Any) -> Any:
        return _split(functional.rms_norm(x.float(), (n,), w.float(), EPS), block)

    pipeline = normalization.rms_norm(tl.bf16, tl.bf16, out_dtype="f8e4m3")
    name = f"{prefix}rms_norm+quantize {m}x{n}"
    return _case(place, name, pipeline, rms_norm, (m, n), 1, block, rows=((n,),), eps=EPS)


def silu_mul_case(place: Place, m: int, n: int, block: int, prefix: str = "") -> Case:
    def silu_mul(x: Any, gate: Any) -> Any:
        return _split(functional.silu(x.float()) * gate.float(), block)

    pipeline = quantized.silu_mul(tl.bf16, tl.bf16, out_dtype="f8e4m3")
    return _case(place, f"{prefix}silu_mul+quantize {m}x{n}", pipeline, silu_mul, (m, n), 2, block)


def _case(
    place: Place,
    name: str,
    pipeline: tl.Pipeline,
    function: Callable[..., Any],
    shape: tuple[int, int],
    matrices: int,
    block: int,
    *,
    rows: tuple[tuple[int, ...], ...] = (),
    **params: float,
) -> Case:
    m, n = shape
    size = block or n

    def made() -> Any:
        sizes = {"M": m, "C": n // size, "T": size}
        return pipeline, in_one_read(pipeline, "triton", sizes)

    def view(inputs: Any) -> Any:
        return [a.reshape(*a.shape[:-1], n // size, size) for a in inputs]

    found = ours(made, view=view, result=lambda o: (o[0].reshape(shape), o[1]), **params)
    moved = m * n * (2 * matrices + 1)
    peers = () if place.dry else (*compiled(function), copy_of(moved))
    return Case(
        name=f"{name} {'per block' if block else 'per token'} bf16 to f8",
        inputs=lambda at: tuple(
            at.randn(*s, dtype=torch.bfloat16) for s in (*[shape] * matrices, *rows)
        ),
        reference=function,
        contenders=(found, eager(function), *peers),
        # One value in a few hundred lies so near the middle of two steps that either is right.
        tolerance=2e-2,
        bytes=float(moved),
        quick=not block or place.dry,
    )
