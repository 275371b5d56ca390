"""Softmax of rows, and the losses made of its logarithm.  Scheduled by `schedules.soft_rows`."""

from math import e as euler
from math import log2

from tensorlang.autodiff import gradients
from tensorlang.closing import close_records
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Const, Expr, Operand
from tensorlang.ir.functions import clamp, exp, exp2, fma, log, select
from tensorlang.ir.types import DTYPES, DType, index
from tensorlang.nn.numbers import M, N, i, over, wide
from tensorlang.nn.rows import Source, rows_for
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import max, sum


def softmax(
    x: DType, residual: DType | None = None, *, logarithm: bool, out_dtype: str
) -> Pipeline:
    """out[i, j] = exp(h[i, j]) / sum(exp(h[i, :])), or its logarithm, where h = x + residual

    The largest of a row is subtracted first, so that exp stays in range; it cancels.

    Args: out_dtype: "" for that of x; of 8 bits: `q` and `scale`, as `tensorlang.nn.rows` has them.
    """
    source, result = Source(rows_for(out_dtype), x, residual), DTYPES[out_dtype or x.name]
    row, w = source.rows.row, wide(result) if result.bits > wide(x).bits else wide(x)
    top, total = Func("top"), Func("total")
    (a, first), (b, second) = source.rows.over("a"), source.rows.over("b")
    top[row] = max(w(source(first)), over=a)
    total[row] = sum(_power(w(source(second)), top[row], result), over=b)
    z = w(source())
    if logarithm:
        value = z - top[row] - log(total[row])
    else:
        value = _power(z, top[row], result) / total[row]
    name = "log_softmax" if logarithm else "softmax"
    return Pipeline(name, inputs=source.inputs, outputs=source.left(value, out_dtype))


def _power(x: Expr, top: Expr, kept: DType) -> Expr:
    """exp(x - top), in as few operations as a result of 16 bits allows.

    Its relative error is then 2^-24 of the exponent, where x itself has 2^-9 of it or more.
    """
    if kept.bits > 16:
        return exp(x - top)
    steep = Const(log2(euler), x.dtype)
    return exp2(fma(x, steep, -(top * steep)))


def cross_entropy(
    x: DType, target: DType, weight: DType | None, *, ignore_index: int, label_smoothing: float
) -> Pipeline:
    """out[i] = -w[t] * log_softmax(x[i, :])[t], t = target[i]; 0 where t is `ignore_index`

    With label smoothing s: (1 - s) of that, and s times the mean over all classes c of
    -w[c] * log_softmax(x[i, :])[c].
    """
    return _cross_entropy(x, target, weight, ignore_index, label_smoothing, x)


def cross_entropy_with_gradient(
    x: DType,
    target: DType,
    weight: DType | None,
    grad_out: DType,
    *,
    ignore_index: int,
    label_smoothing: float,
) -> Pipeline:
    """out[i], as of `cross_entropy`, and grad_x[i, j] = grad_out[i] * d out[i] / d x[i, j]

    Whoever knows beforehand what a row counts for, as in a mean, reads the scores once for both.
    The loss has the dtype of `grad_out`.
    """
    forward = _cross_entropy(x, target, weight, ignore_index, label_smoothing, grad_out)
    derived = gradients(forward, ["x"], constant=["top"]).algorithm
    funcs = {f.name: f for f in (*forward.algorithm.funcs, *derived.funcs)}
    inputs = {a.name: a for a in (*forward.algorithm.inputs, *derived.inputs)}
    outputs = (*forward.algorithm.outputs, *derived.outputs)
    name = "cross_entropy_with_gradient"
    return Pipeline.of(close_records(name, (*inputs.values(),), (*funcs.values(),), outputs))


def _cross_entropy(
    x: DType,
    target: DType,
    weight: DType | None,
    ignore_index: int,
    label_smoothing: float,
    result: DType,
) -> Pipeline:
    w = wide(x)
    X, T = Input("x", x, [M, N]), Input("target", target, [M])
    W = None if weight is None else Input("weight", weight, [N])
    names = ["top", "total", "picked", "spread", "out"]
    top, total, picked, spread, out = (Func(n) for n in names)
    a, b, d = over("a"), over("b"), over("d")
    top[i] = max(w(X[i, a]), over=a)
    total[i] = sum(_power(w(X[i, b]), top[i], x), over=b)

    def loss(at: Operand) -> Expr:
        """-w[at] * log_softmax(x[i, :])[at]"""
        value = log(total[i]) - (w(X[i, at]) - top[i])
        return value if W is None else value * w(W[at])

    picked[i] = loss(clamp(index(T[i]), 0, N - 1))
    value = picked[i]
    if label_smoothing:
        spread[i] = sum(loss(d), over=d)
        value = (1 - label_smoothing) * value + label_smoothing / w(N) * spread[i]
    out[i] = result(select(T[i] == ignore_index, 0, value))
    inputs = [X, T] if W is None else [X, T, W]
    return Pipeline("cross_entropy", inputs=inputs, outputs={out: [M]})
