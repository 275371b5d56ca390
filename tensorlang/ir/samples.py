"""Points at which what is known holds: a form negative at one of them needs no search for a proof.

A point gives a value to every name and to every part of an expression that is not index arithmetic
(a load, a call).  Values are chosen at and between the bounds of each, the same in every process,
and points at which something known fails are dropped.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tensorlang.ir.constants import integer_binary
from tensorlang.ir.conversion import wrap
from tensorlang.ir.expr import (
    Binary,
    Cast,
    Compare,
    Const,
    Expr,
    Name,
    Promise,
    Select,
    Size,
    Unary,
)
from tensorlang.ir.linear import Linear
from tensorlang.ir.order import order_key
from tensorlang.ir.ranges import UNKNOWN, dtype_range
from tensorlang.ir.types import index
from tensorlang.ir.walk import fold, postorder

_SIZES = (1, 3, 8, 130, 0, 20)
_OTHERS = (0, 3, -2, 17, 1, 100)
# Then all sizes are larger than tiles, and there are more tiles than a GPU runs at a time: most of
# what fails does so there.  One point takes all that is bounded at its lower end, one at its upper.
_LARGE = 5000
# Those come first: what is negative at one point need not be looked at at others.
NUMBERS = (6, 0, 1, 7, 3, 4)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """The values of names and of what is built from them, as far as they have been asked for.

    Args: chosen: those of the names and loads that something is known of.
    """

    number: int
    chosen: dict[Expr, int] = field(default_factory=dict[Expr, int])
    values: dict[Expr, int] = field(default_factory=dict[Expr, int])

    def choose(self, leaf: Expr, value: int) -> None:
        """Give a name or load its value; nothing that is built from it has been asked for."""
        self.chosen[leaf] = self.values[leaf] = value

    def value(self, form: Linear) -> int:
        """The value of a form; what the point does not say yet, it decides now."""
        total = form.constant
        for term, coefficient in form.terms.items():
            value = self.values.get(term)
            if value is None:
                value = fold(term, self._step, self.values)
            total += coefficient * value
        return total

    def _step(self, e: Expr, operands: list[int]) -> int:
        match e:
            case Const():
                return int(e.value) if not e.dtype.is_float else 0
            case Compare() if e.a.dtype.is_integer:
                a, b = operands
                return int({"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[e.op])
            case Select() if e.dtype.is_integer:
                return operands[1] if operands[0] else operands[2]
            case Promise():
                return min(max(operands[0], operands[1]), operands[2])
            case Cast() if e.dtype.is_integer and not e.a.dtype.is_float:
                return wrap(operands[0], e.dtype)
            case Unary(op="neg") if e.dtype is index:
                return -operands[0]
            case Unary(op="not") if e.dtype.is_bool:
                return 1 - operands[0]
            case Binary() if e.dtype is index or e.dtype.is_bool:
                return integer_binary(e.op, operands[0], operands[1], e.dtype) or 0
            case _:
                return self._free(e)

    def _free(self, e: Expr) -> int:
        """A value for what is not index arithmetic, the same for `e` and for index(e)."""
        leaf = e if e.dtype is index or not e.dtype.is_integer else Cast(index, e)
        if leaf not in self.values:
            self.values[leaf] = _default(leaf, self.number)
        return self.values[leaf]


def _default(leaf: Expr, number: int) -> int:
    varied = order_key(leaf)[1][0]
    if number >= len(_SIZES) and leaf.dtype is index and isinstance(leaf, Name):
        return _LARGE + varied
    at = (number + varied) % len(_SIZES)
    if isinstance(leaf, Size):
        return _SIZES[at]
    lo, hi = dtype_range(leaf.a.dtype) if isinstance(leaf, Cast) else UNKNOWN
    value = _OTHERS[at]
    value = value if lo is None else max(lo, value)
    return value if hi is None else min(hi, value)


def sample_points(forms: list[Linear], ranks: Mapping[str, int]) -> list[Point]:
    """Points at which no form is negative; outer names (of low rank) are given values first."""
    choices = Choices(forms, ranks)
    points = (choices.extended(Point(number)) for number in NUMBERS)
    return [point for point in points if point is not None]


class Choices:
    """How a point gives values to the further names of forms, outer ones (of low rank) first.

    Args: chosen: the names and loads that have their values.
    """

    def __init__(
        self, forms: list[Linear], ranks: Mapping[str, int], chosen: Collection[Expr] = ()
    ) -> None:
        self.forms = forms
        self.bounding = _bounding(forms, ranks, chosen)

    def extended(self, old: Point) -> Point | None:
        """The point with values for the further names; None where a form is negative there."""
        point = Point(old.number, dict(old.chosen), dict(old.chosen))
        for leaf, bounds in self.bounding.items():
            point.choose(leaf, _chosen(leaf, bounds, point))
        return point if all(point.value(form) >= 0 for form in self.forms) else None


def _bounding(
    forms: list[Linear], ranks: Mapping[str, int], chosen: Collection[Expr]
) -> dict[Expr, list[tuple[int, Linear]]]:
    """The leaves in the order of their values, each with coefficient and rest of what bounds it."""
    new_of = [[leaf for leaf in dict.fromkeys(_leaves(f)) if leaf not in chosen] for f in forms]
    new = {leaf for leaves in new_of for leaf in leaves}
    order = sorted(new, key=lambda e: (_rank(e, ranks), order_key(e)))
    position = {leaf: at for at, leaf in enumerate(order)}
    # A form bounds that of its leaves which is given its value last.
    bounding: dict[Expr, list[tuple[int, Linear]]] = {leaf: [] for leaf in order}
    for form, leaves in zip(forms, new_of, strict=True):
        if not leaves:
            continue
        last = max(leaves, key=position.__getitem__)
        rest = form.without(last)
        if last in form.terms and last not in set(_leaves(rest)):
            bounding[last].append((form.terms[last], rest))
    return bounding


def _leaves(form: Linear) -> Iterator[Expr]:
    for e in postorder(*form.terms):
        if e.dtype is index and (isinstance(e, Name) or (isinstance(e, Cast) and _is_free(e.a))):
            yield e


def _is_free(data: Expr) -> bool:
    """Whether a point is free to give `data` any value of its dtype."""
    return data.dtype is not index and not isinstance(data, (Cast, Const))


def _rank(leaf: Expr, ranks: Mapping[str, int]) -> int:
    return max((ranks.get(name, 0) for name in leaf.free), default=0)


def _chosen(leaf: Expr, bounding: list[tuple[int, Linear]], point: Point) -> int:
    """A value with coefficient*leaf + rest >= 0 for all of `bounding`: an end, or one between."""
    lo, hi = dtype_range(leaf.a.dtype) if isinstance(leaf, Cast) else UNKNOWN
    if isinstance(leaf, Size):
        lo = 0
    for coefficient, rest in bounding:
        if coefficient > 0:
            end = -(point.value(rest) // coefficient)
            lo = end if lo is None else max(lo, end)
        else:
            end = point.value(rest) // -coefficient
            hi = end if hi is None else min(hi, end)
    default = _default(leaf, point.number)
    if lo is None or hi is None:
        return (
            max(lo, default) if lo is not None else min(hi, default) if hi is not None else default
        )
    number = point.number % len(_SIZES)
    turn = number if number < 2 else number + order_key(leaf)[1][0]
    return (lo, hi, (lo + hi) // 2, min(lo + 1, hi))[turn % 4]
