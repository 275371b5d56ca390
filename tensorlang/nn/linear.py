"""Linear layers with an epilogue: bias, activation, residual."""

from tensorlang.func import Func, Input
from tensorlang.ir.types import DType
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import K, M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def linear(
    x: DType, weight: DType, bias: DType | None, residual: DType | None, *, activation: str
) -> Pipeline:
    """out[i, j] = activation(sum(x[i, k] * weight[j, k], over=k) + bias[j]) + residual[i, j]"""
    w, k = wide(x), over("k", K)
    X, W = Input("x", x, [M, K]), Input("weight", weight, [N, K])
    product, out = Func("product"), Func("out")
    product[i, j] = sum(w(X[i, k]) * w(W[j, k]), over=k)
    inputs, value = [X, W], product[i, j]
    if bias is not None:
        inputs.append(Input("bias", bias, [N]))
        value = value + w(inputs[-1][j])
    value = ACTIVATIONS[activation](value)
    if residual is not None:
        inputs.append(Input("residual", residual, [M, N]))
        value = value + w(inputs[-1][i, j])
    out[i, j] = x(value)
    return Pipeline("linear", inputs=inputs, outputs={out: [M, N]})
