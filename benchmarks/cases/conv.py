"""3x3 convolutions with batch norm and relu, channels innermost, as in a residual network."""

from typing import Any

import torch
from torch.nn import functional

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.contenders import compiled, eager, ours
from tensorlang.nn.conv import conv
from tensorlang.nn.conv_schedules import conv_tiles


def cases(place: Place) -> list[Case]:
    if place.dry:
        return [_case(place, 1, 16, 6)]
    return [_case(place, 32, 64, 56), _case(place, 32, 256, 14)]


def _case(place: Place, batch: int, channels: int, side: int) -> Case:
    def conv_norm_relu(x: Any, w: Any, scale: Any, shift: Any) -> Any:
        z = functional.conv2d(x, w, padding=1)
        return functional.relu(z * scale[:, None, None] + shift[:, None, None])

    def made() -> Any:
        pipeline = conv(
            *(tl.f16, tl.f16, None, tl.f16, tl.f16, None),
            extent=(3, 3),
            stride=(1, 1),
            dilation=(1, 1),
            before=(1, 1),
            after=(1, 1),
            channels_last=True,
            activation="relu",
            pixels=True,
        )
        sizes = {"B": batch, "G": 1, "O": channels, "C": channels, "H0": side, "H1": side}
        return pipeline, conv_tiles(pipeline, "triton", sizes)

    def view(inputs: Any) -> Any:
        x, w, scale, shift = inputs
        return x.permute(0, 2, 3, 1)[:, :, :, None], w[None], scale[None], shift[None]

    def inputs(at: Place) -> Any:
        x = at.randn(batch, channels, side, side, dtype=torch.float16)
        w = at.randn(channels, channels, 3, 3, dtype=torch.float16, scale=0.1)
        last = (t.to(memory_format=torch.channels_last) for t in (x, w))
        return (*last, *(at.randn(channels, dtype=torch.float16) for _ in range(2)))

    found = ours(made, view=view, result=lambda y: y[:, :, :, 0].permute(0, 3, 1, 2))
    peers = () if place.dry else compiled(conv_norm_relu, tuned=True)
    return Case(
        name=f"conv 3x3 + norm + relu {batch}x{channels}x{side}x{side} f16",
        inputs=inputs,
        reference=lambda *given: conv_norm_relu(*(t.double() for t in given)),
        contenders=(found, eager(conv_norm_relu), *peers),
        flops=2.0 * 9 * batch * side * side * channels * channels,
        quick=True,
    )
