"""Pipelines to draw from: pointwise, stencil, reduction, matmul, chains of two and three stages."""

from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tensorlang import reductions
from tensorlang.boundary import constant_exterior, mirror_image, repeat_edge, repeat_image
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import abs as absolute
from tensorlang.ir.functions import clamp, maximum, minimum, select
from tensorlang.ir.types import DType, f16, f32, f64, i16, i32, i64, u8
from tensorlang.pipeline import Pipeline

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")
_DTYPES = (f32, f32, f32, i32, i64, f16, f64, u8, i16)


@st.composite
def pipelines(draw: Draw) -> Pipeline:
    """A small Pipeline of a random family, dtype and shape."""
    return draw(st.sampled_from(FAMILIES))(draw, draw(st.sampled_from(_DTYPES)))


Operation: TypeAlias = Callable[[Expr, Expr], Expr]
_STRICT: tuple[Operation, ...] = (
    lambda x, y: x + y,
    lambda x, y: x - y * 2,
    lambda x, y: x * y,
    minimum,
    maximum,
    lambda x, y: select(x < y, x, y + 1),
    lambda x, y: absolute(x) - y,
)
_ON_INTEGERS: tuple[Operation, ...] = (
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: x ^ y,
)


def _combine(draw: Draw, a: Expr, b: Expr) -> Expr:
    """a and b in one strict operation: the same bits on every backend."""
    operations = _STRICT if a.dtype.is_float else _STRICT + _ON_INTEGERS
    return draw(st.sampled_from(operations))(a, b)


def _extent(draw: Draw, size: Size) -> Operand:
    """The Size, or a number in its place."""
    return draw(st.sampled_from((size, size, 1, 7, 16)))


def _offset(draw: Draw) -> int:
    return draw(st.integers(0, 3))


def pointwise(draw: Draw, dtype: DType) -> Pipeline:
    """out[i, j] = op(a[i, j], b[j]), or with the axes of `a` exchanged."""
    m, n = _extent(draw, M), _extent(draw, N)
    swapped = draw(st.booleans())
    a = Input("A", dtype, [n, m] if swapped else [m, n])
    b, out = Input("B", dtype, [n]), Func("out")
    out[i, j] = _combine(draw, a[j, i] if swapped else a[i, j], b[j])
    return Pipeline("pointwise", inputs=[a, b], outputs={out: [m, n]})


def stencil(draw: Draw, dtype: DType) -> Pipeline:
    """out[i, j] = op(f[i + a, j + b], f[i + c, j + d]) over a Func of an Input that is larger."""
    a, f, out = Input("A", dtype, [M + 3, N + 3]), Func("f"), Func("out")
    f[i, j] = _combine(draw, a[i, j], a[i, j])
    first = f[i + _offset(draw), j + _offset(draw)]
    out[i, j] = _combine(draw, first, f[i + _offset(draw), j + _offset(draw)])
    return Pipeline("stencil", inputs=[a], outputs={out: [M, N]})


def boundary(draw: Draw, dtype: DType) -> Pipeline:
    """A one-dimensional stencil over a boundary condition."""
    a, out = Input("A", dtype, [N]), Func("out")
    make = draw(st.sampled_from((repeat_edge, repeat_image, mirror_image, constant_exterior)))
    edge = make(a, 3) if make is constant_exterior else make(a)
    step = draw(st.integers(1, 2))
    out[i] = _combine(draw, edge[i * step - 2], edge[i + 1])
    return Pipeline("boundary", inputs=[a], outputs={out: [N]})


def reduction(draw: Draw, dtype: DType) -> Pipeline:
    """out[i] = a reduction of a[i, k] over k, alone or inside a larger expression."""
    a, k, out = Input("A", dtype, [M, K]), RDom("k", K), Func("out")
    op = draw(st.sampled_from(("sum", "prod", "min", "max", "argmin", "argmax")))
    options: dict[str, Operand] = {"initial": 1} if op in ("min", "max") else {}
    value = getattr(reductions, op)(a[i, k], over=k, **options)
    out[i] = value if draw(st.booleans()) else value + 1
    return Pipeline("reduction", inputs=[a], outputs={out: [M]})


def matmul(draw: Draw, dtype: DType) -> Pipeline:
    """d[i, j] = max(sum(a[i, k] * b[k, j], over=k) + bias[j], 0)"""
    a, b, bias = Input("A", f16, [M, K]), Input("B", f16, [K, N]), Input("bias", f32, [N])
    k, c, d = RDom("k", K), Func("C"), Func("D")
    c[i, j] = reductions.sum(f32(a[i, k]) * f32(b[k, j]), over=k)
    d[i, j] = maximum(c[i, j] + bias[j], 0)
    return Pipeline("matmul", inputs=[a, b, bias], outputs={d: [M, N]})


def chain(draw: Draw, dtype: DType) -> Pipeline:
    """Three stages, the last of which reads both others."""
    a = Input("A", dtype, [N + 9])
    f, g, out = Func("f"), Func("g"), Func("out")
    f[i] = _combine(draw, a[i + _offset(draw)], a[i + _offset(draw)])
    g[i] = _combine(draw, f[i + _offset(draw)], f[i + _offset(draw)])
    out[i] = _combine(draw, g[i], f[i + _offset(draw)])
    outputs: dict[Func, list[Operand]] = {out: [N]}
    if draw(st.booleans()):
        outputs[g] = [N]
    return Pipeline("chain", inputs=[a], outputs=outputs)


def update(draw: Draw, dtype: DType) -> Pipeline:
    """A pure definition, an update at one row, and a sum over part of a row in order."""
    a, f, out = Input("A", dtype, [M + 1, N]), Func("f"), Func("out")
    k = RDom("k", (0, N))
    f[i, j] = a[i, j]
    f[i, k] = _combine(draw, f[i, clamp(k - 1, 0, maximum(N - 1, 0))], a[i + 1, k])
    out[i, j] = _combine(draw, f[i, j], a[i, j])
    return Pipeline("update", inputs=[a], outputs={out: [M, N]})


def scatter(draw: Draw, dtype: DType) -> Pipeline:
    """f[i, at(i, k)] = op(f[i, from(i, k)], a[i, k]), where a pure Var also moves other indices."""
    a, at, f, out = Input("A", dtype, [M, K]), Input("at", i32, [M, K]), Func("f"), Func("out")
    k = RDom("k", K)
    places: tuple[Expr, ...] = (clamp(at[i, k], 0, 7), (i + k) % 8, clamp(i - k, 0, 7))
    to = draw(st.sampled_from(places))
    f[i, j] = dtype(j)
    f[i, to] = _combine(draw, f[i, draw(st.sampled_from((to, *places)))], a[i, k])
    out[i, j] = f[i, j] + f[i, draw(st.sampled_from((j, 7 - j)))]
    return Pipeline("scatter", inputs=[a, at], outputs={out: [M, 8]})


FAMILIES: tuple[Callable[[Draw, DType], Pipeline], ...] = (
    pointwise,
    stencil,
    boundary,
    reduction,
    matmul,
    chain,
    update,
    scatter,
)
