"""Softmax, layer_norm and gelu of f32 rows: what NumPy takes several passes for."""

from typing import Any

import numpy as np

import tensorlang as tl
from benchmarks.case import Case, Place
from benchmarks.cpu import contenders
from tensorlang import Func, Input, Pipeline, RDom, Schedule, Size, Var, f32

LANES, EPS = 8, 1e-5
M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def cases(place: Place) -> list[Case]:
    m, n = (5, 40) if place.dry else (2048, 1024)
    return [_softmax(m, n), _layer_norm(m, n), _gelu(m, n)]


def _like_first(inputs: Any) -> Any:
    return np.empty_like(inputs[0])


def _case(
    name: str, shapes: tuple[tuple[int, ...], ...], ours: Any, theirs: Any, numpy: Any, torch: Any
) -> Case:
    return Case(
        name=f"{name} {shapes[0][0]}x{shapes[0][1]} f32",
        inputs=lambda at: tuple(at.array(*shape) for shape in shapes),
        reference=lambda *inputs: numpy(*(a.astype(np.float64) for a in inputs)),
        contenders=(
            contenders.ours(ours),
            contenders.ours_by_formula(ours),
            contenders.numpy(numpy),
            contenders.torch(torch),
            contenders.torch(torch, compiled=True),
            contenders.halide(theirs, _like_first),
        ),
        modes=("wall",),
        tolerance=1e-5,
        bytes=8.0 * shapes[0][0] * shapes[0][1],
        quick=True,
    )


def _rows(s: Schedule, output: str, reductions: tuple[str, ...]) -> None:
    """Rows in parallel; each reduction keeps a vector of partial results until its row ends."""
    s[output].parallel(i).split(j, "jo", "ji", LANES).vectorize("ji")
    for name in reductions:
        s[name].compute_at(output, i)
        s[name].update(0).split("k", "ko", "ki", LANES)
        partial = s[name].update(0).rfactor("ki", "u")
        s[partial].compute_at(output, i).vectorize("u")
        s[partial].update(0).reorder("ko", "u").vectorize("u")


def _halide_rows(hl: Any, output: Any, reductions: tuple[tuple[Any, Any], ...]) -> None:
    hj, hi = hl.Var("j"), hl.Var("i")
    output.parallel(hi).vectorize(hj, LANES)
    for func, k in reductions:
        ko, ki, u = hl.RVar("ko"), hl.RVar("ki"), hl.Var("u")
        func.compute_at(output, hi)
        partial = func.update(0).split(k, ko, ki, LANES).rfactor(ki, u)
        partial.compute_at(output, hi).vectorize(u)
        partial.update(0).reorder(u, ko).vectorize(u)


# ----------------------------------------------------------------------------------------- softmax


def _softmax(m: int, n: int) -> Case:
    def torch(x: Any) -> Any:
        return x.softmax(-1)

    return _case("softmax", ((m, n),), softmax, halide_softmax, softmax_of, torch)


