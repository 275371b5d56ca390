"""A 3x3 convolution layer, channels last, with bias and ReLU: a register tile over 9 C products."""

from typing import Any

import numpy as np

from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32, maximum
from tensorlang import sum as total

CHANNELS, PIXELS, LANES = 16, 6, 8
"""Of the register tile: 12 vectors of sums, 2 of weights and one input fit 16 registers."""
n, y, x, c = Var("n"), Var("y"), Var("x"), Var("c")


def cases(place: Place) -> list[Case]:
    return [_case(*((1, 5, 13, 4, 16) if place.dry else (2, 80, 100, 128, 128)))]


def _case(images: int, h: int, w: int, channels: int, filters: int) -> Case:
    def output(inputs: Any) -> Any:
        return np.empty((images, h, w, filters), np.float32)

    return Case(
        name=f"conv 3x3 relu {images}x{h}x{w}x{channels} to {filters} f32",
        inputs=lambda at: (
            at.array(images, h + 2, w + 2, channels),
            at.array(3, 3, channels, filters),
            at.array(filters),
        ),
        reference=lambda *inputs: conv_of(*(a.astype(np.float64) for a in inputs)),
        contenders=(
            contenders.ours(conv),
            contenders.ours_by_formula(conv),
            contenders.numpy(conv_of),
            contenders.torch(torch_conv),
            *contenders.all_halide(halide_conv, output),
        ),
        modes=("wall",),
        tolerance=1e-5,
        flops=2.0 * 9 * images * h * w * channels * filters,
        quick=True,
    )


def conv_of(image: Any, weights: Any, bias: Any) -> Any:
    """Nine matrix products, one for each shift."""
    h, w = image.shape[1] - 2, image.shape[2] - 2
    sums = bias
    for v in range(3):
        for u in range(3):
            sums = sums + image[:, v : v + h, u : u + w] @ weights[v, u]
    return np.maximum(sums, 0)


def torch_conv(image: Any, weights: Any, bias: Any) -> Any:
    import torch

    planes = image.permute(0, 3, 1, 2)
    sums = torch.nn.functional.conv2d(planes, weights.permute(3, 2, 0, 1), bias)
    return sums.relu().permute(0, 2, 3, 1).contiguous()


def conv() -> tuple[Pipeline, Schedule]:
    N, H, W, C, F = (Size(s) for s in "NHWCF")
    r = RDom("r", 3, 3, C)
    image = Input("image", f32, [N, H + 2, W + 2, C])
    weights, bias = Input("weights", f32, [3, 3, C, F]), Input("bias", f32, [F])
    sums, relu = Func("sums"), Func("relu")
    products = image[n, y + r[0], x + r[1], r[2]] * weights[r[0], r[1], r[2], c]
    sums[n, y, x, c] = total(products, over=r)
    relu[n, y, x, c] = maximum(sums[n, y, x, c] + bias[c], 0.0)
    pipeline = Pipeline("conv", inputs=[image, weights, bias], outputs={relu: [N, H, W, F]})

    s = Schedule(pipeline)
    s[relu].tile(x, c, "xo", "co", "xi", "ci", PIXELS, CHANNELS, tail="shift_inwards")
    s[relu].reorder("co", n, y, "xo", "xi", "ci").fuse("co", n, "t").fuse("t", y, "rows")
    s[relu].parallel("rows").unroll("xi").vectorize("ci")
    s[sums].compute_at(relu, "xo").unroll(x).vectorize(c)
    update = s[sums].update(0).reorder("r_0", "r_1", "r_2", n, y, x, c)
    update.unroll(x).vectorize(c)
    return pipeline, s


def halide_conv(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    image = hl.ImageParam(hl.Float(32), 4, "image")
    weights, bias = hl.ImageParam(hl.Float(32), 4, "weights"), hl.ImageParam(hl.Float(32), 1, "b")
    hc, hx, hy, hn = (hl.Var(name) for name in ("c", "x", "y", "n"))
    r = hl.RDom([(0, image.dim(0).extent()), (0, 3), (0, 3)], "r")
    sums, relu = hl.Func("sums"), hl.Func("relu")
    sums[hc, hx, hy, hn] = hl.f32(0)
    sums[hc, hx, hy, hn] += image[r.x, hx + r.y, hy + r.z, hn] * weights[hc, r.x, r.y, r.z]
    relu[hc, hx, hy, hn] = hl.max(sums[hc, hx, hy, hn] + bias[hc], hl.f32(0))
    if by_hand:
        co, ci, xo, xi, t, rows = (hl.Var(v) for v in ("co", "ci", "xo", "xi", "t", "rows"))
        relu.tile(hc, hx, co, xo, ci, xi, CHANNELS, PIXELS).reorder(ci, xi, xo, hy, hn, co)
        relu.fuse(hn, co, t).fuse(hy, t, rows).parallel(rows)
        relu.unroll(xi).vectorize(ci, LANES).unroll(ci)
        sums.compute_at(relu, xo).unroll(hx).vectorize(hc, LANES).unroll(hc)
        update = sums.update(0).reorder(hc, hx, hy, hn, r.x, r.y, r.z)
        update.unroll(hx).vectorize(hc, LANES).unroll(hc)
    return relu, [image, weights, bias]
