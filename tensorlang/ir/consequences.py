"""What follows at once from a form that is >= 0, so that proofs find it without a search."""

from collections.abc import Iterable, Iterator

from tensorlang.ir.expr import Binary
from tensorlang.ir.forms import tightened
from tensorlang.ir.inequality import Known
from tensorlang.ir.linear import Linear, expanded, factors_of, to_linear

_MOST = 16


def with_consequences(known: Known, forms: Iterable[Linear]) -> Known:
    """`known`, the forms, and what follows from them."""
    return known.plus(consequences(known, forms))


def consequences(known: Known, forms: Iterable[Linear]) -> list[Linear]:
    """The forms, tightened, and what follows from them."""
    waiting = list(forms)
    kept: dict[object, Linear] = {}
    while waiting and len(kept) < _MOST:
        form = waiting.pop(0)
        tight = tightened(form)
        key = tight.key()
        if key in kept:
            continue
        kept[key] = tight
        if any(isinstance(term, Binary) for term in form.terms):
            waiting += _following(form, known, list(kept.values()))
    return list(kept.values())


def _following(form: Linear, known: Known, forms: list[Linear]) -> Iterator[Linear]:
    yield from _factors_positive(form, known, forms)
    for term, coefficient in form.terms.items():
        if isinstance(term, Binary):
            yield from _of_extremum(form, term, coefficient)
            yield from _of_quotient(form, term, coefficient, known, forms)


def _factors_positive(form: Linear, known: Known, forms: list[Linear]) -> Iterator[Linear]:
    """a*b >= 1 -> a >= 1, b >= 1, where all factors but one are known to be at least 0."""
    if len(form.terms) != 1 or form.constant >= 0:
        return
    term, coefficient = next(iter(form.terms.items()))
    factors = [expanded(to_linear(f)) for f in factors_of(term)]
    if coefficient > 0 and len(factors) > 1:
        known = known.plus(forms)
        if sum(map(known.nonnegative, factors)) >= len(factors) - 1:
            yield from (factor.shifted(-1) for factor in factors)


def _of_extremum(form: Linear, term: Binary, coefficient: int) -> Iterator[Linear]:
    """min(a, b) + f >= 0 -> a + f >= 0, b + f >= 0, and the same for -max."""
    if term.op == ("min" if coefficient > 0 else "max"):
        rest = form.without(term)
        yield from (rest.plus(to_linear(e), coefficient) for e in (term.a, term.b))


def _of_quotient(
    form: Linear, term: Binary, coefficient: int, known: Known, forms: list[Linear]
) -> Iterator[Linear]:
    """For n >= 1: y//n + f >= 0 -> y + f*n >= 0, and f - y//n >= 0 -> f*n + n - 1 - y >= 0."""
    if term.op != "floordiv" or abs(coefficient) != 1:
        return
    y, n = expanded(to_linear(term.a)), expanded(to_linear(term.b))
    least = n.shifted(-1)
    if not known.nonnegative(least) and not (n.terms and known.plus(forms).nonnegative(least)):
        return
    rest = expanded(form.without(term)).times(n)
    yield y + rest if coefficient > 0 else rest + n.shifted(-1) - y
