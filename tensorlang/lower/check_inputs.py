"""What the outputs need of each Input, as conditions that a call checks before anything runs.

The region of an Input follows from the algorithm alone: no directive enlarges it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tensorlang.algorithm import Algorithm, FuncRecord
from tensorlang.directives import Placement, State
from tensorlang.ir.accesses import Access, accesses_of
from tensorlang.ir.expr import Const, Expr
from tensorlang.ir.interval import Interval
from tensorlang.ir.regions import is_bounded, unbounded_index
from tensorlang.ir.simplify import simplify
from tensorlang.ir.stmt import Assert, Program
from tensorlang.ir.types import bool_, index
from tensorlang.lower.build_nests import build_nests
from tensorlang.lower.plan import Plan

ZERO = Const(0, index)


def default_program(algorithm: Algorithm) -> Program:
    """Every Func at root in its default nest: the algorithm as loops, with no schedule."""
    state = State(algorithm)
    placements = {f.name: Placement() for f in algorithm.funcs}
    return build_nests(Plan(algorithm, state.nests, placements))


def check_inputs(algorithm: Algorithm) -> tuple[Assert, ...]:
    """The conditions under which every access stays inside its Input or output.

    Raises: DefinitionError (unbounded-index) where an index depends on data and nothing bounds it.
    """
    body = default_program(algorithm).body
    arrays = [(f"Input {a.name!r}", a.shape, accesses_of(body, a.name)) for a in algorithm.inputs]
    arrays += [
        (f"output {name!r}", shape, accesses_of(body, name, algorithm.func(name).dims))
        for name, shape in algorithm.outputs
    ]
    asserts = [a for array in arrays for a in _asserts(*array)]
    asserts.extend(_point_asserts(algorithm))
    # A call whose outputs are all empty runs nothing, and so needs nothing.
    empty = _all_empty(algorithm)
    checked = (replace(a, condition=simplify(a.condition | empty)) for a in asserts)
    return tuple(a for a in checked if not isinstance(a.condition, Const) or not a.condition.value)


def _all_empty(algorithm: Algorithm) -> Expr:
    result: Expr = Const(True, bool_)
    for _, shape in algorithm.outputs:
        output: Expr = Const(False, bool_)
        for n in shape:
            output = output | (n <= ZERO)
        result = result & output
    return simplify(result)


def _asserts(what: str, shape: tuple[Expr, ...], accesses: Iterable[Access]) -> Iterator[Assert]:
    seen: set[Expr] = set()
    for access in accesses:
        for dim, (interval, extent) in enumerate(zip(access.tight, shape, strict=True)):
            if interval is None:
                continue
            lo, hi = _ends(what, dim, interval, access)
            condition = _inside(lo, hi, extent, access.extents)
            if condition in seen or (isinstance(condition, Const) and condition.value):
                continue
            seen.add(condition)
            yield _too_small(what, dim, lo, hi, extent, condition)


def _ends(what: str, dim: int, interval: Interval, access: Access) -> tuple[Expr, Expr]:
    if interval.lo is None or interval.hi is None or not is_bounded(interval):
        raise unbounded_index(what, dim, access)
    return interval.lo, interval.hi


def _inside(lo: Expr, hi: Expr, extent: Expr, loops: tuple[Expr, ...]) -> Expr:
    """0 <= lo and hi < extent, or one of the loops around the access runs no iteration."""
    inside = simplify((lo >= 0) & (hi < extent))
    for loop in loops:
        inside = simplify(inside | simplify(loop <= ZERO))
    return inside


def _too_small(what: str, dim: int, lo: Expr, hi: Expr, extent: Expr, condition: Expr) -> Assert:
    return Assert(
        condition,
        "BoundsError",
        "region-outside-array",
        f"{what} is too small in dimension {dim}: indices {{0}} to {{1}} are needed, "
        "and it has 0 to {2}",
        "the outputs read it outside its shape",
        "pass a larger array, ask for a smaller output, or give it a boundary condition such as "
        "repeat_edge",
        (lo, hi, simplify(extent - 1)),
    )


def _point_asserts(algorithm: Algorithm) -> Iterator[Assert]:
    """A reduction with no value over no point: its domain is empty only where the outputs are."""
    for func in algorithm.funcs:
        for definition in func.definitions:
            if definition.needs_point and definition.domain is not None:
                for name, _, extent in definition.domain.dims:
                    if not isinstance(extent, Const):
                        yield _no_point(func, name, extent)


def _no_point(func: FuncRecord, loop: str, extent: Expr) -> Assert:
    return Assert(
        extent >= 1,
        "ShapeError",
        "empty-reduction",
        f"{func.name!r} reduces over {loop!r}, which has {{0}} points",
        "a max or min over no point has no value",
        "pass a larger array, or give the reduction initial=",
        (extent,),
    )