def softmax_of(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def softmax() -> tuple[Pipeline, Schedule]:
    k = RDom("k", N)
    x = Input("x", f32, [M, N])
    top, e, total, y = Func("top"), Func("e"), Func("total"), Func("y")
    top[i] = tl.max(x[i, k], over=k)
    e[i, j] = tl.exp(x[i, j] - top[i])
    total[i] = tl.sum(e[i, k], over=k)
    y[i, j] = e[i, j] * (1.0 / total[i])
    pipeline = Pipeline("softmax", inputs=[x], outputs={y: [M, N]})
    s = Schedule(pipeline)
    _rows(s, "y", ("top", "total"))
    # Kept, so that the exponentials are taken once.
    s[e].compute_at(y, i).split(j, "jo", "ji", LANES).vectorize("ji")
    return pipeline, s


def halide_softmax(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    x = hl.ImageParam(hl.Float(32), 2, "x")
    hj, hi = hl.Var("j"), hl.Var("i")
    k, n = hl.RDom([(0, x.width())], "k"), hl.RDom([(0, x.width())], "n")
    top, e, total, y = (hl.Func(name) for name in ("top", "e", "total", "y"))
    top[hi] = hl.f32(-3.4028234663852886e38)
    top[hi] = hl.max(top[hi], x[k, hi])
    e[hj, hi] = hl.exp(x[hj, hi] - top[hi])
    total[hi] = hl.f32(0)
    total[hi] += e[n, hi]
    y[hj, hi] = e[hj, hi] * (hl.f32(1) / total[hi])
    if by_hand:
        _halide_rows(hl, y, ((top, k), (total, n)))
        e.compute_at(y, hi).vectorize(hj, LANES)
    return y, [x]


# -------------------------------------------------------------------------------------- layer_norm


def _layer_norm(m: int, n: int) -> Case:
    def torch(x: Any, w: Any, b: Any) -> Any:
        import torch

        return torch.nn.functional.layer_norm(x, (n,), w, b, EPS)

    shapes = ((m, n), (n,), (n,))
    return _case("layer_norm", shapes, layer_norm, halide_layer_norm, layer_norm_of, torch)


def layer_norm_of(x: Any, w: Any, b: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    return centred / np.sqrt(variance + x.dtype.type(EPS)) * w + b


def layer_norm() -> tuple[Pipeline, Schedule]:
    k = RDom("k", N)
    x, w, b = Input("x", f32, [M, N]), Input("w", f32, [N]), Input("b", f32, [N])
    total, squares, y = Func("total"), Func("squares"), Func("y")
    total[i] = tl.sum(x[i, k], over=k)

    def centred(at: Any) -> Any:
        return x[i, at] - total[i] / f32(N)

    squares[i] = tl.sum(centred(k) * centred(k), over=k)
    scale = 1.0 / tl.sqrt(squares[i] / f32(N) + EPS)
    y[i, j] = centred(j) * scale * w[j] + b[j]
    pipeline = Pipeline("layer_norm", inputs=[x, w, b], outputs={y: [M, N]})
    s = Schedule(pipeline)
    _rows(s, "y", ("total", "squares"))
    return pipeline, s


def halide_layer_norm(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    x, w, b = (hl.ImageParam(hl.Float(32), d, n) for n, d in (("x", 2), ("w", 1), ("b", 1)))
    hj, hi = hl.Var("j"), hl.Var("i")
    k, n = hl.RDom([(0, x.width())], "k"), hl.RDom([(0, x.width())], "n")
    total, squares, y = (hl.Func(name) for name in ("total", "squares", "y"))
    length = hl.f32(x.width())
    total[hi] = hl.f32(0)
    total[hi] += x[k, hi]

    def centred(at: Any) -> Any:
        return x[at, hi] - total[hi] / length

    squares[hi] = hl.f32(0)
    squares[hi] += centred(n) * centred(n)
    scale = hl.f32(1) / hl.sqrt(squares[hi] / length + hl.f32(EPS))
    y[hj, hi] = centred(hj) * scale * w[hj] + b[hj]
    if by_hand:
        _halide_rows(hl, y, ((total, k), (squares, n)))
    return y, [x, w, b]


# -------------------------------------------------------------------------------------------- gelu

ROOT, CUBE = 0.7978845608028654, 0.044715


def _gelu(m: int, n: int) -> Case:
    def torch(x: Any) -> Any:
        import torch

        return torch.nn.functional.gelu(x, approximate="tanh")

    return _case("gelu", ((m, n),), gelu, halide_gelu, gelu_of, torch)


def gelu_of(x: Any) -> Any:
    one, half = x.dtype.type(1), x.dtype.type(0.5)
    inner = x.dtype.type(ROOT) * x * (one + x.dtype.type(CUBE) * x * x)
    return half * x * (one + np.tanh(inner))


def gelu() -> tuple[Pipeline, Schedule]:
    x, y = Input("x", f32, [M, N]), Func("y")
    v = x[i, j]
    y[i, j] = 0.5 * v * (1.0 + tl.tanh(ROOT * v * (1.0 + CUBE * v * v)))
    pipeline = Pipeline("gelu", inputs=[x], outputs={y: [M, N]})
    s = Schedule(pipeline)
    s[y].parallel(i).split(j, "jo", "ji", LANES).vectorize("ji")
    return pipeline, s


def halide_gelu(hl: Any, by_hand: bool) -> contenders.HalideFunc:
    x, y = hl.ImageParam(hl.Float(32), 2, "x"), hl.Func("y")
    hj, hi = hl.Var("j"), hl.Var("i")
    v, one = x[hj, hi], hl.f32(1)
    inner = hl.f32(ROOT) * v * (one + hl.f32(CUBE) * v * v)
    y[hj, hi] = hl.f32(0.5) * v * (one + hl.tanh(inner))
    if by_hand:
        y.parallel(hi).vectorize(hj, LANES)
    return y, [x]
