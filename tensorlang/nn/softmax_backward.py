"""The gradient of softmax of rows, from its result: neither exponentials nor sums again."""

from collections.abc import Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.functions import exp
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def softmax_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `softmax`, where out[i, :] is its result:

    softmax       grad_x[i, j] = out[i, j] * (grad_out[i, j] - sum(grad_out[i, :] * out[i, :]))
    its logarithm grad_x[i, j] = grad_out[i, j] - exp(out[i, j]) * sum(grad_out[i, :])
    """
    (given,), algorithm = wrt, forward.algorithm
    x, result = algorithm.inputs[0].dtype, algorithm.func("out").dtypes[0]
    w, a = wide(result), over("a")
    Y, G = Input("out", result, [M, N]), Input("grad_out", result, [M, N])
    slope, grad = Func("slope"), Func(f"grad_{given}")
    y, g = w(Y[i, j]), w(G[i, j])
    if forward.name == "log_softmax":
        slope[i] = sum(w(G[i, a]), over=a)
        grad[i, j] = x(g - exp(y) * slope[i])
    else:
        slope[i] = sum(w(G[i, a]) * w(Y[i, a]), over=a)
        grad[i, j] = x(y * (g - slope[i]))
    inputs = [Y, G]
    return Pipeline(f"{forward.name}_gradients", inputs=inputs, outputs={grad: [M, N]})
