"""What follows a convolution, of each channel of (batch, channels, space)."""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Size, Var
from tensorlang.ir.types import DType
from tensorlang.nn.activation import ACTIVATIONS
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline

B, C, S = (Size(name) for name in "BCS")
b, c, s = (Var(name) for name in "bcs")


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

    scale and shift are a batch norm with the statistics of the past.
    """
    w, out = wide(x), Func("out")
    X = Input("x", x, [B, C, S])
    inputs, value = [X], w(X[b, c, s])
    for name, dtype in (("bias", bias), ("scale", scale), ("shift", shift)):
        if dtype is not None:
            inputs.append(Input(name, dtype, [C]))
            factor = w(inputs[-1][c])
            value = value * factor if name == "scale" else value + factor
    value = ACTIVATIONS[activation](value)
    if residual is not None:
        inputs.append(Input("residual", residual, [B, C, S]))
        value = value + w(inputs[-1][b, c, s])
    out[b, c, s] = x(value)
    return Pipeline("channelwise", inputs=inputs, outputs={out: [B, C, S]})
