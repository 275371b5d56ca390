"""Matmuls with an epilogue, bias, activation, residual: of rows and of batches."""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Size, Var
from tensorlang.ir.types import DType
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import K, M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum

B = Size("B")
b = Var("b")


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


def bmm(
    x: DType, weight: DType, bias: DType | None, residual: DType | None, *, activation: str
) -> Pipeline:
    """out[b, i, j] = activation(sum(x[b, i, k] * weight[b, k, j], over=k) + bias[b, j])

    And residual[b, i, j] is added.
    """
    w, k = wide(x), over("k", K)
    X, W = Input("x", x, [B, M, K]), Input("weight", weight, [B, K, N])
    product, out = Func("product"), Func("out")
    product[b, i, j] = sum(w(X[b, i, k]) * w(W[b, k, j]), over=k)
    inputs, value = [X, W], product[b, i, j]
    if bias is not None:
        inputs.append(Input("bias", bias, [B, N]))
        value = value + w(inputs[-1][b, j])
    value = ACTIVATIONS[activation](value)
    if residual is not None:
        inputs.append(Input("residual", residual, [B, M, N]))
        value = value + w(inputs[-1][b, i, j])
    out[b, i, j] = x(value)
    return Pipeline("bmm", inputs=inputs, outputs={out: [B, M, N]})
