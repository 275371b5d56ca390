"""More pipelines to draw from: what updates can do, tuples, lookups, softmax."""

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tensorlang import reductions
from tensorlang.boundary import constant_exterior, repeat_edge
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Param, Size, Var
from tensorlang.ir.functions import clamp, exp, maximum, minimum, select
from tensorlang.ir.types import DType, f32, i32, u8
from tensorlang.pipeline import Pipeline

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
Family: TypeAlias = Callable[[Draw, DType], Pipeline]
Operation: TypeAlias = Callable[[Expr, Expr], Expr]
M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


_STEPS: tuple[Operation, ...] = (lambda x, y: x + y, minimum, lambda x, y: x - y)


def histogram(draw: Draw, dtype: DType) -> Pipeline:
    """counts[bin(a[k])] += 1: where it stores depends on data."""
    a, k, counts = Input("A", u8, [N]), RDom("k", N), Func("counts")
    counts[i] = i32(0)
    bins = draw(st.sampled_from((1, 4, 7)))
    counts[clamp(i32(a[k]), 0, bins - 1)] += draw(st.integers(1, 2))
    return Pipeline("histogram", inputs=[a], outputs={counts: [bins]})


def recurrence(draw: Draw, dtype: DType) -> Pipeline:
    """f[i, r] = op(f[i, r - d], a[i, r]), along rows or along columns."""
    a, f, out = Input("A", dtype, [M, N]), Func("f"), Func("out")
    step = draw(st.integers(1, 2))
    op: Operation = draw(st.sampled_from(_STEPS))
    f[i, j] = a[i, j]
    if draw(st.booleans()):
        r = RDom("r", (step, N - step))
        f[i, r] = op(f[i, r - step], a[i, r])
    else:
        r = RDom("r", (step, M - step))
        f[r, j] = op(f[r - step, j], a[r, j])
    if draw(st.booleans()):
        return Pipeline("recurrence", inputs=[a], outputs={f: [M, N]})
    out[i, j] = maximum(f[i, j], a[i, j])
    return Pipeline("recurrence", inputs=[a], outputs={out: [M, N]})


def wavefront(draw: Draw, dtype: DType) -> Pipeline:
    """f[r0, r1] reads what it wrote one row up and a column to the left, above or to the right."""
    a, f = Input("A", dtype, [M, N]), Func("f")
    edge, r = repeat_edge(a), RDom("r", (1, M - 1), (1, N - 1))
    if draw(st.booleans()):
        r = r.where(r[0] <= r[1] + draw(st.integers(0, 2)))
    f[i, j] = edge[i, j]
    f[r[0], r[1]] = f[r[0] - 1, r[1] + draw(st.integers(-1, 1))] + a[r[0], r[1]]
    return Pipeline("wavefront", inputs=[a], outputs={f: [M, N]})


def lower_half(draw: Draw, dtype: DType) -> Pipeline:
    """The lower half is changed and the upper half stays; then a sum of part of each row."""
    a, f, out = Input("A", dtype, [N, N]), Func("f"), Func("out")
    r, k = RDom("r", N, N), RDom("k", N)
    below = r.where(r[0] >= r[1])
    f[i, j] = a[i, j]
    f[below[0], below[1]] = f[below[0], below[1]] - a[below[1], below[0]]
    part = k.where(k <= i)
    out[i] = reductions.max(f[i, part], over=part, initial=0)
    return Pipeline("lower_half", inputs=[a], outputs={f: [N, N], out: [N]})


def rows_and_columns(draw: Draw, dtype: DType) -> Pipeline:
    """A pure definition, then updates of one row and of one column, which read their neighbours."""
    a, f = Input("A", dtype, [M, N]), Func("f")
    edge = constant_exterior(a, 1)
    row, column = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    f[i, j] = edge[i, j]
    f[row, j] = f[row + 1, j] + 1
    f[i, column] = f[i, column + 1] - f[i, column]
    return Pipeline("rows_and_columns", inputs=[a], outputs={f: [M, N]})


