"""Proving that a linear form is >= 0 from forms known to be >= 0.

Terms are eliminated one at a time, those of the innermost names first, each by a form that bounds
it: for d = k*x + r and a known p*x + f >= 0 with k and p of one sign,

    |p|*d - |k|*(p*x + f) >= 0   implies   d >= 0.

Every atom brings forms of its own: n*(y//n) <= y, 0 <= y%n <= n - 1, min(a, b) <= a, ...  A
min, max or select that must be bounded from its other side is split into cases.  Forms are over
integers: g*d + c >= 0 is d + c//g >= 0.  The work is bounded; giving up means "not proved".
"""

from collections.abc import Iterable, Iterator

from tensorlang.ir.conditions import forms_of, negated
from tensorlang.ir.expr import Binary, Cast, Const, Expr, Promise, Select
from tensorlang.ir.forms import WIDTH, Forms, tightened
from tensorlang.ir.linear import (
    Linear,
    constant,
    expanded,
    factors_of,
    integer,
    product,
    single,
    to_expr,
    to_linear,
)
from tensorlang.ir.order import order_key
from tensorlang.ir.types import index

_STEPS = 48
_DEPTH = 14

# Forms that must all be >= 0, each under what is known there.
Goals = list[tuple[Linear, Forms]]


def prove_nonnegative(form: Linear, known: Forms) -> bool:
    """Whether `form` >= 0 follows from `known`, as far as bounded work can tell."""
    return _Search().prove(form, known, _DEPTH)


