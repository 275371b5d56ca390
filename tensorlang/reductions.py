"""Reductions: sum prod min max any all argmin argmax over a domain; scans: cumsum cumprod cummax.

C[i, j] = sum(e, over=k)        the whole right side: C[i, j] = 0, then C[i, j] = C[i, j] + e
D[i] = 1 / sum(e, over=k)       inside one: a Func of its own, named D_sum
C[i, k] = cumsum(e, over=k)     C[i, k] = 0, then C[i, k] = C[i, k - 1] + e for k in order
"""

import builtins

from tensorlang.algorithm import Domain
from tensorlang.domain import RDom, Reduction, RVar, Scan
from tensorlang.errors import DefinitionError
from tensorlang.ir.expr import Compare, Const, Expr, Operand, arithmetic, as_expr, cast
from tensorlang.ir.functions import identity, isnan, select
from tensorlang.ir.types import DType, accumulator, i64
from tensorlang.ir.walk import postorder

_OPERATORS = {
    "sum": "add", "prod": "mul", "min": "min", "max": "max", "any": "or", "all": "and"
}  # fmt: skip


def sum(e: Operand, *, over: RDom | RVar, initial: Operand = 0, dtype: DType | None = None) -> Expr:
    """initial + the sum of e over the domain; an empty sum is `initial`.

    Args:
        e: the term. f8, f16 and bf16 accumulate in f32, bool and 8- and 16-bit integers in i32 or
            u32, everything else in its own dtype.
        over: the RDom that is summed over.
        initial: where the sum starts.
        dtype: accumulate in this dtype instead; the result has it too.
    """
    return _reduction("sum", e, over, initial, dtype)


def prod(
    e: Operand, *, over: RDom | RVar, initial: Operand = 1, dtype: DType | None = None
) -> Expr:
    """initial times the product of e over the domain; accumulates as `sum` does."""
    return _reduction("prod", e, over, initial, dtype)


def min(e: Operand, *, over: RDom | RVar, initial: Operand | None = None) -> Expr:
    """The smallest e over the domain (and `initial`); NaN where any is NaN.

    Raises: DefinitionError (empty-reduction) when the domain is empty and there is no `initial`.
    """
    return _reduction("min", e, over, initial, None)


def max(e: Operand, *, over: RDom | RVar, initial: Operand | None = None) -> Expr:
    """The largest e over the domain (and `initial`); NaN where any is NaN.

    Raises: DefinitionError (empty-reduction) when the domain is empty and there is no `initial`.
    """
    return _reduction("max", e, over, initial, None)


def any(e: Operand, *, over: RDom | RVar) -> Expr:
    """Whether e holds at some point of the domain."""
    return _reduction("any", e, over, None, None)


def all(e: Operand, *, over: RDom | RVar) -> Expr:
    """Whether e holds at every point of the domain."""
    return _reduction("all", e, over, None, None)


def argmin(e: Operand, *, over: RDom | RVar) -> Expr:
    """The first index (i64) of the smallest e over a domain of one dimension; NaN is smallest."""
    return _reduction("argmin", e, over, None, None)


def argmax(e: Operand, *, over: RDom | RVar) -> Expr:
    """The first index (i64) of the largest e over a domain of one dimension; NaN is largest."""
    return _reduction("argmax", e, over, None, None)


def cumsum(e: Operand, *, over: RDom | RVar, dtype: DType | None = None) -> Expr:
    """The sum of e at all points of the domain up to this one; it accumulates as `sum` does.

    C[i, k] = cumsum(A[i, k], over=k)       the variable of the domain stands on the left

    Outside the domain C is 0.  Inside a larger expression it becomes a Func of its own, named
    C_cumsum.

    Args:
        over: an RDom of one dimension, whose variable is an index on the left.
        dtype: accumulate in this dtype instead; the result has it too.
    """
    return _scan("cumsum", e, over, dtype)


def cumprod(e: Operand, *, over: RDom | RVar, dtype: DType | None = None) -> Expr:
    """The product of e at all points of the domain up to this one; otherwise as `cumsum`."""
    return _scan("cumprod", e, over, dtype)


def cummax(e: Operand, *, over: RDom | RVar) -> Expr:
    """The largest e at all points of the domain up to this one; from the first NaN on it is NaN."""
    return _scan("cummax", e, over, None)


SCANS = {"cumsum": "add", "cumprod": "mul", "cummax": "max"}


