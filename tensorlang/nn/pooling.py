"""Pooling of any rank: the largest or the mean of each window, and of windows that fill the array.

A window is one reduced variable r, of which its place in each dimension is a digit, so that the
largest has one number, as in torch.
"""

from collections.abc import Sequence
from math import inf, prod

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Operand, Size, Var, as_expr
from tensorlang.ir.functions import clamp, isnan, maximum, minimum, select
from tensorlang.ir.types import DType, i64
from tensorlang.nn.numbers import wide
from tensorlang.nn.windows import Ints, Windows, arranged, spatial, spatial_sizes, within
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import sum

B, C = Size("B"), Size("C")
b, c = Var("b"), Var("c")


def max_pool(
    x: DType,
    *,
    extent: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    channels_last: bool,
) -> Pipeline:
    """out[p] = max(x[p*stride + r*dilation - padding]), and where it was: its place in the array

    Of equal ones the first; NaN is largest.  What lies around the array is never taken.
    """
    windows = Windows(extent, stride, dilation, padding, padding, ceil_mode)
    shape = spatial_sizes(windows.rank)
    X = Input("x", x, arranged(B, [C], shape, channels_last))
    best, out, at = Func("best"), Func("out"), Func("at")
    where, r = spatial(windows.rank, "p"), RDom("r", prod(extent))
    point = arranged(b, [c], where, channels_last)
    place = windows.points(where, _digits(r, extent))
    inside = within(place, shape)
    term = select(inside, wide(x)(X[arranged(b, [c], place, channels_last)]), -inf)
    _fold_largest(best, point, term, r, prod(extent))
    out[point] = x(best[point][0])
    # Where all is -inf nothing was larger: then it is the first point inside.
    steps = zip(where, stride, dilation, padding, strict=True)
    first = [maximum((p - q * s + (d - 1)) // d, 0) for q, s, d, p in steps]
    number = best[point][1]
    found = _digits(number, extent)
    found = [select(number == prod(extent), i64(a), d) for a, d in zip(first, found, strict=True)]
    at[point] = _flat(windows.points(where, found), shape)
    size = arranged(B, [C], windows.counts(shape), channels_last)
    return Pipeline("max_pool", inputs=[X], outputs={out: size, at: size})


def avg_pool(
    x: DType,
    *,
    extent: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int,
    channels_last: bool,
) -> Pipeline:
    """out[p] = sum(x[p*stride + r - padding]) / count

    Args:
        count_include_pad: whether the zeros around the array count, up to `padding` of them.
        divisor: instead of the count, where not 0.
    """
    windows = Windows(extent, stride, (1,) * len(extent), padding, padding, ceil_mode)
    shape, w = spatial_sizes(windows.rank), wide(x)
    X = Input("x", x, arranged(B, [C], shape, channels_last))
    padded, total, out = Func("padded"), Func("total"), Func("out")
    where, r = spatial(windows.rank, "p"), RDom("r", *extent)
    padded[arranged(b, [c], where, channels_last)] = select(
        within(where, shape), w(X[arranged(b, [c], where, channels_last)]), 0
    )
    point = arranged(b, [c], where, channels_last)
    inside = list(r) if len(extent) > 1 else [r]
    source = windows.points(where, inside)
    total[point] = sum(padded[arranged(b, [c], source, channels_last)], over=r)
    count: Expr = as_expr(divisor or 1)
    for d, n in enumerate(shape if not divisor else []):
        first = where[d] * stride[d] - padding[d]
        if count_include_pad:
            count = count * (minimum(first + extent[d], n + padding[d]) - first)
        else:
            count = count * (minimum(first + extent[d], n) - maximum(first, 0))
    out[point] = x(total[point] / w(count))
    size = arranged(B, [C], windows.counts(shape), channels_last)
    return Pipeline("avg_pool", inputs=[X], outputs={out: size})


def adaptive_avg_pool(x: DType, *, space: tuple[int, ...], outputs: tuple[int, ...]) -> Pipeline:
    """out[p] = the mean of x[p*H // P], ..., x[ceil((p + 1)*H / P) - 1]

    Windows differ in length by one at most, and may share an element.

    Args: space: the spatial shape of x, in numbers.
    """
    return _adaptive(x, space, outputs, largest=False)


def adaptive_max_pool(x: DType, *, space: tuple[int, ...], outputs: tuple[int, ...]) -> Pipeline:
    """out[p] = the largest of the same windows, and where it was."""
    return _adaptive(x, space, outputs, largest=True)


def _adaptive(x: DType, space: Ints, outputs: Ints, *, largest: bool) -> Pipeline:
    where = spatial(len(space), "p")
    sizes = list(zip(where, space, outputs, strict=True))
    firsts = [p * n // q for p, n, q in sizes]
    ends = [((p + 1) * n + (q - 1)) // q for p, n, q in sizes]
    lengths = tuple(_longest(n, q) for _, n, q in sizes)
    X, out = Input("x", x, [B, C, *space]), Func("out")
    r = RDom("r", prod(lengths))
    digits = _digits(r, lengths)
    place = [f + k for f, k in zip(firsts, digits, strict=True)]
    inside = within(digits, [e - f for f, e in zip(firsts, ends, strict=True)])
    read = wide(x)(X[(b, c, *(clamp(p, 0, n - 1) for p, n in zip(place, space, strict=True)))])
    point, size = (b, c, *where), [B, C, *outputs]
    if not largest:
        total, count = Func("total"), as_expr(1)
        total[point] = sum(select(inside, read, 0), over=r)
        for f, e in zip(firsts, ends, strict=True):
            count = count * (e - f)
        out[point] = x(total[point] / wide(x)(count))
        return Pipeline("adaptive_avg_pool", inputs=[X], outputs={out: size})
    best, at = Func("best"), Func("at")
    _fold_largest(best, point, select(inside, read, -inf), r, prod(lengths))
    out[point] = x(best[point][0])
    number = select(best[point][1] == prod(lengths), 0, best[point][1])
    found = _digits(number, lengths)
    at[point] = _flat([f + k for f, k in zip(firsts, found, strict=True)], space)
    return Pipeline("adaptive_max_pool", inputs=[X], outputs={out: size, at: size})


def _longest(n: int, windows: int) -> int:
    """The length of the longest of that many windows over n points."""
    return max(((p + 1) * n + windows - 1) // windows - p * n // windows for p in range(windows))


def _fold_largest(
    best: Func, point: tuple[Operand, ...], term: Expr, r: RDom, count: Operand
) -> None:
    """best[point] = (the largest term, the first r that has it), or (-inf, count)."""
    best[point] = (term.dtype(-inf), i64(count))
    top, number = best[point]
    better = (top < term) | (isnan(term) & ~isnan(top))
    best[point] = (select(better, term, top), select(better, i64(r), number))


def _digits(number: Operand, extents: Sequence[Operand]) -> list[Expr]:
    """A number below prod(extents) as one of each extent, the last fastest."""
    found: list[Expr] = []
    rest = as_expr(number)
    for n in reversed(extents[1:]):
        found.append(rest % n)
        rest = rest // n
    return [rest, *reversed(found)]


def _flat(place: Sequence[Operand], shape: Sequence[Operand]) -> Expr:
    """The number of a place in an array."""
    number = as_expr(0)
    for p, n in zip(place, shape, strict=True):
        number = number * n + p
    return i64(number)
