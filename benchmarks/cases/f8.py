"""Matmuls of f8 with scales, and of weights of 8 and 4 bits."""

from typing import Any

import torch

import tensorlang as tl
from benchmarks.case import Case, Contender, Place
from benchmarks.contenders import compiled, eager, ours
from tensorlang.nn import quantized
from tensorlang.nn.functions.quantized import pack_int4

GROUP = 128


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_scaled(place, 4, 32, 64), _weights(place, 4, 16, 128, bits=4)]
    return [
        *(_scaled(place, m, 4096, 4096) for m in (1, 16, 64, 4096)),
        _scaled(place, 16, 14336, 4096),
        *(_weights(place, m, 4096, 4096, bits=bits) for bits in (8, 4) for m in (16, 4096)),
    ]


def _scaled(place: Place, m: int, n: int, k: int) -> Case:
    pipeline = quantized.scaled_mm(
        tl.f8e4m3, tl.f8e4m3, tl.f32, tl.f32, None, out_dtype="bf16", rowwise=True
    )

    def made() -> Any:
        return pipeline, tl.autoschedule(pipeline, "triton", {"M": m, "N": n, "K": k})

    def plain(a: Any, b: Any, sa: Any, sb: Any) -> Any:
        return (a.float() * sa[:, None]) @ (b.float() * sb[:, None]).T

    def library(a: Any, b: Any, sa: Any, sb: Any) -> Any:
        scales = {"scale_a": sa[:, None], "scale_b": sb[None, :]}
        return torch._scaled_mm(a, b.T, **scales, out_dtype=torch.bfloat16)

    def inputs(at: Place) -> Any:
        a, b = (at.randn(r, k, dtype=torch.float8_e4m3fn) for r in (m, n))
        return a, b, *(at.randn(r, dtype=torch.float32).abs() for r in (m, n))

    peer = eager(plain, "plain") if place.dry else eager(library)
    return _case(f"scaled_mm {m}x{n}x{k} f8", inputs, plain, [ours(made), peer], m, n, k)


def _weights(place: Place, m: int, n: int, k: int, *, bits: int) -> Case:
    """The peer multiplies weights that it widens first, in one compiled function."""
    half = tl.f16 if place.dry else tl.bf16
    dtype, group = (torch.float16 if place.dry else torch.bfloat16), GROUP if bits == 4 else 0
    stored = tl.u8 if bits == 4 else tl.i8
    pipeline = quantized.weight_only(half, stored, half, None, bits=bits, group=group)

    def made() -> Any:
        sizes = {"M": m, "N": n, "K": k, "C": k // GROUP}
        chosen = quantized.tiles_of_groups(pipeline, "triton", sizes)
        return pipeline, chosen or tl.autoschedule(pipeline, "triton", sizes)

    def widened(x: Any, w: Any, scale: Any) -> Any:
        if bits == 4:
            w = torch.stack(((w & 15).int() - 8, (w >> 4).int() - 8), -1).reshape(n, k)
        blocks = w.to(x.dtype).reshape(n, scale.shape[1], -1) * scale[:, :, None]
        return x @ blocks.reshape(n, k).T

    def inputs(at: Place) -> Any:
        x, scale = at.randn(m, k, dtype=dtype), at.randn(n, k // GROUP if group else 1, dtype=dtype)
        numbers = at.randn(n, k, dtype=torch.float32) * (2 if bits == 4 else 40)
        top = 7 if bits == 4 else 127
        w = numbers.round().clamp(-top, top)
        return x, pack_int4(w) if bits == 4 else w.to(torch.int8), scale

    peers = [eager(widened), *(() if place.dry else compiled(widened))]
    name = f"weight-only int{bits} {m}x{n}x{k}"

    def reference(x: Any, w: Any, scale: Any) -> Any:
        return widened(x.double(), w, scale.double())

    return _case(name, inputs, reference, [ours(made), *peers], m, n, k)


def _case(
    name: str, inputs: Any, reference: Any, found: list[Contender], m: int, n: int, k: int
) -> Case:
    return Case(
        name=name,
        inputs=inputs,
        reference=reference,
        contenders=tuple(found),
        modes=("device", "graph") if m < 4096 else ("device",),
        flops=2.0 * m * n * k,
        quick=True,
    )
