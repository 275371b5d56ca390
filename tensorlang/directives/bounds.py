"""bound, bound_extent, align_bounds: what region of a Func its loops run over.

They change the loops and the storage, never what is computed: points that nothing needs are masked.
"""

from dataclasses import dataclass
from typing import ClassVar

from tensorlang.directives.base import Directive, State
from tensorlang.ir.expr import Const, Expr, cast
from tensorlang.ir.types import index
from tensorlang.ir.widening import Aligned, Fixed, Widening


def _add(state: State, func: str, rule: Widening) -> None:
    """One rule of each kind a dimension: the later directive replaces the earlier."""
    kept = (
        r for r in state.widenings.get(func, ()) if r.dim != rule.dim or type(r) is not type(rule)
    )
    # An alignment is of the region that is bounded.
    rules = sorted((*kept, rule), key=lambda r: isinstance(r, Aligned))
    state.widenings[func] = tuple(rules)


def _check_numbers(directive: Directive, state: State, func: str, *numbers: Expr) -> None:
    """Check that a call knows them, that they are integers, and that the last is no negative."""
    for e in numbers:
        directive.scalar(state, e)
        if not e.dtype.is_integer:
            raise directive.error(
                "bound-not-integer",
                f"cannot bound {func!r} by a {e.dtype}",
                why="the ends of a region are indices",
                fix="give a Python int, or an expression of Sizes and integer Params",
            )
    extent = numbers[-1]
    if isinstance(extent, Const) and int(extent.value) < 0:
        raise directive.error(
            "negative-bound",
            f"cannot bound {func!r} to {extent.value} elements",
            why="a region has no fewer than 0",
            fix="give the number of elements that are needed",
        )


@dataclass(frozen=True, slots=True, eq=False)
class Bound(Directive):
    """for v in [first needed, last needed]: s   ->   for v in [min, min + extent): s

    All that is needed of dimension `v` of the Func lies in [min, min + extent), of an output it is
    its whole shape: a call for which that does not hold is refused with a ShapeError before
    anything runs.  With a constant extent the loop can be unrolled, or vectorized as a whole, and
    storage has a constant size.

    Args: min, extent: ints, or expressions of Sizes and Params.
    Raises: ScheduleError: unknown-dim, not-a-scalar, bound-not-integer, negative-bound.
    See: Halide's Func::bound.
    """

    keyword: ClassVar[str] = "bound"
    var: str
    min: Expr
    extent: Expr

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        dim = self.position(state, stage, self.var)
        _check_numbers(self, state, stage[0], self.min, self.extent)
        _add(
            state,
            stage[0],
            Fixed(dim, cast(index, self.min), cast(index, self.extent), span=self.span),
        )


@dataclass(frozen=True, slots=True, eq=False)
class BoundExtent(Directive):
    """for v in [first needed, +n): s   ->   for v in [first needed, +extent): s     for n <= extent

    As `bound`, but the first element is the first that is needed where the Func is computed.

    Raises: ScheduleError: unknown-dim, not-a-scalar, bound-not-integer, negative-bound; and
        extent-not-bounded where one iteration of the loop that computes the Func is not known to
        need so few.
    See: Halide's Func::bound_extent.
    """

    keyword: ClassVar[str] = "bound_extent"
    var: str
    extent: Expr

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        dim = self.position(state, stage, self.var)
        _check_numbers(self, state, stage[0], self.extent)
        _add(state, stage[0], Fixed(dim, None, cast(index, self.extent), span=self.span))


@dataclass(frozen=True, slots=True, eq=False)
class AlignBounds(Directive):
    """for v in [m, e): s   ->   for v in [m', e'): s     for m' <= m and e <= e'

    Both m' and e' are `remainder` modulo `modulus`: what each iteration of a consumer computes
    begins at the same phase, and a split by the modulus has no tail.

    Args: modulus: at least 1.   remainder: from 0 to modulus - 1.
    Raises: ScheduleError: unknown-dim, factor-not-positive.
    See: Halide's Func::align_bounds.
    """

    keyword: ClassVar[str] = "align_bounds"
    var: str
    modulus: int
    remainder: int = 0

    def apply(self, state: State, stage: tuple[str, int]) -> None:
        dim = self.position(state, stage, self.var)
        if not 0 <= self.remainder < self.modulus:
            raise self.error(
                "factor-not-positive",
                f"cannot align {self.var!r} of {stage[0]!r} to {self.remainder} modulo "
                f"{self.modulus}",
                why="the modulus is at least 1, and the remainder is what a division by it leaves",
                fix=f"align_bounds({self.var}, 8)",
            )
        _add(state, stage[0], Aligned(dim, self.modulus, self.remainder, span=self.span))
