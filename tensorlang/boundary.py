"""Boundary conditions: a Func that gives a value outside the shape of an Input (or of a Func).

Each takes the array and, where it is a Func, the (min, extent) of each dimension; a dimension given
as None is left as it is.  See: Halide's BoundaryConditions.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tensorlang.domain import extent_of
from tensorlang.errors import DefinitionError
from tensorlang.func import Func, Input, TupleAccess
from tensorlang.ir.expr import Const, Expr, Operand, Var, as_expr, cast
from tensorlang.ir.functions import clamp, maximum, select
from tensorlang.ir.types import bool_

Bounds: TypeAlias = Sequence[tuple[Operand, Operand] | None]
_Box: TypeAlias = list[tuple[Expr, Expr] | None]


def repeat_edge(source: Input | Func, bounds: Bounds | None = None, *, name: str = "") -> Func:
    """Outside, the nearest element: f[x] = source[clamp(x, min, min + extent - 1)]."""
    return _mapped(source, bounds, name, "repeat_edge", _nearest)


def repeat_image(source: Input | Func, bounds: Bounds | None = None, *, name: str = "") -> Func:
    """Outside, the array again: f[x] = source[min + (x - min) % extent]."""
    return _mapped(source, bounds, name, "repeat_image", _wrapped)


def mirror_image(source: Input | Func, bounds: Bounds | None = None, *, name: str = "") -> Func:
    """Outside, the array reflected with its edge twice: ... 1 0 | 0 1 2 ... (NumPy's symmetric)."""
    return _mapped(source, bounds, name, "mirror_image", _mirrored)


def mirror_interior(source: Input | Func, bounds: Bounds | None = None, *, name: str = "") -> Func:
    """Outside, the array reflected about its edge: ... 2 1 | 0 1 2 ... (NumPy's reflect)."""
    return _mapped(source, bounds, name, "mirror_interior", _reflected)


def constant_exterior(
    source: Input | Func, value: Operand, bounds: Bounds | None = None, *, name: str = ""
) -> Func:
    """Outside, `value`, which has to fit the dtype of the array."""
    vars = _vars(source)
    box = _box(source, bounds)
    inside: Expr = Const(True, bool_)
    for v, dim in zip(vars, box, strict=True):
        if dim is not None:
            test = (dim[0] <= v) & (v < dim[0] + dim[1])
            inside = test if isinstance(inside, Const) else inside & test
    element = source[tuple(vars)]
    if isinstance(element, TupleAccess):
        raise DefinitionError(
            "tuple-boundary",
            f"constant_exterior of the tuple-valued Func {source.name!r}",
            why="one value cannot stand for several components",
            fix="select each component yourself",
        )
    outside = cast(element.dtype, as_expr(value, element.dtype))
    f = Func(name or f"{source.name}_constant_exterior")
    f[tuple(vars)] = select(inside, element, outside)
    return f


# Where a coordinate v of an array that starts at 0 is found in it.


def _nearest(v: Expr, extent: Expr) -> Expr:
    return clamp(v, 0, extent - 1)


def _wrapped(v: Expr, extent: Expr) -> Expr:
    return v % extent


def _mirrored(v: Expr, extent: Expr) -> Expr:
    t = v % (extent * 2)
    return select(t < extent, t, extent * 2 - 1 - t)


def _reflected(v: Expr, extent: Expr) -> Expr:
    period = maximum((extent - 1) * 2, 1)
    t = v % period
    return select(t < extent, t, period - t)


def _mapped(
    source: Input | Func,
    bounds: Bounds | None,
    name: str,
    kind: str,
    index: Callable[[Expr, Expr], Expr],
) -> Func:
    vars = _vars(source)
    indices = tuple(
        v if dim is None else _shifted(v, *dim, index)
        for v, dim in zip(vars, _box(source, bounds), strict=True)
    )
    f = Func(name or f"{source.name}_{kind}")
    f[tuple(vars)] = source[indices]
    return f


def _shifted(v: Expr, low: Expr, extent: Expr, index: Callable[[Expr, Expr], Expr]) -> Expr:
    if isinstance(low, Const) and low.value == 0:
        return index(v, extent)
    return low + index(v - low, extent)


def _fits(bounds: Any, rank: int) -> bool:
    """Whether the bounds are a pair or None a dimension."""
    if not issubclass(type(bounds), (list, tuple)) or len(bounds) != rank:
        return False
    return all(b is None or (issubclass(type(b), tuple) and len(b) == 2) for b in bounds)


def _vars(source: Input | Func) -> list[Var]:
    if isinstance(source, Func):
        return [Var(d) for d in source.dims]
    if not isinstance(source, Input):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DefinitionError(
            "boundary-source",
            f"a boundary condition of a value of type {type(source).__name__}",
            why="it gives a value outside the shape of an Input, or of a Func",
            fix="pass an Input, or a Func and bounds=[(min, extent), ...]",
        )
    return [Var(f"_{k}") for k in range(len(source.shape))]


def _box(source: Input | Func, bounds: Bounds | None) -> _Box:
    """(min, extent) a dimension: the shape of an Input, what was given for a Func."""
    if bounds is None and isinstance(source, Input):
        return [(Const(0, n.dtype), n) for n in source.shape]
    rank = len(source.shape if isinstance(source, Input) else source.dims)
    if bounds is None or not _fits(bounds, rank):
        raise DefinitionError(
            "boundary-bounds",
            f"a boundary condition on {source.name!r} needs bounds for its {rank} dimension(s)",
            why="a Func is defined everywhere and has no edge of its own",
            fix="bounds=[(min, extent), ...], None for a dimension to leave as it is",
        )
    what = f"the bounds of {source.name!r}"
    return [None if b is None else (extent_of(b[0], what), extent_of(b[1], what)) for b in bounds]
