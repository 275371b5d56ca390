"""Linear forms: constant + sum(coefficient * atom), exact, over index expressions.

An atom is whatever is not itself a sum: a name, a quotient, a remainder, min, max, select, a load,
a cast, or a product of two or more of these.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd

from tensorlang.ir.expr import Binary, Const, Expr, Unary
from tensorlang.ir.order import order_key
from tensorlang.ir.types import index


@lru_cache(maxsize=1 << 12)
def integer(value: int) -> Const:
    """The index constant `value`."""
    return Const(value, index)


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """constant + sum(coefficient * atom for atom, coefficient in terms); no coefficient is 0."""

    constant: int = 0
    terms: Mapping[Expr, int] = field(default_factory=dict[Expr, int])

    def __add__(self, other: "Linear") -> "Linear":
        return self.plus(other, 1)

    def __sub__(self, other: "Linear") -> "Linear":
        return self.plus(other, -1)

    def plus(self, other: "Linear", factor: int) -> "Linear":
        """self + factor*other."""
        terms = dict(self.terms)
        for atom, coefficient in other.terms.items():
            _accumulate(terms, atom, factor * coefficient)
        return Linear(self.constant + factor * other.constant, terms)

    def plus_all(self, others: "Iterable[Linear]") -> "Linear":
        """The sum of this and all the others."""
        total, terms = self.constant, dict(self.terms)
        for other in others:
            total += other.constant
            for atom, coefficient in other.terms.items():
                _accumulate(terms, atom, coefficient)
        return Linear(total, terms)

    def __mul__(self, factor: int) -> "Linear":
        if factor == 0:
            return ZERO
        if factor == 1:
            return self
        return Linear(self.constant * factor, {a: c * factor for a, c in self.terms.items()})

    def __neg__(self) -> "Linear":
        return self * -1

    def shifted(self, by: int) -> "Linear":
        """self + by."""
        return Linear(self.constant + by, self.terms)

    def without(self, atom: Expr) -> "Linear":
        """The form without its term of `atom`."""
        return Linear(self.constant, {a: c for a, c in self.terms.items() if a is not atom})

    def content(self) -> int:
        """The greatest common divisor of the coefficients; 0 for a constant."""
        return gcd(*self.terms.values())

    def divided(self, by: int) -> "tuple[Linear, Linear]":
        """(q, r) with self = by*q + r: coefficients of r below `by` in size, its constant >= 0."""
        whole: dict[Expr, int] = {}
        rest: dict[Expr, int] = {}
        for atom, coefficient in self.terms.items():
            quotient = abs(coefficient) // by * (1 if coefficient > 0 else -1)
            if quotient:
                whole[atom] = quotient
            if coefficient != quotient * by:
                rest[atom] = coefficient - quotient * by
        return Linear(self.constant // by, whole), Linear(self.constant % by, rest)

    def key(self) -> tuple[int, frozenset[tuple[Expr, int]]]:
        """Equal for equal forms, and hashable."""
        return self.constant, frozenset(self.terms.items())

    def times(self, other: "Linear") -> "Linear":
        """The product, term by term: (i + 1)*(n + 2) -> i*n + 2*i + n + 2."""
        terms: dict[Expr, int] = {}
        for a, c in _with_unit(self):
            for b, d in _with_unit(other):
                if a is _UNIT or b is _UNIT:
                    _accumulate(terms, b if a is _UNIT else a, c * d)
                else:
                    _accumulate(terms, multiplied(a, b), c * d)
        return Linear(terms.pop(_UNIT, 0), terms)


def _with_unit(linear: "Linear") -> list[tuple[Expr, int]]:
    return [*linear.terms.items(), (_UNIT, linear.constant)]


def _accumulate(terms: dict[Expr, int], atom: Expr, coefficient: int) -> None:
    total = terms.get(atom, 0) + coefficient
    if total:
        terms[atom] = total
    else:
        terms.pop(atom, None)


_UNIT = integer(1)
ZERO = Linear()


def constant(value: int) -> Linear:
    """The form that is only a constant."""
    return Linear(value)


def single(atom: Expr, coefficient: int = 1) -> Linear:
    """coefficient * atom."""
    return Linear(0, {atom: coefficient})


def is_sum(e: Expr) -> bool:
    """Whether `e` is an index sum, difference, negation or multiple, so not an atom."""
    if e.dtype is not index:
        return False
    if isinstance(e, Binary):
        if e.op == "mul":
            return isinstance(e.a, Const) or isinstance(e.b, Const)
        return e.op in ("add", "sub")
    return isinstance(e, Unary) and e.op == "neg"


@lru_cache(maxsize=1 << 14)
def to_linear(e: Expr) -> Linear:
    """The linear form of `e`; what is not a sum of other things is an atom, and is left as it is.

    Linear in the number of distinct nodes: a shared sum is visited once, with its total factor.
    """
    if not is_sum(e):
        value = _integer_value(e)
        return Linear(0, {e: 1}) if value is None else Linear(value)
    total, terms = 0, dict[Expr, int]()
    for leaf, coefficient in addends(e).items():
        value = _integer_value(leaf)
        if value is None:
            _accumulate(terms, leaf, coefficient)
        else:
            total += coefficient * value
    return Linear(total, terms)


def _integer_value(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Const) and e.dtype is index else None


def addends(e: Expr) -> dict[Expr, int]:
    """The leaves of the sum `e`, each with its coefficient (which may be 0)."""
    coefficients: dict[Expr, int] = {e: 1}
    leaves: dict[Expr, int] = {}
    for part in reversed(list(_sums(e))):
        scale = coefficients.pop(part)
        if not is_sum(part):
            leaves[part] = scale
            continue
        for operand, factor in _addends_of(part):
            coefficients[operand] = coefficients.get(operand, 0) + factor * scale
    return leaves


def _addends_of(e: Expr) -> tuple[tuple[Expr, int], ...]:
    if isinstance(e, Unary):
        return ((e.a, -1),)
    assert isinstance(e, Binary)
    if e.op == "mul":
        factor, other = (e.a, e.b) if isinstance(e.a, Const) else (e.b, e.a)
        assert isinstance(factor, Const)
        return ((other, int(factor.value)),)
    return (e.a, 1), (e.b, 1 if e.op == "add" else -1)


def _sums(root: Expr) -> Iterator[Expr]:
    """The sums below `root` and their leaves, operands before what uses them."""
    seen: set[Expr] = set()
    stack = [(root, False)]
    while stack:
        e, opened = stack.pop()
        if opened:
            yield e
        elif e not in seen:
            seen.add(e)
            stack.append((e, True))
            if is_sum(e):
                stack.extend((child, False) for child, _ in _addends_of(e))


def to_expr(linear: Linear) -> Expr:
    """The form as an expression: large coefficients first, what is subtracted last.

    io*128 + ii + 3, M - i - 1, 3 - i
    """
    terms = sorted(linear.terms.items(), key=_printed_order)
    if not terms or (terms[0][1] < 0 < linear.constant):
        result: Expr = integer(linear.constant)
        rest = 0
    else:
        first, coefficient = terms.pop(0)
        result = Unary("neg", first) if coefficient == -1 else _multiple(first, coefficient)
        rest = linear.constant
    for atom, coefficient in terms:
        op = "add" if coefficient > 0 else "sub"
        result = Binary(op, result, _multiple(atom, abs(coefficient)))
    if rest:
        result = Binary("add" if rest > 0 else "sub", result, integer(abs(rest)))
    return result


def _printed_order(term: tuple[Expr, int]) -> tuple[bool, int, tuple[str, bytes]]:
    atom, coefficient = term
    return coefficient < 0, -abs(coefficient), order_key(atom)


def _multiple(atom: Expr, coefficient: int) -> Expr:
    return atom if coefficient == 1 else Binary("mul", atom, integer(coefficient))


def factors_of(atom: Expr) -> tuple[Expr, ...]:
    """The factors of a product, in order; any other atom, and a product of very many, alone."""
    if not _is_product(atom):
        return (atom,)
    factors: list[Expr] = []
    stack = [atom]
    while stack:
        e = stack.pop()
        if isinstance(e, Binary) and _is_product(e):
            stack += (e.b, e.a)
        else:
            factors.append(e)
        if len(factors) + len(stack) > _MOST_FACTORS:
            return (atom,)
    return tuple(factors)


def _is_product(e: Expr) -> bool:
    return isinstance(e, Binary) and e.op == "mul" and e.dtype is index


# Squaring 20 times makes 2^20 factors of a few nodes.
_MOST_FACTORS = 12


def product(*factors: Expr) -> Expr:
    """The product of atoms, in the order of `order_key`."""
    first, *rest = sorted(factors, key=order_key)
    for factor in rest:
        first = Binary("mul", first, factor)
    return first


def expanded(linear: Linear) -> Linear:
    """Products of sums multiplied out, where that stays small: (i + 1)*n -> i*n + n."""
    if not any(any(map(is_sum, factors_of(atom))) for atom in linear.terms):
        return linear
    total = Linear(linear.constant)
    for atom, coefficient in linear.terms.items():
        total = total.plus(_multiplied_out(atom), coefficient)
    return total


def multiplied(a: Expr, b: Expr) -> Expr:
    """The product of two atoms, their factors in order; with very many factors, a pair."""
    first, second = factors_of(a), factors_of(b)
    opaque = any(len(fs) == 1 and _is_product(fs[0]) for fs in (first, second))
    if opaque or len(first) + len(second) > _MOST_FACTORS:
        return Binary("mul", *sorted((a, b), key=order_key))
    return product(*first, *second)


_LARGE = 32
_REMEMBERED = 1 << 14
_expansions: dict[Expr, Linear] = {}


def _multiplied_out(atom: Expr) -> Linear:
    found = _expansions.get(atom)
    if found is None:
        if len(_expansions) > _REMEMBERED:
            _expansions.clear()
        found = _expansions[atom] = _product_of_sums(atom)
    return found


def _product_of_sums(atom: Expr) -> Linear:
    result = Linear(1)
    for factor in factors_of(atom):
        part = expanded(to_linear(factor))
        if len(result.terms) * len(part.terms) > _LARGE:
            return single(atom)
        result = result.times(part)
    return result
