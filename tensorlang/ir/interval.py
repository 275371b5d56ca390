"""Symbolic intervals: where an index expression lies when some names vary and others stay.

    bounds_of(io*128 + ii - 1, {"ii": Interval(0, 127)})  ->  [io*128 - 1, io*128 + 126]

Exact for linear forms, also where ranges depend on each other (j in [0, i], i in [0, n)): names are
eliminated in the order of that dependence.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal

from tensorlang.ir.conditions import negated
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Name, Promise, Select, Var
from tensorlang.ir.facts import Facts, canonical, prove_le
from tensorlang.ir.interval_arithmetic import (
    EVERYWHERE,
    Interval,
    at_least,
    floordiv,
    greatest,
    intersect,
    least,
    mod,
    multiply,
    prove_ge,
    tighter,
    union,
)
from tensorlang.ir.linear import (
    Linear,
    constant,
    factors_of,
    integer,
    product,
    single,
    to_expr,
    to_linear,
)
from tensorlang.ir.types import index
from tensorlang.ir.walk import substitute

__all__ = ["Interval", "bounds_of", "intersect", "sharpen", "union", "within"]

Side = Literal["lo", "hi"]
ZERO = integer(0)
_SPLITS = 16
_CONTEXTS = 32
_REMEMBERED = 1 << 14


def bounds_of(e: Expr, ranges: Mapping[str, Interval], facts: Facts = Facts.none) -> Interval:
    """The interval of `e` while the names in `ranges` vary; other names stay as they are.

    A buffer in `ranges` is one of whose elements nothing is known.
    """
    needed = _needed(ranges, e.free | e.reads)
    if not needed and facts is Facts.none:
        plain = canonical(e)
        return Interval(plain, plain)
    if len(needed) == 1 and needed.issuperset(e.free):
        moved = _moved(to_linear(e), ranges)
        if moved is not None:
            return moved
    used = {name: r for name, r in ranges.items() if name in needed}
    if facts is not Facts.none:
        return _Bounds(used, facts, [_CONTEXTS], frozenset(ranges)).of(e)
    key = (e, *((name, r.lo, r.hi) for name, r in used.items()))
    found = _found.get(key)
    if found is None:
        if len(_found) > _REMEMBERED:
            _found.clear()
        found = _found[key] = _Bounds(used, facts, [_CONTEXTS], frozenset(used)).of(e)
    return found


def _moved(form: Linear, ranges: Mapping[str, Interval]) -> Interval | None:
    """Of k*name + c the ends of the name, moved: they were simplified when they were found."""
    ((atom, k),) = form.terms.items() if len(form.terms) == 1 else ((ZERO, 0),)
    if not isinstance(atom, Name):
        return None
    ends = ranges[atom.name]
    if k == 1 and not form.constant:
        return ends
    lo, hi = (
        None if end is None else canonical(to_expr(to_linear(end) * k + constant(form.constant)))
        for end in (ends.lo, ends.hi)
    )
    return Interval(lo, hi) if k > 0 else Interval(hi, lo)


# Of expressions under the ranges that they need: loops that are alike give alike ones.
_found: dict[tuple[object, ...], Interval] = {}


def forget() -> None:
    """Forget the intervals that were found; they can be found again."""
    _found.clear()


def within(ranges: Mapping[str, Interval], facts: Facts = Facts.none) -> Facts:
    """`facts`, and that each name in `ranges` lies in its interval."""
    for name in _dependence_order(ranges)[::-1]:
        interval = ranges[name]
        facts = facts.with_bounds(name, interval.lo, interval.hi)
    return facts


def sharpen(
    ranges: Mapping[str, Interval], condition: Expr, facts: Facts = Facts.none
) -> dict[str, Interval]:
    """The ranges where `condition` holds: its inequalities solved for each name in `ranges`.

    Where old and new bound cannot be compared, the result is the min (or max) of both.
    """
    sharper = dict(ranges)
    for form in facts.forms_of(condition):
        for name in [n for n in sharper if any(a is Var(n) for a in form.terms)]:
            _sharpen_by(sharper, name, form, facts)
    return sharper


def _sharpen_by(ranges: dict[str, Interval], name: str, form: Linear, facts: Facts) -> None:
    """Narrow the range of `name` by k*name + rest >= 0."""
    k = form.terms[Var(name)]
    rest = form.without(Var(name))
    names = list(ranges)
    # Of two names that bound each other, the later one may depend on the earlier one.
    later = names[names.index(name) + 1 :]
    needed = _needed(ranges, (n for term in rest.terms for n in term.free))
    inner = {
        n: ranges[n]
        for n in names
        if n in needed and n != name and (n in later or name in _needed(ranges, (n,)))
    }
    highest = _Bounds(inner, facts, [0], frozenset(inner)).end(rest, "hi")
    highest = None if highest is None else _free_of(name, highest)
    if highest is None:
        return
    bound = facts.simplified(Binary("floordiv", highest, integer(abs(k))))
    new = Interval(facts.simplified(-bound), None) if k > 0 else Interval(None, bound)
    ranges[name] = intersect(ranges[name], new, facts)


def _free_of(name: str, highest: Expr) -> Expr | None:
    """An upper bound of an upper bound that does not mention `name`: of min(name, b), that is b."""
    form = to_linear(highest)
    for atom, coefficient in form.terms.items():
        if name in atom.free:
            if not isinstance(atom, Binary) or atom.op != ("min" if coefficient > 0 else "max"):
                return None
            others = [side for side in atom.children if name not in side.free]
            if not others:
                return None
            form = form.without(atom).plus(to_linear(others[0]), coefficient)
    return to_expr(form)


def _wraps(inner: Expr, narrow: Cast) -> bool:
    return inner.dtype is index and narrow.dtype.is_integer


def _needed(ranges: Mapping[str, Interval], names: Iterable[str]) -> set[str]:
    """Those of `names` that vary, and the names on which their ranges depend, and so on."""
    needed = {name for name in names if name in ranges}
    waiting = list(needed)
    while waiting:
        interval = ranges[waiting.pop()]
        for end in (interval.lo, interval.hi):
            if end is not None:
                fresh = [n for n in end.free if n in ranges and n not in needed]
                needed.update(fresh)
                waiting += fresh
    return needed


def _within_numbers(found: Interval, other: Interval) -> Interval:
    """`found`, with those ends of `other` that are tighter numbers."""
    lo, hi = found.lo, found.hi
    if isinstance(lo, Const) and isinstance(other.lo, Const):
        lo = max(lo, other.lo, key=_number)
    if isinstance(hi, Const) and isinstance(other.hi, Const):
        hi = min(hi, other.hi, key=_number)
    return Interval(lo, hi)


def _number(e: Const) -> int:
    return int(e.value)


def _dependence_order(ranges: Mapping[str, Interval]) -> list[str]:
    """The names, each before those on which its range depends."""
    needs = {name: len(_needed(ranges, (name,))) for name in ranges}
    return sorted(ranges, key=needs.__getitem__, reverse=True)


class _Bounds:
    """The ends of forms while the names in `ranges` vary, under `facts` about all names."""

    def __init__(
        self,
        ranges: Mapping[str, Interval],
        facts: Facts,
        contexts: list[int],
        varying: frozenset[str],
    ) -> None:
        self.ranges = ranges
        self.outside = facts
        # How many sides of selects may still be looked at on their own, shared by them all.
        self.contexts = contexts
        self.needs = {name: _needed(ranges, (name,)) for name in ranges}
        # Also names that only facts mention, and whose ranges are of no use.
        self.varying = varying
        self.splits = _SPLITS
        self.memo: dict[Expr, Interval] = {}

    @cached_property
    def facts(self) -> Facts:
        """What is known outside, and that each name lies in its interval."""
        return within(self.ranges, self.outside)

    def of(self, e: Expr) -> Interval:
        """The interval of an expression, which is simplified first."""
        plain = canonical(e)
        if all(isinstance(atom, Name) for atom in to_linear(plain).terms):
            return self._of(plain)
        shorter = self.facts.simplified(plain)
        found = self._of(shorter)
        # What facts make needless, such as the min in min(d + 1, 7) where d is even, says more of
        # the numbers than the ranges of names do.
        return found if shorter is plain else _within_numbers(found, self._of(plain))

    def varies(self, e: Expr) -> bool:
        return not (self.varying.isdisjoint(e.free) and self.varying.isdisjoint(e.reads))

    def end(self, form: Linear, side: Side) -> Expr | None:
        """The lowest or highest value of a form."""
        total = form
        eliminated: set[str] = set()
        while True:
            compound = [e for e in total.terms if not isinstance(e, Name) and self.varies(e)]
            if compound:
                split = self._split(total, compound, side)
                if split is not None:
                    return split[0]
                bounded = self._bounded(total, compound, side)
            else:
                names = self._independent(total)
                if not names:
                    return self._closed(total)
                if not eliminated.isdisjoint(name.name for name in names):
                    return None
                eliminated.update(name.name for name in names)
                bounded = self._bounded(total, names, side)
            if bounded is None:
                return None
            total = bounded

    def _closed(self, form: Linear) -> Expr:
        # Not by what holds where the names lie in their intervals: an end must also tell that
        # there is no such place, as the end of [i, min(i, n - 1)] does.
        plain = all(isinstance(atom, Name) for atom in form.terms)
        return to_expr(form) if plain else self.outside.simplified(to_expr(form))

    def _independent(self, form: Linear) -> list[Name]:
        """The varying names of a form on which no other of them depends."""
        names = {atom.name: atom for atom in form.terms if isinstance(atom, Name)}
        varying = [name for name in names if name in self.varying]
        needed = {n for name in varying for n in self.needs[name] if n != name}
        return [names[name] for name in varying if name not in needed]

    def _bounded(self, form: Linear, atoms: Sequence[Expr], side: Side) -> Linear | None:
        """The form with the end of each atom for the atom."""
        terms = dict(form.terms)
        coefficients = [terms.pop(atom) for atom in atoms]
        parts: list[Linear] = []
        for atom, coefficient in zip(atoms, coefficients, strict=True):
            bound = self._atom_end(atom, coefficient, side)
            if bound is None:
                return None
            parts.append(to_linear(canonical(bound)) * coefficient)
        return Linear(form.constant, terms).plus_all(parts)

    def _atom_end(self, atom: Expr, coefficient: int, side: Side) -> Expr | None:
        high = (side == "hi") == (coefficient > 0)
        interval = self.ranges[atom.name] if isinstance(atom, Name) else self.interval(atom)
        return interval.hi if high else interval.lo

    def _split(self, form: Linear, compound: list[Expr], side: Side) -> tuple[Expr | None] | None:
        """rest + min(a, b) -> min(rest + a, rest + b) where rest and a or b vary together."""
        for atom in compound:
            if not isinstance(atom, Binary) or atom.op not in ("min", "max") or self.splits == 0:
                continue
            rest = form.without(atom)
            if not any(self.varies(t) and not t.free.isdisjoint(atom.free) for t in rest.terms):
                continue
            self.splits -= 1
            coefficient = form.terms[atom]
            ends = [self.end(rest.plus(to_linear(e), coefficient), side) for e in atom.children]
            return (self._extremum((atom.op == "min") == (coefficient > 0), ends, side),)
        return None

    def _extremum(self, is_min: bool, ends: list[Expr | None], side: Side) -> Expr | None:
        """An end of the min (or max) of two values with these ends."""
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            # min(a, b) is at most either, so that one end bounds it from above.
            bounded = known and is_min == (side == "hi")
            return known[0] if bounded else None
        return (least if is_min else greatest)(known[0], known[1], self.facts)

    def interval(self, e: Expr) -> Interval:
        """The interval of an atom or of a canonical expression."""
        found = self.memo.get(e)
        if found is None:
            found = self._also_known(e, self._interval(e)) if self.varies(e) else Interval(e, e)
            self.memo[e] = found
        return found

    def _also_known(self, e: Expr, found: Interval) -> Interval:
        """The tighter of an interval and what facts and dtypes say of the expression as a whole."""
        said = self._said(e)
        lo = found.lo if said.lo is None else tighter(found.lo, said.lo, prove_le, self.facts)
        hi = found.hi if said.hi is None else tighter(found.hi, said.hi, prove_ge, self.facts)
        first, last = self.facts.known.range_of_term(e)
        if first is not None and (lo is None or prove_le(lo, integer(first), self.facts)):
            lo = integer(first)
        if last is not None and (hi is None or prove_le(integer(last), hi, self.facts)):
            hi = integer(last)
        return Interval(lo, hi)

    def _said(self, e: Expr) -> Interval:
        """What facts say of an expression as a whole, such as a load that is guarded."""
        if self.outside is Facts.none:
            # What the ranges say is in the interval already.
            return EVERYWHERE
        ends: dict[bool, Expr | None] = {False: None, True: None}
        for form in self.facts.known.forms.get(e, ()):
            if abs(form.terms[e]) == 1 and not any(map(self.varies, form.without(e).terms)):
                upper = form.terms[e] < 0
                end = to_expr(form.without(e) * (1 if upper else -1))
                looser = prove_ge if upper else prove_le
                ends[upper] = tighter(ends[upper], end, looser, self.facts)
        return Interval(ends[False], ends[True])

    def _of(self, e: Expr) -> Interval:
        form = to_linear(e)
        if len(form.terms) == 1 and form.terms.get(e) == 1:
            return self.interval(e)
        return self._guarded(form, Interval(self.end(form, "lo"), self.end(form, "hi")))

    def _guarded(self, form: Linear, found: Interval) -> Interval:
        """The interval, or what a guard says of the form: of i - 2*r, that 2*r <= i < 2*r + n.

        The ranges of i and r alone do not say it.
        """
        moving = Linear(0, {e: c for e, c in form.terms.items() if self.varies(e)})
        scale = moving.content()
        if len(moving.terms) < 2 or self.facts.known is Facts.none.known:
            return found
        unit, rest = moving.divided(scale)[0], form - moving
        for known in self.facts.known.forms.get(next(iter(unit.terms)), ()):
            for sign in (1, -1):
                fixed = known - unit * sign
                if any(map(self.varies, fixed.terms)):
                    continue
                # Here sign*unit >= -fixed.
                end = to_expr(rest - fixed * (sign * scale))
                said = Interval(end, None) if sign > 0 else Interval(None, end)
                found = intersect(found, said, self.facts)
        return found

    def _interval(self, e: Expr) -> Interval:
        match e:
            case Name():
                form = single(e)
                return Interval(self.end(form, "lo"), self.end(form, "hi"))
            case Binary(op="min" | "max"):
                a, b = self._of(e.a), self._of(e.b)
                is_min = e.op == "min"
                lo = self._extremum(is_min, [a.lo, b.lo], "lo")
                return Interval(lo, self._extremum(is_min, [a.hi, b.hi], "hi"))
            case Binary(op="mul"):
                return self._product(e)
            case Binary(op="floordiv"):
                return self._quotient(e)
            case Binary(op="mod"):
                return mod(self._of(e.a), self._of(e.b), self.facts)
            case Select():
                return self._select(e)
            case Promise():
                return self._promise(e)
            case Cast(a=Cast(a=inner) as narrow) if _wraps(inner, narrow):
                # Wrapping makes no value larger that is not below the range of its dtype.
                value = self._of(inner)
                above = at_least(self.facts, value.lo, narrow.dtype.lowest)
                return Interval(None, value.hi if above else None)
            case _:
                return EVERYWHERE

    def _product(self, e: Binary) -> Interval:
        factors = factors_of(e)
        fixed = [f for f in factors if not self.varies(f)]
        moving = [self._of(f) for f in factors if self.varies(f)]
        result = Interval(*(2 * [product(*fixed) if fixed else integer(1)]))
        for interval in moving:
            result = multiply(result, interval, self.facts)
        return result

    def _quotient(self, e: Binary) -> Interval:
        """The quotients; where x % n == 0 is known, the lowest is rounded up."""
        y, n = self._of(e.a), self._of(e.b)
        rest = Compare("eq", Binary("mod", e.a, e.b), integer(0))
        if isinstance(e.b, Const) and y.lo is not None and canonical(rest) in self.facts.conditions:
            y = Interval(self.facts.simplified(y.lo + e.b - 1), y.hi)
        return floordiv(y, n, self.facts)

    def _select(self, e: Select) -> Interval:
        """The union of both sides, each where the condition lets it be chosen."""
        match e.condition:
            case Compare(op="eq", a=Name(name=name), b=Const()) if name in self.ranges:
                # The start of a sliding window: one value of a loop, and all the others.
                start = substitute(e.a, {name: e.condition.b})
                return union(self.of(start), self._of(e.b), self.facts)
            case _:
                pass
        if self.contexts[0] == 0:
            return union(self._of(e.a), self._of(e.b), self.facts)
        self.contexts[0] -= 1
        sides = [
            self._under(c).of(side) for c, side in ((e.condition, e.a), (negated(e.condition), e.b))
        ]
        return union(sides[0], sides[1], self.facts)

    def _under(self, condition: Expr) -> "_Bounds":
        ranges = sharpen(self.ranges, condition, self.facts)
        return _Bounds(ranges, self.facts.assume(condition), self.contexts, self.varying)

    def _promise(self, e: Promise) -> Interval:
        """The tighter of what is promised and what is known; what is promised where unclear."""
        known, lo, hi = self._of(e.a), self._of(e.lo).lo, self._of(e.hi).hi
        if known.lo is not None and (lo is None or prove_le(lo, known.lo, self.facts)):
            lo = known.lo
        if known.hi is not None and (hi is None or prove_le(known.hi, hi, self.facts)):
            hi = known.hi
        return Interval(lo, hi)
