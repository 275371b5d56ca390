"""The gradients of layer_norm and rms_norm, in fewer operations than `autodiff.gradients` finds.

In each row, with g = grad_out * weight and sums over the row:

    rms_norm    grad_x = g * scale - x * t,             t = sum(g * x) * scale^3 / N
    layer_norm  grad_x = (g - sum(g) / N) * scale - d * t,     t = sum(g * d) * scale^3 / N

where d = x - mean, whose sum is 0: this spares what flows back through the mean.  With weight and
bias, over rows: grad_weight = sum(grad_out * d * scale), grad_bias = sum(grad_out).

A program that holds rows in registers is bound by its instructions.  So of inputs of 16 bits, which
resolve no mean far beyond the deviations, what is linear in x is one multiply-add:

    d * t = x * t - mean * t            sum(g * d) = sum(g * x) - mean * sum(g)
"""

from collections.abc import Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Param
from tensorlang.ir.functions import fma, rsqrt
from tensorlang.ir.types import DType
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def norm_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `layer_norm` or `rms_norm`; from statistics that the forward pass kept, where it did."""
    dtypes = {a.name: a.dtype for a in forward.algorithm.inputs}
    kept = len(forward.algorithm.outputs) > 1
    rows = _Rows(dtypes, centred=forward.name == "layer_norm", kept=kept)
    row, outputs = over("i", M), dict[Func, list[Expr]]()
    for name in wrt:
        grad = Func(f"grad_{name}")
        given = rows.w(rows.G[row, j])
        if name == "x":
            grad[i, j] = dtypes[name](rows.slope_of_x(i, j))
        elif name == "weight":
            grad[j] = dtypes[name](sum(given * rows.normed(row, j), over=row))
        else:
            grad[j] = dtypes[name](sum(given, over=row))
        outputs[grad] = [M, N] if name == "x" else [N]
    inputs = [rows.X] if {"x", "weight"} & {*wrt} else []
    inputs += [rows.W] if rows.W is not None and "x" in wrt else []
    inputs += rows.kept if {"x", "weight"} & {*wrt} else []
    return Pipeline(f"{forward.name}_gradients", inputs=[*inputs, rows.G], outputs=outputs)


class _Rows:
    """The statistics of rows, and what is made of them.

    Args:
        dtypes: of the Inputs of the norm, by name.
        centred: whether rows are brought to mean 0.
        kept: whether mean and scale are given; else they are computed again.
    """

    def __init__(self, dtypes: dict[str, DType], *, centred: bool, kept: bool) -> None:
        x, self.w, self.centred = dtypes["x"], wide(dtypes["x"]), centred
        self.narrow = x.bits < self.w.bits
        self.X, self.G = Input("x", x, [M, N]), Input("grad_out", x, [M, N])
        self.W = Input("weight", dtypes["weight"], [N]) if "weight" in dtypes else None
        self.kept: list[Input] = []
        self.mean: Func | Input
        self.scale: Func | Input
        self.mean, self.scale = self._given() if kept else self._computed()
        self.level, self.slope = Func("level"), Func("slope")
        c, d = over("c"), over("d")
        if centred:
            self.level[i] = sum(self.given(i, c), over=c)
        factor = self.w(self.X[i, d]) if self.narrow else self.off(i, d)
        self.slope[i] = sum(self.given(i, d) * factor, over=d)

    def _given(self) -> tuple[Input, Input]:
        """Mean and scale as the forward pass kept them."""
        mean, scale = (Input(f"kept_{name}", self.w, [M]) for name in ("mean", "scale"))
        self.kept = [mean, scale] if self.centred else [scale]
        return mean, scale

    def _computed(self) -> tuple[Func, Func]:
        """Mean and scale of the rows."""
        total, self.mean, squares, scale = map(Func, ("total", "mean", "squares", "scale"))
        a, b, count, eps = over("a"), over("b"), self.w(N), Param("eps", self.w)
        if self.centred:
            total[i] = sum(self.w(self.X[i, a]), over=a)
            self.mean[i] = total[i] / count
        squares[i] = sum(self.off(i, b) * self.off(i, b), over=b)
        scale[i] = rsqrt(squares[i] / count + eps)
        return self.mean, scale

    def given(self, i: Operand, j: Operand) -> Expr:
        """g"""
        grad = self.w(self.G[i, j])
        return grad if self.W is None else grad * self.w(self.W[j])

    def off(self, i: Operand, j: Operand) -> Expr:
        """d, or x itself"""
        x = self.w(self.X[i, j])
        return x - self.mean[i] if self.centred else x

    def normed(self, i: Operand, j: Operand) -> Expr:
        """d * scale"""
        if self.narrow and self.centred:
            return fma(self.w(self.X[i, j]), self.scale[i], -(self.mean[i] * self.scale[i]))
        return self.off(i, j) * self.scale[i]

    def slope_of_x(self, i: Operand, j: Operand) -> Expr:
        """grad_x before it is rounded"""
        count, scale, slope = self.w(N), self.scale[i], self.slope[i]
        if self.narrow and self.centred:
            slope = fma(-self.level[i], self.mean[i], slope)
        tilt = slope * (scale * scale * scale) / count
        if not self.centred:
            return fma(-tilt, self.off(i, j), self.given(i, j) * scale)
        if not self.narrow:
            return (self.given(i, j) - self.level[i] / count) * scale - self.off(i, j) * tilt
        rest = fma(-(self.level[i] / count), scale, self.mean[i] * tilt)
        return fma(self.given(i, j), scale, fma(-tilt, self.w(self.X[i, j]), rest))