def moments(draw: Draw, dtype: DType) -> Pipeline:
    """The sum and the sum of squares at once, as a tuple."""
    t = f32 if dtype.is_float else i32
    a, k, f, out = Input("A", t, [M, N]), RDom("k", N), Func("f"), Func("out")
    f[i] = (t(0), t(1))
    f[i] = (f[i][0] + a[i, k], f[i][1] + a[i, k] * a[i, k])
    if draw(st.booleans()):
        return Pipeline("moments", inputs=[a], outputs={f: [M]})
    out[i] = f[i][1] - f[i][0]
    return Pipeline("moments", inputs=[a], outputs={out: [M]})


def maps(draw: Draw, dtype: DType) -> Pipeline:
    """x -> a[i, k]*x + b[k] one after the other, or complex products: rfactor proves both."""
    t = f32 if dtype.is_float else i32
    a, b = Input("A", t, [M, N]), Input("B", t, [N])
    k, f = RDom("k", N), Func("f")
    f[i] = (t(1), t(0))
    # Products of anything larger leave the range of f32, where no two groupings agree.
    x, y, p, q = f[i][0], f[i][1], clamp(a[i, k], -2, 2), clamp(b[k], -2, 2)
    f[i] = (p * x, p * y + q) if draw(st.booleans()) else (x * p - y * q, x * q + y * p)
    return Pipeline("maps", inputs=[a, b], outputs={f: [M]})


def totals(draw: Draw, dtype: DType) -> Pipeline:
    """An array and a scalar: the sum over both of its dimensions, times a parameter."""
    a, scaled, total = Input("A", i32, [M, N]), Func("scaled"), Func("total")
    alpha, r = Param("alpha", i32), RDom("r", M, N)
    scaled[i, j] = a[i, j] * alpha
    op = draw(st.sampled_from((reductions.sum, reductions.prod)))
    total[()] = op(scaled[r[0], r[1]], over=r)
    return Pipeline("totals", inputs=[a], outputs={scaled: [M, N], total: []})


def quantifiers(draw: Draw, dtype: DType) -> Pipeline:
    """Whether any, and whether all, of a row is positive."""
    a, k, some, every = Input("A", dtype, [M, N]), RDom("k", N), Func("some"), Func("every")
    some[i] = reductions.any(a[i, k] > 0, over=k)
    every[i] = select(some[i], reductions.all(a[i, k] > 0, over=k), False)
    return Pipeline("quantifiers", inputs=[a], outputs={every: [M], some: [M]})


def lookup(draw: Draw, dtype: DType) -> Pipeline:
    """out[i] = table[where[i]], kept inside the table."""
    table, where, out = Input("table", dtype, [7]), Input("where", i32, [N]), Func("out")
    out[i] = table[clamp(where[i], 0, 6)]
    return Pipeline("lookup", inputs=[table, where], outputs={out: [N]})


def softmax(draw: Draw, dtype: DType) -> Pipeline:
    """exp(a - m) summed over a row, and divided by its sum: what rolling_update is for."""
    a, m, p = Input("A", f32, [M, N]), Func("m"), Func("p")
    b, c = RDom("b", N), RDom("c", N)
    total, out = Func("total"), Func("out")
    m[i] = reductions.max(a[i, b], over=b, initial=-1)
    p[i, j] = exp(a[i, j] - m[i])
    total[i] = reductions.sum(p[i, c], over=c)
    out[i] = total[i] + 1
    return Pipeline("softmax", inputs=[a], outputs={out: [M]})


UPDATE_FAMILIES: tuple[Family, ...] = (
    histogram,
    recurrence,
    wavefront,
    lower_half,
    rows_and_columns,
    moments,
    maps,
    totals,
    quantifiers,
    lookup,
    softmax,
)