class _Search:
    """One proof attempt: a budget of steps, and the forms tried so far."""

    def __init__(self) -> None:
        self.steps = _STEPS
        self.tried: dict[object, bool] = {}

    def prove(self, form: Linear, known: Forms, depth: int) -> bool:
        """Whether `form` >= 0 follows from `known` within the budget."""
        form = tightened(form)
        if not form.terms:
            return form.constant >= 0
        lo, hi = known.range(form)
        if lo is not None and lo >= 0:
            return True
        if (hi is not None and hi < 0) or depth == 0 or len(form.terms) > WIDTH:
            return False
        if known.refutes(form):
            return False
        key = (form.key(), known)
        if key in self.tried:
            return self.tried[key]
        self.tried[key] = False
        self.steps -= 1
        if self.steps < 0:
            return False
        proved = any(self._all(goals, depth - 1) for goals in self._ways(form, known, depth))
        self.tried[key] = proved
        return proved

    def _all(self, goals: Goals, depth: int) -> bool:
        return all(self.prove(form, known, depth) for form, known in goals)

    def _ways(self, form: Linear, known: Forms, depth: int) -> Iterator[Goals]:
        """Alternatives, each a list of forms whose being >= 0 proves `form` >= 0."""
        terms = form.terms.items()
        term = max(terms, key=lambda t: (_splits(*t), known.rank(t[0]), order_key(t[0])))[0]
        sign = form.terms[term]
        for bound in known.forms.get(term, ()):
            if bound.terms[term] * sign > 0:
                yield [(_eliminate(form, bound, term, constant(abs(sign))), known)]
        factors = factors_of(term)
        atom = max(factors, key=lambda f: (_splits(f, sign), known.rank(f), order_key(f)))
        yield from self._cases(form, atom, known)
        if _splits(atom, sign):
            return
        if len(factors) == 1:
            yield from self._exactly(form, atom, known, depth)
            yield from self._by_bounds(form, atom, known, depth)
        else:
            yield from self._by_factor(form, term, known, depth)
        yield from _numerically(form, term, known)
        # Of two extrema it may matter which is bounded first.
        for other in form.terms:
            if other is not term and isinstance(other, Binary) and other.op in ("min", "max"):
                yield from self._by_bounds(form, other, known, depth)

    def _by_bounds(self, form: Linear, atom: Expr, known: Forms, depth: int) -> Iterator[Goals]:
        """Bound an atom by what it is."""
        coefficient = constant(abs(form.terms[atom]))
        for bound in self._bounds(atom, form.terms[atom], known, depth):
            yield [(_eliminate(form, bound, atom, coefficient), known)]

    def _by_factor(self, form: Linear, term: Expr, known: Forms, depth: int) -> Iterator[Goals]:
        """Bound one factor of a product whose other factors have a known sign."""
        factors = factors_of(term)
        ranked = sorted(set(factors), key=lambda f: (known.rank(f), order_key(f)), reverse=True)
        for atom in ranked:
            if sum(f is atom for f in factors) > 1:
                continue
            others = single(product(*(f for f in factors if f is not atom)))
            for bound in self._products(form, term, atom, known, depth):
                yield [(bound, known)]
            if not self.prove(others, known, min(depth - 1, 3)):
                continue
            sign = form.terms[term]
            bounds = (*known.forms.get(atom, ()), *self._bounds(atom, sign, known, depth))
            for bound in bounds:
                if bound.terms[atom] * sign > 0:
                    yield [(_eliminate(form, bound, atom, others * abs(sign)), known)]

    def _products(
        self, form: Linear, term: Expr, atom: Expr, known: Forms, depth: int
    ) -> Iterator[Linear]:
        """For the term n*(y//n)*others: y - n + 1 <= n*(y//n) <= y, times the others >= 0."""
        if not isinstance(atom, Binary) or atom.op != "floordiv":
            return
        n, y = expanded(to_linear(atom.b)), expanded(to_linear(atom.a))
        whole = n.times(single(atom))
        for part, coefficient in n.terms.items():
            others = _without(factors_of(term), (atom, *factors_of(part)))
            if others is None or not self._positive(atom.b, known, depth):
                continue
            rest = single(product(*others)) if others else constant(1)
            if others and not self.prove(rest, known, min(depth - 1, 3)):
                continue
            below = form.terms[term] * coefficient < 0
            bound = y - whole if below else whole - y + n.shifted(-1)
            yield form * abs(coefficient) - bound.times(rest * abs(form.terms[term]))

    def _positive(self, n: Expr, known: Forms, depth: int) -> bool:
        if isinstance(n, Const):
            return int(n.value) > 0
        return self.prove(to_linear(n).shifted(-1), known, min(depth - 1, 4))

    def _cases(self, form: Linear, atom: Expr, known: Forms) -> Iterator[Goals]:
        """Replace an atom by each of the values that it can be."""
        match atom:
            case Binary(op="min" | "max"):
                # The simpler operand first: it fails sooner.
                values = sorted((atom.b, atom.a), key=lambda e: bool(e.children))
                if _sign(form, atom) != (-1 if atom.op == "min" else 1):
                    yield [(_replaced(form, atom, to_linear(value)), known) for value in values]
            case Select():
                sides = ((atom.a, True), (atom.b, False))
                yield [
                    (_replaced(form, atom, to_linear(e)), _under(known, atom.condition, holds))
                    for e, holds in sides
                ]
            case Promise():
                yield [(_replaced(form, atom, to_linear(atom.a)), known)]
            case Binary(op="mod"):
                quotient = Binary("floordiv", atom.a, atom.b)
                present = any(f is quotient for term in form.terms for f in factors_of(term))
                if present and self._positive(atom.b, known, 4):
                    whole = expanded(to_linear(atom.b)).times(single(quotient))
                    yield [(_replaced(form, atom, to_linear(atom.a) - whole), known)]
            case _:
                pass

    def _exactly(self, form: Linear, atom: Expr, known: Forms, depth: int) -> Iterator[Goals]:
        """With m = r//k, n >= 1: r - k*(y//n) >= 0 is y <= m*n + n - 1; r + k*(y//n), y >= -m*n."""
        if not isinstance(atom, Binary) or atom.op != "floordiv":
            return
        rest, k = form.without(atom), form.terms[atom]
        if any(f is atom for term in rest.terms for f in factors_of(term)):
            return
        if not self._positive(atom.b, known, depth):
            return
        y, n = expanded(to_linear(atom.a)), expanded(to_linear(atom.b))
        limit = _floor(rest, abs(k)).times(n)
        yield [(y + limit if k > 0 else limit + n.shifted(-1) - y, known)]

    def _bounds(self, atom: Expr, sign: int, known: Forms, depth: int) -> Iterator[Linear]:
        """Forms >= 0 that follow from what `atom` is and bound it from the side of `sign`."""
        this = single(atom)
        match atom:
            case Binary(op="floordiv", b=Const(value=n)) if int(n) > 0:
                y = expanded(to_linear(atom.a))
                yield this * int(n) - y.shifted(1 - int(n)) if sign > 0 else y - this * int(n)
            case Binary(op="floordiv") if sign > 0:
                if self._holds(atom.a, known, depth) and self._holds(atom.b, known, depth):
                    yield this
            case Binary(op="mod"):
                yield from self._remainder_bounds(atom, sign, known, depth)
            case Binary(op="min") if sign < 0:
                yield expanded(to_linear(atom.b)) - this
                yield expanded(to_linear(atom.a)) - this
            case Binary(op="max") if sign > 0:
                yield this - expanded(to_linear(atom.b))
                yield this - expanded(to_linear(atom.a))
            case Cast(a=Cast(dtype=narrow, a=inner)) if sign < 0 and inner.dtype is index:
                # Wrapping makes no value larger that is not below the range of its dtype.
                value = expanded(to_linear(inner))
                if narrow.is_integer and self.prove(
                    value.shifted(-narrow.lowest), known, min(depth - 1, 4)
                ):
                    yield value - this
            case Promise():
                lo, hi = expanded(to_linear(atom.lo)), expanded(to_linear(atom.hi))
                yield this - lo if sign > 0 else hi - this
            case _:
                pass

    def _remainder_bounds(
        self, atom: Binary, sign: int, known: Forms, depth: int
    ) -> Iterator[Linear]:
        if not self._holds(atom.b, known, depth):
            return
        if sign > 0:
            yield single(atom)
            return
        if self._positive(atom.b, known, depth):
            yield expanded(to_linear(atom.b)).shifted(-1) - single(atom)
        if self._holds(atom.a, known, depth):
            yield expanded(to_linear(atom.a)) - single(atom)

    def _holds(self, e: Expr, known: Forms, depth: int) -> bool:
        """Whether e >= 0."""
        return self.prove(to_linear(e), known, min(depth - 1, 4))


