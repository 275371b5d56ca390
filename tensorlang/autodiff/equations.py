"""Solving index equations: sum(coefficient * axis) == right side, one a dimension.

Axes that no equation determines are `fixed`: what is read is summed over them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from tensorlang.autodiff.space import ONE, ZERO, Axis
from tensorlang.ir.expr import Compare, Const, Expr, Var
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.linear import Linear, expanded, factors_of, integer, product, to_expr, to_linear
from tensorlang.ir.simplify import simplify


@dataclass(frozen=True, slots=True, eq=False)
class _Equation:
    """sum(coefficients[axis] * axis) == right, which says that `index` is the target at `dim`."""

    dim: int
    index: Expr
    coefficients: dict[str, Expr]
    right: Expr


class Solver:
    """Equations between axes; after `solve`, `values`, `fixed`, `conditions` and `kept`."""

    def __init__(self, space: Sequence[Axis], facts: Facts) -> None:
        self.axes = {axis.name: axis for axis in space}
        self.facts = facts
        self.values: dict[str, Expr] = {}
        self.fixed: set[str] = set()
        self.conditions: list[Expr] = []
        # Dimensions whose index stays, in terms of fixed axes.
        self.kept: dict[int, Expr] = {}
        self._equations: list[_Equation] = []

    def add(self, dim: int, e: Expr, target: Expr) -> None:
        """The equation e == target, or, where `e` is not affine, an index that stays."""
        affine = _affine(e, frozenset(self.axes))
        if affine is None:
            self.kept[dim] = e
            self.fixed |= e.free & self.axes.keys()
            return
        coefficients, rest = affine
        self._equations.append(_Equation(dim, e, coefficients, target - rest))

    def solve(self) -> None:
        """Determine as many axes as can be; the others are fixed."""
        while self._equations:
            equations = [self._reduced(e) for e in self._equations]
            solvable = min(equations, key=self._cost)
            self._equations = [e for e in equations if e is not solvable]
            self._take(solvable)
        self.fixed |= self.axes.keys() - self.values.keys()
        self.values |= {name: Var(name) for name in self.fixed}

    def _reduced(self, equation: _Equation) -> _Equation:
        """The equation with what is solved or fixed on its right side."""
        left, right = dict(equation.coefficients), equation.right
        for name in equation.coefficients:
            if name in self.values or name in self.fixed:
                value = self.values.get(name)
                right = right - left.pop(name) * (Var(name) if value is None else value)
        return _Equation(equation.dim, equation.index, left, simplify(right, self.facts))

    def _cost(self, equation: _Equation) -> tuple[int, int]:
        """Equations of one axis first, then digits, then those that fix an axis, then the rest."""
        left = equation.coefficients
        if len(left) == 1:
            (c,) = left.values()
            return (0 if _unit(c) else 1), equation.dim
        if not left:
            return 4, equation.dim
        return (2 if self._last_digit(equation) else 3), equation.dim

    def _take(self, equation: _Equation) -> None:
        left = equation.coefficients
        if not left:
            self._check(equation)
        elif len(left) == 1:
            ((name, c),) = left.items()
            self._divide(equation, name, c)
        elif digit := self._last_digit(equation):
            self._peel(equation, *digit)
        else:
            self._choose(equation)

    def _check(self, equation: _Equation) -> None:
        """Nothing is left to solve: a condition, or, of fixed axes alone, an index that stays."""
        if equation.index.free & self.axes.keys() <= self.fixed and self._sums_something():
            self.kept[equation.dim] = equation.index
        else:
            self.conditions.append(_equals_zero(equation.right))

    def _sums_something(self) -> bool:
        return bool(self.axes.keys() - self.values.keys())

    def _divide(self, equation: _Equation, name: str, c: Expr) -> None:
        """c*x == right  ->  x = right//c where right % c == 0."""
        right = equation.right
        if isinstance(c, Const) and c.value < 0:
            c, right = integer(-int(c.value)), simplify(-right, self.facts)
        if c is ONE:
            self.values[name] = right
        elif prove_le(ONE, c, self.facts):
            self.values[name] = simplify(right // c, self.facts)
            self.conditions.append(_equals_zero(simplify(right % c, self.facts)))
        else:
            self._keep(equation)

    def _keep(self, equation: _Equation) -> None:
        """The index of a dimension stays: its axes are fixed."""
        if self.values.keys().isdisjoint(equation.index.free):
            self.kept[equation.dim] = equation.index
            self.fixed |= equation.index.free & self.axes.keys()
        else:
            self.fixed |= equation.coefficients.keys()
            total = equation.right
            for name, c in equation.coefficients.items():
                total = total - c * Var(name)
            self.conditions.append(_equals_zero(simplify(total, self.facts)))

    def _last_digit(self, equation: _Equation) -> tuple[str, Expr] | None:
        """y and n: y has coefficient 1 and at most n values, and all else is a multiple of n."""
        left = equation.coefficients
        for name, c in left.items():
            if c is not ONE:
                continue
            n = _common([other for axis, other in left.items() if axis != name])
            extent = self.axes[name].extent
            if n is not None and prove_le(extent, n, self.facts):
                return name, n
        return None

    def _peel(self, equation: _Equation, name: str, n: Expr) -> None:
        """n*x + y == right, y in [first, first + n)  ->  y = first + t%n, x == t//n."""
        first = self.axes[name].first
        t = equation.right - first
        self.values[name] = simplify(first + t % n, self.facts)
        rest = {
            axis: simplify(_quotient(c, n))
            for axis, c in equation.coefficients.items()
            if axis != name
        }
        right = simplify(t // n, self.facts)
        self._equations.append(_Equation(equation.dim, equation.index, rest, right))

    def _choose(self, equation: _Equation) -> None:
        """Solve for the axis with the most values; the others are summed over."""
        left = equation.coefficients
        constant = [name for name, c in left.items() if isinstance(c, Const)]
        if len(constant) < len(left):
            self._keep(equation)
            return
        chosen = max(constant, key=lambda name: self._weight(name, left[name]))
        self.fixed |= left.keys() - {chosen}
        self._equations.append(equation)

    def _weight(self, name: str, c: Expr) -> tuple[float, bool]:
        extent = self.axes[name].extent
        count = float(extent.value) if isinstance(extent, Const) else float("inf")
        return count, _unit(c)


def _unit(c: Expr) -> bool:
    return isinstance(c, Const) and abs(int(c.value)) == 1


def _equals_zero(e: Expr) -> Expr:
    return Compare("eq", e, ZERO)


def is_affine(e: Expr, axes: frozenset[str]) -> bool:
    """Whether an index is a sum of multiples of axes and of what does not vary along them."""
    return _affine(e, axes) is not None


def _affine(e: Expr, axes: frozenset[str]) -> tuple[dict[str, Expr], Expr] | None:
    """The coefficients of the axes in `e`, and what is left; None where `e` is not affine."""
    form = expanded(to_linear(e))
    rest = Linear(form.constant)
    coefficients: dict[str, Expr] = {}
    for atom, c in form.terms.items():
        if axes.isdisjoint(atom.free):
            rest = rest.plus(Linear(0, {atom: c}), 1)
            continue
        varying = [f for f in factors_of(atom) if not axes.isdisjoint(f.free)]
        if len(varying) != 1 or not isinstance(varying[0], Var):
            return None
        others = [f for f in factors_of(atom) if f is not varying[0]]
        scale = integer(c) if not others else product(*others) * c
        name = varying[0].name
        known = coefficients.get(name)
        coefficients[name] = scale if known is None else simplify(known + scale)
    return {name: c for name, c in coefficients.items() if c is not ZERO}, to_expr(rest)


def _common(coefficients: Sequence[Expr]) -> Expr | None:
    """A positive number of which all are multiples."""
    if all(isinstance(c, Const) for c in coefficients):
        return integer(gcd(*(int(c.value) for c in coefficients)))  # type: ignore[attr-defined]
    return coefficients[0] if len(coefficients) == 1 else None


def _quotient(c: Expr, n: Expr) -> Expr:
    if isinstance(c, Const) and isinstance(n, Const):
        return integer(int(c.value) // int(n.value))
    assert c is n
    return ONE
