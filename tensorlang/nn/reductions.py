"""Reductions and scans of one dimension of (outer, reduced, inner), as torch's."""

from collections.abc import Callable
from math import inf

from tensorlang.domain import RDom
from tensorlang.func import Func, Input
from tensorlang.ir.expr import Expr, Size, Var
from tensorlang.ir.functions import abs, exp, log, select
from tensorlang.ir.types import DTYPES, DType
from tensorlang.nn.numbers import wide
from tensorlang.pipeline import Pipeline
from tensorlang.reductions import all, any, argmax, argmin, cumprod, cumsum, max, min, prod, sum

A, B, N = (Size(name) for name in "ABN")
a, b = Var("a"), Var("b")
# Those whose result has the dtype of what is reduced.
_ORDERED: dict[str, Callable[..., Expr]] = {"amax": max, "amin": min}
_ARGS: dict[str, Callable[..., Expr]] = {"argmax": argmax, "argmin": argmin}
_SUMS: dict[str, Callable[..., Expr]] = {"sum": sum, "prod": prod}
_TESTS: dict[str, Callable[..., Expr]] = {"any": any, "all": all}
_SCANS: dict[str, Callable[..., Expr]] = {"cumsum": cumsum, "cumprod": cumprod}


def reduce(x: DType, *, kind: str, out_dtype: str) -> Pipeline:
    """out[a, b] = kind(x[a, :, b]): sum, prod, mean, amax, amin, argmax, argmin, any, all

    NaN is largest and smallest; of equal ones the first is found.

    Args: out_dtype: of the result of sum, prod and mean, in which they add, too, unless narrow.
    """
    X, r, total, out = Input("x", x, [A, N, B]), RDom("r", N), Func("total"), Func("out")
    term = X[a, r, b]
    if kind in _ORDERED:
        total[a, b] = _ORDERED[kind](term, over=r)
        out[a, b] = total[a, b]
    elif kind in _ARGS:
        total[a, b] = _ARGS[kind](term, over=r)
        out[a, b] = total[a, b]
    elif kind in _TESTS:
        total[a, b] = _TESTS[kind](term, over=r)
        out[a, b] = total[a, b]
    else:
        made = DTYPES[out_dtype]
        w = wide(made) if made.is_float else made
        total[a, b] = _SUMS["prod" if kind == "prod" else "sum"](w(term), over=r, dtype=w)
        out[a, b] = made(total[a, b] / w(N) if kind == "mean" else total[a, b])
    return Pipeline(kind, inputs=[X], outputs={out: [A, B]})


def logsumexp(x: DType) -> Pipeline:
    """out[a, b] = log(sum(exp(x[a, :, b])))

    The largest is subtracted first, where it is finite, so that exp stays in range.
    """
    w = wide(x)
    X, r, out = Input("x", x, [A, N, B]), RDom("r", N), Func("out")
    top, total = Func("top"), Func("total")
    top[a, b] = max(w(X[a, r, b]), over=r, initial=-inf)
    base = select(abs(top[a, b]) == inf, 0, top[a, b])
    total[a, b] = sum(exp(w(X[a, r, b]) - base), over=r)
    out[a, b] = x(log(total[a, b]) + base)
    return Pipeline("logsumexp", inputs=[X], outputs={out: [A, B]})


def scan(x: DType, *, kind: str, out_dtype: str) -> Pipeline:
    """out[a, n, b] = kind(x[a, :n + 1, b]): cumsum, cumprod

    In the dtype in which they add the result is the scan itself, else a rounding of it.
    """
    made = DTYPES[out_dtype]
    w = wide(made) if made.is_float else made
    X, r, run, out, n = Input("x", x, [A, N, B]), RDom("r", N), Func("run"), Func("out"), Var("n")
    if made is w:
        out[a, r, b] = _SCANS[kind](w(X[a, r, b]), over=r, dtype=w)
    else:
        run[a, r, b] = _SCANS[kind](w(X[a, r, b]), over=r, dtype=w)
        out[a, n, b] = made(run[a, n, b])
    return Pipeline(kind, inputs=[X], outputs={out: [A, N, B]})