def _splits(term: Expr, sign: int) -> bool:
    """Whether a term is replaced by cases: that loses nothing, so it comes before any bound."""
    for factor in factors_of(term):
        match factor:
            case Select():
                return True
            case Binary(op="min"):
                return sign > 0
            case Binary(op="max"):
                return sign < 0
            case _:
                pass
    return False


def _without(factors: Iterable[Expr], removed: Iterable[Expr]) -> list[Expr] | None:
    """The factors less those removed; None when one of these is not there."""
    left = list(factors)
    for factor in removed:
        at = next((k for k, other in enumerate(left) if other is factor), None)
        if at is None:
            return None
        left.pop(at)
    return left


def _eliminate(form: Linear, bound: Linear, atom: Expr, factor: Linear) -> Linear:
    return form * abs(bound.terms[atom]) - bound.times(factor)


def _floor(form: Linear, divisor: int) -> Linear:
    """form // divisor."""
    if divisor == 1:
        return form
    whole, rest = form.divided(divisor)
    if not rest.terms:
        return whole
    return whole + single(Binary("floordiv", to_expr(rest), integer(divisor)))


def _numerically(form: Linear, term: Expr, known: Forms) -> Iterator[Goals]:
    lo, hi = known.range_of_term(term)
    coefficient = form.terms[term]
    end = lo if coefficient > 0 else hi
    if end is not None:
        yield [(form.without(term).shifted(end * coefficient), known)]


def _sign(form: Linear, atom: Expr) -> int:
    """The sign with which `atom` occurs in `form`; 0 when it stands in a product."""
    if any(len(f) > 1 and any(x is atom for x in f) for f in map(factors_of, form.terms)):
        return 0
    return 1 if form.terms[atom] > 0 else -1


def _replaced(form: Linear, atom: Expr, value: Linear) -> Linear:
    """The form with `value` for `atom`, also inside its products."""
    value = expanded(value)
    total = constant(form.constant)
    for term, coefficient in form.terms.items():
        part = constant(1)
        for factor in factors_of(term):
            part = part.times(value if factor is atom else single(factor))
        total = total.plus(part, coefficient)
    return total


def _under(known: Forms, condition: Expr, holds: bool) -> Forms:
    forms = forms_of(condition if holds else negated(condition))
    return known.plus(forms) if forms else known
