"""The gradients of layer_norm and rms_norm, in fewer operations than `autodiff.gradients` finds.

In each row, with g = grad_out * weight and sums over the row:

    rms_norm    grad_x = g * rate - x * t,             t = sum(g * x) * rate^3 / N
    layer_norm  grad_x = (g - sum(g) / N) * rate - d * t,     t = sum(g * d) * rate^3 / N

where d = x - mean, whose sum is 0: this spares what flows back through the mean.  With weight and
bias, over rows: grad_weight = sum(grad_out * d * rate), grad_bias = sum(grad_out).

A program that holds rows in registers is bound by its instructions.  So of inputs of 16 bits, which
resolve no mean far beyond the deviations, what is linear in x is one multiply-add:

    d * t = x * t - mean * t            sum(g * d) = sum(g * x) - mean * sum(g)
"""

from collections.abc import Sequence

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Param
from tensorlang.ir.functions import fma, rsqrt
from tensorlang.nn.numbers import M, N, i, j, over, wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def norm_gradients(forward: Pipeline, wrt: Sequence[str]) -> Pipeline:
    """Of `layer_norm` or `rms_norm`; from statistics that the forward pass kept, where it did.

    With a residual x above is x + residual, which is an output, and what flows back through that
    output is added; the gradients of x and of the residual are one.
    """
    rows = _Rows(forward)
    row, outputs = over("i", M), dict[Func, list[Expr]]()
    dtypes = {a.name: a.dtype for a in forward.algorithm.inputs}
    for name in wrt:
        grad = Func(f"grad_{name}")
        given = rows.w(rows.G[row, j])
        if name in ("x", "residual"):
            slope = rows.slope_of_x(i, j)
            grad[i, j] = dtypes[name](
                slope if rows.more is None else slope + rows.w(rows.more[i, j])
            )
        elif name == "weight":
            grad[j] = dtypes[name](sum(given * rows.normed(row, j), over=row))
        else:
            grad[j] = dtypes[name](sum(given, over=row))
        outputs[grad] = [N] if name in ("weight", "bias") else [M, N]
    inputs = rows.inputs({*wrt})
    return Pipeline(f"{forward.name}_gradients", inputs=inputs, outputs=outputs)


class _Rows:
    """The statistics of rows, and what is made of them, of a norm that `normalization` makes."""

    def __init__(self, forward: Pipeline) -> None:
        dtypes = {a.name: a.dtype for a in forward.algorithm.inputs}
        made = {name for name, _ in forward.algorithm.outputs}
        x, self.w, self.centred = dtypes["x"], wide(dtypes["x"]), forward.name == "layer_norm"
        self.narrow = x.bits < self.w.bits
        self.summed = "added" in made
        self.X = Input("added" if self.summed else "x", x, [M, N])
        self.G = Input("grad_out", x, [M, N])
        self.more = Input("grad_added", x, [M, N]) if self.summed else None
        self.W = Input("weight", dtypes["weight"], [N]) if "weight" in dtypes else None
        self.kept: list[Input] = []
        self.mean: Func | Input
        self.rate: Func | Input
        self.mean, self.rate = self._given() if "kept_rate" in made else self._computed()
        self.level, self.slope = Func("level"), Func("slope")
        c, d = over("c"), over("d")
        if self.centred:
            self.level[i] = sum(self.given(i, c), over=c)
        factor = self.w(self.X[i, d]) if self.narrow else self.off(i, d)
        self.slope[i] = sum(self.given(i, d) * factor, over=d)

    def inputs(self, wrt: set[str]) -> list[Input]:
        """Those that are read: Inputs of the norm, its outputs, and gradients of these."""
        of_x = bool(wrt & {"x", "residual"})
        weight = [self.W] if self.W is not None and of_x else []
        values = [self.X] if of_x or "weight" in wrt else []
        before, after = ([], values) if self.summed else (values, [])
        more = [self.more] if self.more is not None and of_x else []
        return [*before, *weight, *after, *(self.kept if values else []), self.G, *more]

    def _given(self) -> tuple[Input, Input]:
        """Mean and rate as the forward pass kept them."""
        mean, rate = (Input(f"kept_{name}", self.w, [M]) for name in ("mean", "rate"))
        self.kept = [mean, rate] if self.centred else [rate]
        return mean, rate

    def _computed(self) -> tuple[Func, Func]:
        """Mean and rate of the rows."""
        total, self.mean, squares, rate = map(Func, ("total", "mean", "squares", "rate"))
        a, b, count, eps = over("a"), over("b"), self.w(N), Param("eps", self.w)
        if self.centred:
            total[i] = sum(self.w(self.X[i, a]), over=a)
            self.mean[i] = total[i] / count
        squares[i] = sum(self.off(i, b) * self.off(i, b), over=b)
        rate[i] = rsqrt(squares[i] / count + eps)
        return self.mean, rate

    def given(self, i: Operand, j: Operand) -> Expr:
        """g"""
        grad = self.w(self.G[i, j])
        return grad if self.W is None else grad * self.w(self.W[j])

    def off(self, i: Operand, j: Operand) -> Expr:
        """d, or x itself"""
        x = self.w(self.X[i, j])
        return x - self.mean[i] if self.centred else x

    def normed(self, i: Operand, j: Operand) -> Expr:
        """d * rate"""
        if self.narrow and self.centred:
            return fma(self.w(self.X[i, j]), self.rate[i], -(self.mean[i] * self.rate[i]))
        return self.off(i, j) * self.rate[i]

    def slope_of_x(self, i: Operand, j: Operand) -> Expr:
        """grad_x before it is rounded"""
        count, rate, slope = self.w(N), self.rate[i], self.slope[i]
        if self.narrow and self.centred:
            slope = fma(-self.level[i], self.mean[i], slope)
        tilt = slope * (rate * rate * rate) / count
        if not self.centred:
            return fma(-tilt, self.off(i, j), self.given(i, j) * rate)
        if not self.narrow:
            return (self.given(i, j) - self.level[i] / count) * rate - self.off(i, j) * tilt
        rest = fma(-(self.level[i] / count), rate, self.mean[i] * tilt)
        return fma(self.given(i, j), rate, fma(-tilt, self.w(self.X[i, j]), rest))
