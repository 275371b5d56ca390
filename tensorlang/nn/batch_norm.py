"""Norms over all but some dimensions of (batch, channels, space): batch, group, instance."""

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Param, Size, Var
from tensorlang.ir.functions import rsqrt
from tensorlang.ir.types import DType
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum

B, C, G, S = (Size(name) for name in "BCGS")
b, c, g, s = (Var(name) for name in "bcgs")


def batch_norm(x: DType, weight: DType | None, bias: DType | None) -> Pipeline:
    """out[b, c, s] = (x[b, c, s] - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c]

    mean and var, over all b and s, are outputs too: a running average is made of them.
    """
    w = wide(x)
    X, eps, r = Input("x", x, [B, C, S]), Param("eps", w), RDom("r", B, S)
    names = ["total", "mean", "squares", "var", "out"]
    total, mean, squares, var, out = map(Func, names)
    total[c] = sum(w(X[r[0], c, r[1]]), over=r)
    mean[c] = total[c] / w(B * S)
    d = w(X[r[0], c, r[1]]) - mean[c]
    squares[c] = sum(d * d, over=r)
    var[c] = squares[c] / w(B * S)
    value = (w(X[b, c, s]) - mean[c]) * rsqrt(var[c] + eps)
    inputs, value = _affine([X], value, w, (weight, bias), (c,))
    out[b, c, s] = x(value)
    shapes = {out: [B, C, S], mean: [C], var: [C]}
    return Pipeline("batch_norm", inputs=inputs, outputs=shapes)


def channelwise(
    x: DType,
    bias: DType | None,
    scale: DType | None,
    shift: DType | None,
    residual: DType | None,
    *,
    activation: str,
) -> Pipeline:
    """out[b, c, s] = activation((x[b, c, s] + bias[c]) * scale[c] + shift[c]) + residual[b, c, s]

    A batch norm with the statistics of the past, and what follows a convolution.
    """
    w, out = wide(x), Func("out")
    X = Input("x", x, [B, C, S])
    inputs, value = [X], w(X[b, c, s])
    if bias is not None:
        inputs.append(Input("bias", bias, [C]))
        value = value + w(inputs[-1][c])
    inputs, value = _affine(inputs, value, w, (scale, shift), (c,), ("scale", "shift"))
    value = ACTIVATIONS[activation](value)
    if residual is not None:
        inputs.append(Input("residual", residual, [B, C, S]))
        value = value + w(inputs[-1][b, c, s])
    out[b, c, s] = x(value)
    return Pipeline("channelwise", inputs=inputs, outputs={out: [B, C, S]})


def group_norm(x: DType, weight: DType | None, bias: DType | None) -> Pipeline:
    """out[b, g, c, s] = (x - mean[b, g]) / sqrt(var[b, g] + eps) * weight[g, c] + bias[g, c]

    Channels are (group, channel of the group).
    """
    w = wide(x)
    X, eps, r = Input("x", x, [B, G, C, S]), Param("eps", w), RDom("r", C, S)
    total, mean, squares, scale, out = map(Func, ["total", "mean", "squares", "scale", "out"])
    total[b, g] = sum(w(X[b, g, r[0], r[1]]), over=r)
    mean[b, g] = total[b, g] / w(C * S)
    d = w(X[b, g, r[0], r[1]]) - mean[b, g]
    squares[b, g] = sum(d * d, over=r)
    scale[b, g] = rsqrt(squares[b, g] / w(C * S) + eps)
    value = (w(X[b, g, c, s]) - mean[b, g]) * scale[b, g]
    inputs, value = _affine([X], value, w, (weight, bias), (g, c))
    out[b, g, c, s] = x(value)
    return Pipeline("group_norm", inputs=inputs, outputs={out: [B, G, C, S]})


def _affine(
    inputs: list[Input],
    value: Expr,
    w: DType,
    given: tuple[DType | None, DType | None],
    at: tuple[Var, ...],
    names: tuple[str, str] = ("weight", "bias"),
) -> tuple[list[Input], Expr]:
    """value * weight[at] + bias[at], each where it is given."""
    shape = [C] if len(at) == 1 else [G, C]
    for name, dtype in zip(names, given, strict=True):
        if dtype is not None:
            inputs.append(Input(name, dtype, shape))
            factor = w(inputs[-1][at])
            value = value * factor if name == names[0] else value + factor
    return inputs, value
