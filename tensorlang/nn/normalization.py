"""Norms: rows, groups and channels brought to mean 0 and variance 1, or to mean square 1.

    h = x, or x + residual              where rows lie: `tensorlang.nn.rows`

Each leaves in the dtype of x, or where `out_dtype` has 8 bits as q and scale.  Rows are scheduled
by `norm_rows`.
"""

from tensorlang.func import Func, Input
from tensorlang.ir.expr import Param
from tensorlang.ir.functions import rsqrt
from tensorlang.ir.types import DType
from tensorlang.nn.rows import CHANNELS, GROUPS, Outputs, Rows, Source, rows_for
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum


def layer_norm(
    x: DType,
    weight: DType | None,
    bias: DType | None,
    residual: DType | None = None,
    *,
    kept: bool = False,
    out_dtype: str = "",
) -> Pipeline:
    """out[i, j] = (h[i, j] - mean[i]) * rate[i] * weight[j] + bias[j],  rate = 1/sqrt(var + eps)

    Args: kept: whether `kept_mean` and `kept_rate` are outputs too, for the gradient.
    """
    source = Source(rows_for(out_dtype), x, residual, weight, bias)
    return _centred("layer_norm", source, kept, out_dtype)


def group_norm(
    x: DType,
    weight: DType | None,
    bias: DType | None,
    residual: DType | None = None,
    *,
    out_dtype: str = "",
) -> Pipeline:
    """out[b, g, c, s] = (h - mean[b, g]) * rate[b, g] * weight[g, c] + bias[g, c]

    Channels are (group, channel of the group).
    """
    source = Source(GROUPS, x, residual, weight, bias)
    return _centred("group_norm", source, False, out_dtype)


def rms_norm(
    x: DType,
    weight: DType | None,
    residual: DType | None = None,
    *,
    kept: bool = False,
    out_dtype: str = "",
) -> Pipeline:
    """out[i, j] = h[i, j] * rate[i] * weight[j],  rate = 1/sqrt(mean(h[i, :]^2) + eps)

    Args: kept: whether `kept_rate` is an output too, for the gradient.
    """
    source = Source(rows_for(out_dtype), x, residual, weight)
    row, w, squares, rate = source.rows.row, source.wide, Func("squares"), Func("rate")
    domain, at = source.rows.over("a")
    squares[row] = sum(source(at) * source(at), over=domain)
    rate[row] = rsqrt(squares[row] / w(source.rows.count()) + Param("eps", w))
    outputs = source.left(source.affine(source() * rate[row]), out_dtype)
    statistics = _kept(source.rows, rate) if kept else {}
    outputs = {**outputs, **source.added(), **statistics}
    return Pipeline("rms_norm", inputs=source.inputs, outputs=outputs)


def batch_norm(
    x: DType,
    weight: DType | None,
    bias: DType | None,
    residual: DType | None,
    mean: DType | None,
    var: DType | None,
    *,
    out_dtype: str = "",
) -> Pipeline:
    """out[b, c, s] = (h[b, c, s] - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c]

    mean and var are given; or those of h over all b and s, and then outputs too, of which a
    running average is made.
    """
    source = Source(CHANNELS, x, residual, weight, bias)
    row, w, shape = source.rows.row, source.wide, source.rows.sizes(source.rows.row)
    inputs, statistics = source.inputs, Outputs()
    if mean is not None and var is not None:
        given = Input("mean", mean, shape), Input("var", var, shape)
        inputs += given
        level, spread = (w(a[row]) for a in given)
    else:
        middle, squares = _moments(source)
        found = Func("var")
        found[row] = squares[row] / w(source.rows.count())
        level, spread = middle[row], found[row]
        statistics = {middle: shape, found: shape}
    value = (source() - level) * rsqrt(spread + Param("eps", w))
    outputs = {**source.left(source.affine(value), out_dtype), **source.added(), **statistics}
    return Pipeline("batch_norm", inputs=inputs, outputs=outputs)


def _centred(name: str, source: Source, kept: bool, out_dtype: str) -> Pipeline:
    """(h - mean) * rate * weight + bias"""
    row, w, rate = source.rows.row, source.wide, Func("rate")
    mean, squares = _moments(source)
    rate[row] = rsqrt(squares[row] / w(source.rows.count()) + Param("eps", w))
    value = source.affine((source() - mean[row]) * rate[row])
    statistics = _kept(source.rows, mean, rate) if kept else {}
    outputs = {**source.left(value, out_dtype), **source.added(), **statistics}
    return Pipeline(name, inputs=source.inputs, outputs=outputs)


def _moments(source: Source) -> tuple[Func, Func]:
    """The mean of each row, and the sum of the squares of what is beside it."""
    row, total, mean, squares = source.rows.row, Func("total"), Func("mean"), Func("squares")
    (a, first), (b, second) = source.rows.over("a"), source.rows.over("b")
    total[row] = sum(source(first), over=a)
    mean[row] = total[row] / source.wide(source.rows.count())
    off = source(second) - mean[row]
    squares[row] = sum(off * off, over=b)
    return mean, squares


def _kept(rows: Rows, *statistics: Func) -> Outputs:
    """A copy of each statistic of a row."""
    found = Outputs()
    for statistic in statistics:
        copy = Func(f"kept_{statistic.name}")
        copy[rows.row] = statistic[rows.row]
        found[copy] = rows.sizes(rows.row)
    return found
