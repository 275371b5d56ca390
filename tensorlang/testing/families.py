"""Pipelines to draw from: small ones of every form that an algorithm can have."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from tensorlang import reductions
from tensorlang.boundary import constant_exterior, mirror_image, repeat_edge, repeat_image
from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var
from tensorlang.ir.functions import abs as absolute
from tensorlang.ir.functions import clamp, exp, identity, maximum, minimum, random_uniform, select
from tensorlang.ir.types import DType, f16, f32, f64, i16, i32, i64, u8
from tensorlang.pipeline import Pipeline
from tensorlang.testing.update_families import UPDATE_FAMILIES, Family

Draw: TypeAlias = Callable[[st.SearchStrategy[Any]], Any]
M, N, K = Size("M"), Size("N"), Size("K")
i, j = Var("i"), Var("j")
_DTYPES = (f32, f32, f32, i32, i64, f16, f64, u8, i16)


@st.composite
def pipelines(draw: Draw, families: Sequence[Family] | None = None) -> Pipeline:
    """A small Pipeline of a random family, dtype and shape."""
    family = draw(st.sampled_from(families or FAMILIES + UPDATE_FAMILIES))
    return family(draw, draw(st.sampled_from(_DTYPES)))


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


def scan(draw: Draw, dtype: DType) -> Pipeline:
    """out[i, k] = a scan of a[i, k] along k, alone or inside a larger expression."""
    a, k, out = Input("A", dtype, [M, K]), RDom("k", K), Func("out")
    along = getattr(reductions, draw(st.sampled_from(("cumsum", "cumprod", "cummax"))))
    value = along(a[i, k], over=k)
    out[i, k] = value if draw(st.booleans()) else value - a[i, k]
    return Pipeline("scan", inputs=[a], outputs={out: [M, K]})


def softmax(draw: Draw, dtype: DType) -> Pipeline:
    """A maximum, a sum that needs it, and what needs both: reductions that can share a pass."""
    a, k, n = Input("A", dtype, [M, K]), RDom("k", K), RDom("n", K)
    top, total, out = Func("top"), Func("total"), Func("out")
    wide = dtype if dtype.is_float and dtype.bits >= 32 else f32
    top[i] = reductions.max(wide(a[i, k]), over=k)
    total[i] = reductions.sum(exp(wide(a[i, n]) - top[i]), over=n)
    out[i, j] = exp(wide(a[i, j]) - top[i]) / total[i]
    return Pipeline("softmax", inputs=[a], outputs={out: [M, K]})


def two_largest(draw: Draw, dtype: DType) -> Pipeline:
    """The two largest of each row and where they are, by a tuple that an update keeps sorted."""
    a, k, top = Input("A", dtype, [M, K]), RDom("k", K), Func("top")
    out, at = Func("out"), Func("at")
    least, nowhere = identity("max", dtype), i64(-1)
    top[i] = (least, nowhere, least, nowhere)
    first, here, second, there = top[i]
    new, place = a[i, k], i64(k.as_expr())
    leads, follows = first < new, second < new
    top[i] = (
        select(leads, new, first),
        select(leads, place, here),
        select(leads, first, select(follows, new, second)),
        select(leads, here, select(follows, place, there)),
    )
    out[i, j] = select(j < 1, top[i][0], top[i][2])
    at[i, j] = select(j < 1, top[i][1], top[i][3])
    return Pipeline("two_largest", inputs=[a], outputs={out: [M, 2], at: [M, 2]})


def several(draw: Draw, dtype: DType) -> Pipeline:
    """Outputs of different shapes from one Input: the sums of rows, of columns, and of all."""
    a, m, n, all_of = Input("A", dtype, [M, N]), RDom("m", M), RDom("n", N), Func("total")
    rows, columns, scaled = Func("rows"), Func("columns"), Func("scaled")
    rows[i] = reductions.sum(a[i, n], over=n)
    columns[j] = reductions.sum(a[m, j], over=m)
    all_of[()] = reductions.sum(rows[m], over=m)
    scaled[i, j] = _combine(draw, a[i, j], a[i, j])
    outputs: dict[Func, list[Operand]] = {rows: [M], columns: [N], all_of: [], scaled: [M, N]}
    return Pipeline("several", inputs=[a], outputs=outputs)


def triangle(draw: Draw, dtype: DType) -> Pipeline:
    """Updates of the points below a diagonal, which leave the others as they were."""
    a, out, shift = Input("A", dtype, [M, K]), Func("out"), draw(st.integers(-1, 1))
    r = RDom("r", M, M)
    r = r.where(r[1] <= r[0] + shift)
    k = RDom("k", K)
    out[i, j] = dtype(1)
    gram = Func("gram")
    gram[i, j] = reductions.sum(a[i, k] * a[j, k], over=k, dtype=dtype)
    out[r[0], r[1]] = gram[r[0], r[1]]
    return Pipeline("triangle", inputs=[a], outputs={out: [M, M]})


def noise(draw: Draw, dtype: DType) -> Pipeline:
    """Random numbers by their place, and what an Input adds to them."""
    a, out, seed = Input("A", dtype, [M, N]), Func("out"), draw(st.integers(0, 2**40))
    drawn = random_uniform(i64(seed), i * N + j)
    out[i, j] = select(drawn < 0.5, a[i, j], dtype(0)) if draw(st.booleans()) else drawn
    return Pipeline("noise", inputs=[a], outputs={out: [M, N]})


FAMILIES: tuple[Family, ...] = (
    pointwise,
    stencil,
    boundary,
    reduction,
    matmul,
    chain,
    update,
    scatter,
    scan,
    softmax,
    two_largest,
    several,
    triangle,
    noise,
)
