"""Linear forms known to be >= 0, and the numbers and points that follow from them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import lcm
from typing import Self

from tensorlang.ir.expr import Expr
from tensorlang.ir.linear import Linear, expanded
from tensorlang.ir.ranges import UNKNOWN, Range, add, intersect, range_of, scale
from tensorlang.ir.samples import NUMBERS, Choices, Point
from tensorlang.ir.walk import fold

# Wider forms are of no use to a proof, and more forms of one term only make it longer.
WIDTH = 24
_FORMS_OF_A_TERM = 12
# A rank that no name has.
NOWHERE = 1 << 30


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """Forms that are >= 0, by the terms they bound; `ranks` orders names, inner ones higher."""

    forms: Mapping[Expr, tuple[Linear, ...]] = field(default_factory=dict[Expr, tuple[Linear, ...]])
    ends: Mapping[Expr, Range] = field(default_factory=dict[Expr, Range])
    ranks: Mapping[str, int] = field(default_factory=dict[str, int])
    # Atoms that are known to be multiples of a number.
    multiples: Mapping[Expr, int] = field(default_factory=dict[Expr, int])
    _ranges: dict[Expr, Range] = field(default_factory=dict[Expr, Range])
    _ranked: dict[Expr, tuple[int, bool]] = field(default_factory=dict[Expr, tuple[int, bool]])
    _points: dict[int, Point | None] = field(default_factory=dict[int, Point | None])
    _choices: list[Choices] = field(default_factory=list[Choices])
    # What this was made from, and the forms that it has more.
    _smaller: "tuple[Self, list[Linear]] | None" = None
    # The lowest rank of these: nothing more is known here of what stands further out.
    about: int = 0

    def plus(self, forms: Iterable[Linear], ranks: Mapping[str, int] | None = None) -> Self:
        """This and `forms` as well, all >= 0."""
        kept, ends = dict(self.forms), dict(self.ends)
        added: list[Linear] = []
        for form in map(expanded, forms):
            if not 0 < len(form.terms) <= WIDTH:
                continue
            added.append(form)
            for term in form.terms:
                found = kept.get(term, ())
                if len(found) < _FORMS_OF_A_TERM:
                    kept[term] = (*found, form)
                ends[term] = intersect(ends.get(term, UNKNOWN), self._end(form, term))
        ranks = self.ranks if ranks is None else ranks
        about = min((_rank(form, ranks) for form in added), default=NOWHERE)
        return type(self)(kept, ends, ranks, self.multiples, _smaller=(self, added), about=about)

    def around(self, names: Iterable[str]) -> Self:
        """The smallest set of these that says as much of expressions over `names`.

        What is known of names bound further in is of no use to them.
        """
        rank = rank_of(names, self.ranks)
        forms = self
        while forms.about > rank and forms._smaller is not None:
            forms = forms._smaller[0]
        return forms

    def points(self) -> Iterator[Point]:
        """Points at which all the forms hold, each chosen when it is first asked for."""
        points = map(self._point, NUMBERS)
        return (point for point in points if point is not None)

    def _point(self, number: int) -> Point | None:
        waiting: list[Forms] = []
        forms: Forms | None = self
        while forms is not None and number not in forms._points:
            waiting.append(forms)
            forms = forms._smaller[0] if forms._smaller is not None else None
        while waiting:
            forms = waiting.pop()
            forms._points[number] = forms._choose_point(number)
        return self._points[number]

    def _choose_point(self, number: int) -> Point | None:
        """That of what this was made from, if the further forms hold there; else another."""
        below, added = self._smaller if self._smaller is not None else (None, [])
        old = below._points[number] if below is not None else Point(number)
        if old is None or not added:
            return old
        if not self._choices:
            self._choices.append(Choices(added, self.ranks, old.chosen))
        found = self._choices[0].extended(old)
        if found is None and number in NUMBERS[:2]:
            distinct = {form: None for forms in self.forms.values() for form in forms}
            found = Choices(list(distinct), self.ranks).extended(Point(number))
        return found

    def refutes(self, form: Linear) -> bool:
        """Whether `form` is negative somewhere, as far as a few points show."""
        return any(point.value(form) < 0 for point in self.points())

    def without(self, name: str) -> Self:
        """This without what mentions `name`."""
        if name not in self.ranks and not any(name in term.free for term in self.forms):
            return self
        left = {form.key(): form for forms in self.forms.values() for form in forms}
        kept = [f for f in left.values() if not any(name in term.free for term in f.terms)]
        ranks = {other: rank for other, rank in self.ranks.items() if other != name}
        multiples = {e: n for e, n in self.multiples.items() if name not in e.free}
        return type(self)(multiples=multiples).plus(kept, ranks)

    def with_multiple(self, atom: Expr, n: int) -> Self:
        """This, and that `atom` is a multiple of n."""
        multiples = {**self.multiples, atom: lcm(n, self.multiples.get(atom, 1))}
        about = rank_of(atom.free, self.ranks)
        return type(self)(
            self.forms, self.ends, self.ranks, multiples, _smaller=(self, []), about=about
        )

    def _end(self, form: Linear, term: Expr) -> Range:
        """What `form` >= 0 says of `term` alone, its other terms being anywhere in their ranges."""
        highest = self.range(form.without(term))[1]
        coefficient = form.terms[term]
        if highest is None:
            return UNKNOWN
        if coefficient > 0:
            return -(highest // coefficient), None
        return None, highest // -coefficient

    def range(self, form: Linear) -> Range:
        """The numeric range of a form."""
        total: Range = (form.constant, form.constant)
        for term, coefficient in form.terms.items():
            if total == UNKNOWN:
                break
            total = add(total, scale(self.range_of_term(term), coefficient))
        return total

    def range_of_term(self, term: Expr) -> Range:
        """The numeric range of an atom."""
        return fold(term, self._step, self._ranges)

    def _step(self, e: Expr, operands: list[Range]) -> Range:
        found = range_of(e, operands)
        return intersect(found, self.ends[e]) if e in self.ends else found

    def rank(self, term: Expr) -> tuple[int, bool]:
        """Inner names first; of one name, what is built from it before the name itself."""
        if term not in self._ranked:
            self._ranked[term] = rank_of(term.free, self.ranks), bool(term.children)
        return self._ranked[term]


def rank_of(names: Iterable[str], ranks: Mapping[str, int]) -> int:
    """The rank of the innermost of some names."""
    return max((ranks.get(name, 0) for name in names), default=0)


def _rank(form: Linear, ranks: Mapping[str, int]) -> int:
    return max(rank_of(term.free, ranks) for term in form.terms)


def tightened(form: Linear) -> Linear:
    """An equivalent of form >= 0 over the integers: g*d + c >= 0 -> d + c//g >= 0."""
    form = expanded(form)
    divisor = form.content()
    if divisor <= 1:
        return form
    return Linear(form.constant // divisor, {a: c // divisor for a, c in form.terms.items()})