def _scan(op: str, e: Operand, over: RDom | RVar, dtype: DType | None) -> Expr:
    domain = _domain(op, over)
    if len(domain.dims) != 1 or domain.where is not None:
        raise DefinitionError(
            "scan-domain",
            f"{op} over {domain.name!r}, which has "
            + ("a predicate" if domain.where is not None else f"{len(domain.dims)} dimensions"),
            why="a scan goes from point to point along one dimension",
            fix='scan over an RDom such as RDom("k", K), and use select for terms to leave out',
        )
    body = as_expr(e)
    if op != "cummax":
        body = cast(dtype or accumulator(body.dtype), body)
    elif body.dtype.is_bool:
        body = cast(i64, body)
    body = cast(body.dtype.storage, body)
    return Scan(op, body, domain, body.dtype)


def first_of_scan(scan: Scan) -> Expr:
    """The value where no point has been seen."""
    return identity(SCANS[scan.op], scan.dtype)


def step_of_scan(scan: Scan, previous: Expr) -> Expr:
    """The value at a point: that at the one before, and the term."""
    point, first = RVar(scan.domain, 0), scan.domain.dims[0][1]
    return select(point <= first, scan.body, arithmetic(SCANS[scan.op], previous, scan.body))


def _domain(op: str, over: RDom | RVar) -> Domain:
    if not isinstance(over, (RDom, RVar)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError(
            "over-not-a-domain",
            f"{op} over {over!r}",
            why="a reduction runs over the points of an RDom",
            fix=f'k = RDom("k", K), and {op}(e, over=k)',
        )
    return over.domain


def _reduction(
    op: str, e: Operand, over: RDom | RVar, initial: Operand | None, dtype: DType | None
) -> Expr:
    domain = _domain(op, over)
    body = as_expr(e)
    _check_depth(op, body)
    if op in ("any", "all"):
        body = body if body.dtype.is_bool else Compare("ne", body, Const(0, body.dtype))
    elif op in ("sum", "prod"):
        body = cast(dtype or accumulator(body.dtype), body)
    elif body.dtype.is_bool:
        body = cast(i64, body)
    body = cast(body.dtype.storage, body) if body.dtype.name == "index" else body
    needs_point = op in ("min", "max", "argmin", "argmax") and initial is None
    if needs_point and builtins.any(_is_empty(extent) for _, _, extent in domain.dims):
        raise DefinitionError(
            "empty-reduction",
            f"{op} over the empty domain {domain.name!r} has no value",
            why="it has no point",
            fix="give initial=" if op in ("min", "max") else "reduce over at least one point",
        )
    if op in ("argmin", "argmax") and len(domain.dims) != 1:
        raise DefinitionError(
            "argmax-rank",
            f"{op} over {domain.name!r}, which has {len(domain.dims)} dimensions",
            why="its value is one index",
            fix="reduce over one dimension, or define a tuple-valued Func with an update",
        )
    start = None if initial is None else cast(body.dtype, as_expr(initial, body.dtype))
    return Reduction(op, body, domain, start, i64 if op in ("argmin", "argmax") else body.dtype)


# Every reduction inside another is a Func of its own; taking one is recursive in their depth.
_DEEPEST = 32


def _check_depth(op: str, body: Expr) -> None:
    depth, inside = 0, [body]
    while inside := [n.body for e in inside for n in postorder(e) if isinstance(n, Reduction)]:
        depth += 1
        if depth >= _DEEPEST:
            raise DefinitionError(
                "reductions-too-deep",
                f"{op} of a reduction inside {depth} others",
                why="a reduction inside another becomes a Func of its own",
                fix="define the inner ones as Funcs: f[i] = sum(...), then sum(f[k], over=k)",
            )


def _is_empty(extent: Expr) -> bool:
    return isinstance(extent, Const) and extent.value <= 0


def start_of(reduction: Reduction) -> tuple[Expr, ...]:
    """The values of the pure definition: the identity, or `initial`."""
    dtype = reduction.body.dtype
    if reduction.op in ("argmin", "argmax"):
        worst = identity("min" if reduction.op == "argmin" else "max", dtype)
        return (worst, cast(i64, reduction.domain.dims[0][1]))
    if reduction.initial is not None:
        return (reduction.initial,)
    return (identity(_OPERATORS[reduction.op], dtype),)


def step_of(reduction: Reduction, current: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The values of the update, from the current ones and the term."""
    body = reduction.body
    if reduction.op not in ("argmin", "argmax"):
        return (arithmetic(_OPERATORS[reduction.op], current[0], body),)
    best, at = current
    better = body < best if reduction.op == "argmin" else best < body
    if body.dtype.is_float:
        better = better | (isnan(body) & ~isnan(best))
    here = cast(i64, RVar(reduction.domain, 0))
    return (select(better, body, best), select(better, here, at))
