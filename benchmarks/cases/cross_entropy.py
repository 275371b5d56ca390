"""Cross-entropy over a vocabulary: reading the logits is all that counts."""

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Case, Contender, Place
from benchmarks.cases.matmul import TORCH
from benchmarks.contenders import compiled, copy_of, eager, ours
from tensorlang.nn.schedules import in_slices
from tensorlang.nn.softmax import cross_entropy

TOKENS, VOCABULARIES, SLICE = 8192, (32000, 128256), 8192


def cases(place: Place) -> list[Case]:
    return [_loss(place, 3, 70)] if place.dry else [_loss(place, TOKENS, n) for n in VOCABULARIES]


def _loss(place: Place, tokens: int, classes: int) -> Case:
    def contender(length: int, variant: str = "") -> Contender:
        def made() -> Any:
            dtype = getattr(tl, place.half)
            pipeline = cross_entropy(dtype, tl.i64, None, ignore_index=-100, label_smoothing=0.0)
            return pipeline, in_slices(pipeline, length)

        return ours(made, variant)

    tuned = (2048, 4096, 16384) if place.tune else ()
    peers = () if place.dry else (*compiled(_torch_loss), copy_of(2 * tokens * classes))
    return Case(
        name=f"cross_entropy {tokens}x{classes} {place.half}",
        inputs=lambda at: _inputs(at, tokens, classes),
        reference=lambda x, target: _torch_loss(x.double(), target),
        contenders=(
            contender(16 if place.dry else SLICE),
            *(contender(length, str(length)) for length in tuned),
            eager(_torch_loss),
            *peers,
        ),
        bytes=2.0 * tokens * classes,
        quick=True,
    )


def _inputs(place: Place, tokens: int, classes: int) -> Sequence[Any]:
    random = torch.Generator(device=place.device).manual_seed(place.seed)
    target = torch.randint(classes, (tokens,), generator=random, device=place.device)
    return place.randn(tokens, classes, dtype=TORCH[place.half]), target


def _torch_loss(x: Any, target: Any) -> Any:
    return functional.cross_entropy(x, target, reduction="none")
