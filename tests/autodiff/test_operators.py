"""Gradients of the usual operators, against torch.autograd and finite differences."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - torch's own name for it

from tensorlang import (
    Func,
    Input,
    Pipeline,
    RDom,
    Size,
    Var,
    clamp,
    exp,
    f32,
    i32,
    max,
    maximum,
    mirror_interior,
    repeat_edge,
    rsqrt,
    sum,
)
from tests.autodiff.checking import check_torch

M, N, K, D = Size("M"), Size("N"), Size("K"), Size("D")
i, j, d = Var("i"), Var("j"), Var("d")
TARGETS = ["interpreter", pytest.param("c", marks=pytest.mark.cc)]


def arrays(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def linear_relu(dtype=f32):
    A, B, bias = Input("A", dtype, [M, K]), Input("B", dtype, [K, N]), Input("bias", dtype, [N])
    k, C, out = RDom("k", K), Func("C"), Func("out")
    C[i, j] = sum(A[i, k] * B[k, j], over=k)
    out[i, j] = maximum(C[i, j] + bias[j], 0)
    return Pipeline("linear_relu", inputs=[A, B, bias], outputs={out: [M, N]})


@pytest.mark.parametrize("target", TARGETS)
def test_linear_relu_as_torch(target):
    check_torch(
        linear_relu(), lambda a, b, c: F.relu(a @ b + c), arrays((5, 4), (4, 3), 3), target=target
    )


def conv1d(stride=1, dilation=1):
    L, O, C = Size("L"), Size("O"), Size("C")
    x, w = Input("x", f32, [C, stride * (L - 1) + 2 * dilation + 1]), Input("w", f32, [O, C, 3])
    r, y, o = RDom("r", C, 3), Func("y"), Var("o")
    y[o, i] = sum(x[r[0], i * stride + r[1] * dilation] * w[o, r[0], r[1]], over=r[0])
    return Pipeline("conv1d", inputs=[x, w], outputs={y: [O, L]})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("stride", "dilation"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 3)])
def test_conv1d_as_torch(target, stride, dilation):
    length = stride * 4 + 2 * dilation + 1
    check_torch(
        conv1d(stride, dilation),
        lambda x, w: F.conv1d(x[None], w, stride=stride, dilation=dilation)[0],
        arrays((2, length), (3, 2, 3)),
        {"L": 5},
        target=target,
    )


def softmax():
    x, r = Input("x", f32, [M, N]), RDom("r", N)
    m, e, total, y = Func("m"), Func("e"), Func("total"), Func("y")
    m[i] = max(x[i, r], over=r)
    e[i, j] = exp(x[i, j] - m[i])
    total[i] = sum(e[i, r], over=r)
    y[i, j] = e[i, j] / total[i]
    return Pipeline("softmax", inputs=[x], outputs={y: [M, N]})


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_as_torch(target):
    check_torch(softmax(), lambda x: F.softmax(x, -1), arrays((4, 7)), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_layer_norm_as_torch(target):
    x, w, b, r = Input("x", f32, [M, N]), Input("w", f32, [N]), Input("b", f32, [N]), RDom("r", N)
    mean, var, y = Func("mean"), Func("var"), Func("y")
    mean[i] = sum(x[i, r], over=r) / f32(N)
    var[i] = sum((x[i, r] - mean[i]) * (x[i, r] - mean[i]), over=r) / f32(N)
    y[i, j] = (x[i, j] - mean[i]) * rsqrt(var[i] + 1e-5) * w[j] + b[j]
    p = Pipeline("layer_norm", inputs=[x, w, b], outputs={y: [M, N]})
    check_torch(p, lambda x, w, b: F.layer_norm(x, (7,), w, b), arrays((4, 7), 7, 7), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_rms_norm_as_torch(target):
    x, w, r, y = Input("x", f32, [M, N]), Input("w", f32, [N]), RDom("r", N), Func("y")
    y[i, j] = x[i, j] * rsqrt(sum(x[i, r] * x[i, r], over=r) / f32(N) + 1e-5) * w[j]
    p = Pipeline("rms_norm", inputs=[x, w], outputs={y: [M, N]})
    check_torch(p, lambda x, w: F.rms_norm(x, (7,), w, 1e-5), arrays((4, 7), 7), target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_cumulative_sum_as_torch(target):
    x, y, r = Input("x", f32, [M, N]), Func("y"), RDom("r", (1, N - 1))
    y[i, j] = x[i, j]
    y[i, r] = y[i, r - 1] + y[i, r]
    p = Pipeline("cumsum", inputs=[x], outputs={y: [M, N]})
    check_torch(p, lambda x: torch.cumsum(x, 1), arrays((3, 6)), {"M": 3, "N": 6}, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("window", "stride"), [(2, 2), (3, 1), (3, 2), (2, 3)])
def test_max_pool_as_torch(target, window, stride):
    x, y, r = Input("x", f32, [M, stride * (N - 1) + window]), Func("y"), RDom("r", window)
    y[i, j] = max(x[i, j * stride + r], over=r)
    p = Pipeline("max_pool", inputs=[x], outputs={y: [M, N]})
    check_torch(
        p,
        lambda x: F.max_pool1d(x[None], window, stride)[0],
        arrays((3, stride * 4 + window)),
        {"N": 5},
        target=target,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_embedding_as_torch(target):
    ids, table, y = Input("ids", i32, [N]), Input("table", f32, [K, D]), Func("y")
    y[i, d] = table[clamp(ids[i], 0, K - 1), d]
    p = Pipeline("embedding", inputs=[ids, table], outputs={y: [N, D]})
    chosen = np.array([3, 1, 3, 0, 3, 2], np.int32)
    check_torch(
        p,
        lambda n, t: F.embedding(n, t),
        [chosen, *arrays((5, 4))],
        {"K": 5},
        target=target,
    )


@pytest.mark.parametrize("target", TARGETS)
def test_attention_as_torch(target):
    Q, Kt, V = Input("Q", f32, [M, D]), Input("K", f32, [N, D]), Input("V", f32, [N, D])
    r, c = RDom("r", D), RDom("c", N)
    S, m, e, O = Func("S"), Func("m"), Func("p"), Func("O")
    S[i, j] = sum(Q[i, r] * Kt[j, r], over=r) * 0.5
    m[i] = max(S[i, c], over=c)
    e[i, j] = exp(S[i, j] - m[i])
    O[i, d] = sum(e[i, c] * V[c, d], over=c) / sum(e[i, c], over=c)
    p = Pipeline("attention", inputs=[Q, Kt, V], outputs={O: [M, D]})
    check_torch(
        p,
        lambda q, k, v: torch.softmax(q @ k.T * 0.5, -1) @ v,
        arrays((3, 4), (5, 4), (5, 4)),
        target=target,
    )


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("edge", [mirror_interior, repeat_edge])
def test_blur_at_an_edge_as_torch(target, edge):
    x, b = Input("x", f32, [M, N]), Func("b")
    e = edge(x)
    b[i, j] = e[i, j - 1] + 2 * e[i, j] * e[i + 1, j] + e[i, j + 1]
    p = Pipeline("blur", inputs=[x], outputs={b: [M, N]})
    mode = "reflect" if edge is mirror_interior else "replicate"

    def blur(x):
        y = F.pad(x[None, None], (1, 1, 1, 1), mode)[0, 0]
        return y[1:-1, :-2] + 2 * y[1:-1, 1:-1] * y[2:, 1:-1] + y[1:-1, 2:]

    check_torch(p, blur, arrays((4, 5)), target=target)
