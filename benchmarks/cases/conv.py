"""3x3 convolutions with batch norm and relu, channels innermost: of all channels, and of each."""

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
        return [_case(place, 1, 16, 6), _case(place, 1, 16, 6, groups=16)]
    whole = [_case(place, 32, 64, 56), _case(place, 32, 256, 14)]
    return [*whole, _case(place, 32, 128, 56, groups=128)]


def _case(place: Place, batch: int, channels: int, side: int, groups: int = 1) -> Case:
    """Args: groups: one; or as many as channels, a depthwise convolution."""
    own = channels // groups

    def conv_norm_relu(x: Any, w: Any, scale: Any, shift: Any) -> Any:
        z = functional.conv2d(x, w, padding=1, groups=groups)
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
            pixels=groups == 1,
        )
        sizes = {"B": batch, "G": groups, "O": own, "C": own, "H0": side, "H1": side}
        return pipeline, conv_tiles(pipeline, "triton", sizes)

    def view(inputs: Any) -> Any:
        x, w, scale, shift = inputs
        last = x.permute(0, 2, 3, 1).unflatten(-1, (groups, own))
        return last, *(t.unflatten(0, (groups, own)) for t in (w, scale, shift))

    def inputs(at: Place) -> Any:
        x = at.randn(batch, channels, side, side, dtype=torch.float16)
        w = at.randn(channels, own, 3, 3, dtype=torch.float16, scale=0.1)
        last = (t.to(memory_format=torch.channels_last) for t in (x, w))
        return (*last, *(at.randn(channels, dtype=torch.float16) for _ in range(2)))

    kind = "conv" if groups == 1 else "depthwise"
    found = ours(made, view=view, result=lambda y: y.flatten(3).permute(0, 3, 1, 2))
    peers = () if place.dry else compiled(conv_norm_relu, tuned=True)
    return Case(
        name=f"{kind} 3x3 + norm + relu {batch}x{channels}x{side}x{side} f16",
        inputs=inputs,
        reference=lambda *given: conv_norm_relu(*(t.double() for t in given)),
        contenders=(found, eager(conv_norm_relu), *peers),
        flops=2.0 * 9 * batch * side * side * channels * own,
        quick=True,
    )
