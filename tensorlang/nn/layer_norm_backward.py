"""The gradient of layer_norm, with two sums of each row fewer than by `autodiff.gradients`."""

from collections.abc import Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Param
from tensorlang.ir.functions import rsqrt
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def layer_norm_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `layer_norm`, with d = x - mean and g = grad_out * weight in each row:

    grad_x      = (g - sum(g) / N - d * (sum(g * d) * scale^2 / N)) * scale
    grad_weight = sum(grad_out * d * scale, over rows)
    grad_bias   = sum(grad_out, over rows)

    That the sum of d is 0 is what `gradients` cannot know.
    """
    dtypes = {a.name: a.dtype for a in forward.algorithm.inputs}
    w, x = wide(dtypes["x"]), dtypes["x"]
    X, G, eps = Input("x", x, [M, N]), Input("grad_out", x, [M, N]), Param("eps", w)
    W = Input("weight", dtypes["weight"], [N]) if "weight" in dtypes else None
    total, mean, squares, scale = map(Func, ("total", "mean", "squares", "scale"))
    level, slope = Func("level"), Func("slope")
    a, b, c, e, row = over("a"), over("b"), over("c"), over("e"), over("i", M)

    def off(i: Operand, j: Operand) -> Expr:
        """d, how far x lies from the mean of its row."""
        return w(X[i, j]) - mean[i]

    def given(j: Operand) -> Expr:
        """g, the gradient before the weight is applied."""
        return w(G[i, j]) if W is None else w(G[i, j]) * w(W[j])

    total[i] = sum(w(X[i, a]), over=a)
    mean[i] = total[i] / w(N)
    squares[i] = sum(off(i, b) * off(i, b), over=b)
    scale[i] = rsqrt(squares[i] / w(N) + eps)
    level[i] = sum(given(c), over=c)
    slope[i] = sum(given(e) * off(i, e), over=e)
    tilt = slope[i] * (scale[i] * scale[i]) / w(N)
    made = {
        "x": (given(j) - level[i] / w(N) - off(i, j) * tilt) * scale[i],
        "weight": sum(w(G[row, j]) * (off(row, j) * scale[row]), over=row),
        "bias": sum(w(G[row, j]), over=row),
    }
    outputs: dict[Func, list[Expr]] = {}
    for name in wrt:
        grad = Func(f"grad_{name}")
        grad[(i, j) if name == "x" else j] = dtypes[name](made[name])
        outputs[grad] = [M, N] if name == "x" else [N]
    inputs = [X] if {"x", "weight"} & {*wrt} else []
    inputs += [W] if W is not None and "x" in wrt else []
    return Pipeline("layer_norm_gradients", inputs=[*inputs, G], outputs=outputs)
