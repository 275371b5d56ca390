"""The operators of `tensorlang.nn` under their own schedules, over many shapes each.

Rows are as long and as many as in tritonbench's defaults, which Helion's gates take; of its 98
lengths of softmax a few.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cases import quant
from benchmarks.contenders import compiled, eager, ours
from tensorlang.nn import normalization, softmax
from tensorlang.nn.backward import norm_rows
from tensorlang.nn.rotary import rope
from tensorlang.nn.schedules import soft_rows
from tensorlang.nn.softmax_backward import softmax_rows

EPS = 1e-6
PREFIX = "operator "
SOFTMAX = (4096, (256, 640, 1280, 2560, 5120, 8192, 12672))
LAYER_NORM = (4096, (1024, 2560, 5120, 8192, 15872))
RMS_NORM = (2048, tuple(1 << k for k in range(10, 16)))
CROSS_ENTROPY = (16384, (4096, 16384, 65536))
ROPE = (32, (1024, 4096, 16384))
# Tokens and features of what leaves as f8; of gates.
QUANTISED = ((256, 4096), (2048, 4096), (2048, 8192), (8192, 8192))
GATED = ((256, 14336), (2048, 14336), (8192, 8192))
BLOCK = 128


def cases(place: Place) -> list[Case]:
    if place.dry:
        rows = [make(place, 3, 40) for make in (_softmax, _layer_norm, _rms_norm, _cross_entropy)]
        return [*rows, _rope(place, 2, 5), *_quantised(place, ((3, 256),), ((3, 256),))]
    families = (
        (_softmax, SOFTMAX),
        (_layer_norm, LAYER_NORM),
        (_rms_norm, RMS_NORM),
        (_cross_entropy, CROSS_ENTROPY),
        (_rope, ROPE),
    )
    made = [make(place, m, n) for make, (m, lengths) in families for n in lengths]
    return [*made, *_quantised(place, QUANTISED, GATED)]


def _quantised(
    place: Place, rows: tuple[tuple[int, int], ...], gates: tuple[tuple[int, int], ...]
) -> list[Case]:
    made = [quant.quantize_case(place, *shape, 0, PREFIX) for shape in rows]
    made += [quant.rms_norm_case(place, *shape, b, PREFIX) for b in (0, BLOCK) for shape in rows]
    return [*made, *(quant.silu_mul_case(place, *shape, 0, PREFIX) for shape in gates)]


def _softmax(place: Place, m: int, n: int) -> Case:
    pipeline = softmax.softmax(tl.bf16, logarithm=False, out_dtype="")
    return _case(
        place, f"softmax {m}x{n}", pipeline, softmax_rows, _softmax_of, ((m, n),), {"M": m, "N": n}
    )


def _softmax_of(x: Any) -> Any:
    return functional.softmax(x, -1)


def _layer_norm(place: Place, m: int, n: int) -> Case:
    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        return functional.layer_norm(x, (n,), w, b, EPS)

    pipeline = normalization.layer_norm(tl.bf16, tl.bf16, tl.bf16)
    shapes, sizes = ((m, n), (n,), (n,)), {"M": m, "N": n}
    name = f"layer_norm {m}x{n}"
    return _case(place, name, pipeline, norm_rows, layer_norm, shapes, sizes, eps=EPS)


def _rms_norm(place: Place, m: int, n: int) -> Case:
    def rms_norm(x: Any, w: Any) -> Any:
        return functional.rms_norm(x, (n,), w, EPS)

    pipeline = normalization.rms_norm(tl.bf16, tl.bf16)
    shapes, sizes = ((m, n), (n,)), {"M": m, "N": n}
    name = f"rms_norm {m}x{n}"
    return _case(place, name, pipeline, norm_rows, rms_norm, shapes, sizes, eps=EPS)


def _cross_entropy(place: Place, m: int, n: int) -> Case:
    def loss(x: Any, target: Any) -> Any:
        return functional.cross_entropy(x, target, reduction="none")

    pipeline = softmax.cross_entropy(tl.bf16, tl.i64, None, ignore_index=-100, label_smoothing=0.0)
    return _case(
        *(place, f"cross_entropy {m}x{n}", pipeline, soft_rows, loss, ((m, n),)),
        {"M": m, "N": n},
        more=lambda at: (torch.arange(m, device=at.device) % n,),
    )


def _rope(place: Place, heads: int, positions: int) -> Case:
    features = 16 if place.dry else 128

    def turned(x: Any, cos: Any, sin: Any) -> Any:
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    pipeline = rope(tl.bf16, tl.bf16, tl.bf16, features=features, interleaved=False)
    shapes = ((heads, positions, features), *[(positions, features // 2)] * 2)
    name = f"rope {positions}x{heads}x{features}"
    sizes = {"Z": heads, "S": positions}
    return _case(place, name, pipeline, lambda *_: None, turned, shapes, sizes)


def _case(
    place: Place,
    name: str,
    pipeline: tl.Pipeline,
    schedule: Callable[..., Any],
    function: Callable[..., Any],
    shapes: tuple[tuple[int, ...], ...],
    sizes: dict[str, int],
    *,
    more: Callable[[Place], tuple[Any, ...]] = lambda _: (),
    **params: float,
) -> Case:
    """Under the schedule of the operator, or the formula's where it has none.

    Args: more: the inputs that are no normal numbers.
    """

    def made() -> Any:
        chosen = schedule(pipeline, "triton", sizes)
        return pipeline, chosen or tl.autoschedule(pipeline, "triton", sizes)

    def inputs(at: Place) -> Any:
        return *(at.randn(*s, dtype=torch.bfloat16) for s in shapes), *more(at)

    def exact(*given: Any) -> Any:
        return function(*(a.double() if a.is_floating_point() else a for a in given))

    peers = () if place.dry else compiled(function)
    return Case(
        name=f"{PREFIX}{name} bf16",
        inputs=inputs,
        reference=exact,
        contenders=(ours(made, **params), eager(function), *peers),
        quick=place.dry,
    )
