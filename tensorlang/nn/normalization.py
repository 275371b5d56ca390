"""Rows brought to mean 0 and variance 1, or to mean square 1.  Scheduled by `schedules.rows`."""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Param, Size
from tensorlang.ir.functions import rsqrt
from tensorlang.ir.types import DType
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def layer_norm(x: DType, weight: DType | None, bias: DType | None) -> Pipeline:
    """out[i, j] = (x[i, j] - mean[i]) / sqrt(var[i] + eps) * weight[j] + bias[j]"""
    return _layer_norm(x, weight, bias, kept=False)


def layer_norm_kept(x: DType, weight: DType | None, bias: DType | None) -> Pipeline:
    """`layer_norm`, and kept_mean[i] = mean[i], kept_scale[i] = 1 / sqrt(var[i] + eps)"""
    return _layer_norm(x, weight, bias, kept=True)


def rms_norm(x: DType, weight: DType | None) -> Pipeline:
    """out[i, j] = x[i, j] / sqrt(mean(x[i, :]^2) + eps) * weight[j]"""
    return _rms_norm(x, weight, kept=False)


def rms_norm_kept(x: DType, weight: DType | None) -> Pipeline:
    """`rms_norm`, and kept_scale[i] = 1 / sqrt(mean(x[i, :]^2) + eps)"""
    return _rms_norm(x, weight, kept=True)


def _layer_norm(x: DType, weight: DType | None, bias: DType | None, *, kept: bool) -> Pipeline:
    w = wide(x)
    X, eps, a, b = Input("x", x, [M, N]), Param("eps", w), over("a"), over("b")
    names = ["total", "mean", "squares", "scale", "out"]
    total, mean, squares, scale, out = map(Func, names)
    total[i] = sum(w(X[i, a]), over=a)
    mean[i] = total[i] / w(N)
    squares[i] = sum((w(X[i, b]) - mean[i]) * (w(X[i, b]) - mean[i]), over=b)
    scale[i] = rsqrt(squares[i] / w(N) + eps)
    inputs, value = [X], (w(X[i, j]) - mean[i]) * scale[i]
    if weight is not None:
        inputs.append(Input("weight", weight, [N]))
        value = value * w(inputs[-1][j])
    if bias is not None:
        inputs.append(Input("bias", bias, [N]))
        value = value + w(inputs[-1][j])
    out[i, j] = x(value)
    return Pipeline("layer_norm", inputs=inputs, outputs=_outputs(out, [mean, scale], kept))


def _rms_norm(x: DType, weight: DType | None, *, kept: bool) -> Pipeline:
    w = wide(x)
    X, eps, a = Input("x", x, [M, N]), Param("eps", w), over("a")
    squares, scale, out = Func("squares"), Func("scale"), Func("out")
    squares[i] = sum(w(X[i, a]) * w(X[i, a]), over=a)
    scale[i] = rsqrt(squares[i] / w(N) + eps)
    inputs, value = [X], w(X[i, j]) * scale[i]
    if weight is not None:
        inputs.append(Input("weight", weight, [N]))
        value = value * w(inputs[-1][j])
    out[i, j] = x(value)
    return Pipeline("rms_norm", inputs=inputs, outputs=_outputs(out, [scale], kept))


def _outputs(out: Func, statistics: list[Func], kept: bool) -> dict[Func, list[Size]]:
    """The outputs: the rows, and where they are kept a copy of each statistic."""
    outputs = {out: [M, N]}
    for statistic in statistics if kept else ():
        copy = Func(f"kept_{statistic.name}")
        copy[i] = statistic[i]
        outputs[copy] = [M]
    return outputs
