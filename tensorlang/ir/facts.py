"""What is known about names at a place in a program, and proofs from it.

    facts = Facts.none.with_range("i", 0, M).assume(N <= M)
    prove(i + 1 <= M, facts)

Sizes are always >= 0.  A proof is never wrong; "not proved" says nothing.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, TypeGuard

from tensorlang.ir.conditions import conjuncts_of, forms_of, multiple_of, negated
from tensorlang.ir.consequences import consequences, with_consequences
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Operand, Unary, Var, as_expr
from tensorlang.ir.forms import rank_of
from tensorlang.ir.inequality import Known
from tensorlang.ir.linear import Linear, single, to_linear
from tensorlang.ir.rewriter import Rewriter
from tensorlang.ir.types import index

_NESTED = 8
_REMEMBERED = 1 << 16
_canonical: dict[Expr, Expr] = {}


def canonical(e: Expr) -> Expr:
    """The canonical form of `e` when nothing is known but that Sizes are >= 0."""
    global _canonical
    if len(_canonical) > _REMEMBERED:
        _canonical = {}
    return Rewriter(Facts.none.known, Facts.none.holds, _canonical)(e)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """An immutable set of facts; each method returns a larger one."""

    known: Known = field(default_factory=Known)
    conditions: frozenset[Expr] = frozenset()
    rewritten: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])
    # The larger sets made of this one, by what was added: passes look at the same nests again.
    _larger: dict[Hashable, "Facts"] = field(default_factory=dict[Hashable, "Facts"])
    # The set that this was made from, and the lowest rank of what it says beyond that.
    _smaller: "Facts | None" = None
    _about: int = 0
    none: ClassVar["Facts"]

    def with_range(self, name: str, min: Operand, extent: Operand) -> "Facts":
        """Also min <= name < min + extent; that `name` has a value means extent >= 1."""
        low, size = as_expr(min, index), as_expr(extent, index)
        return self._with((name, "range", low, size), lambda: self._with_range(name, low, size))

    def _with_range(self, name: str, min: Expr, extent: Expr) -> "Facts":
        first, size = self._form(min), self._form(extent)
        this = to_linear(Var(name))
        last = (first + size).shifted(-1)
        return self._bound(name, (size.shifted(-1), this - first, last - this))

    def with_value(self, name: str, value: Expr) -> "Facts":
        """Also name == value, as a Let says; of a value that is no index, nothing."""
        return self._with((name, "value", value), lambda: self._with_value(name, value))

    def _with_value(self, name: str, value: Expr) -> "Facts":
        if value.dtype is not index:
            return self._forget(name)
        difference = to_linear(Var(name)) - self._form(value)
        return self._bound(name, (difference, -difference))

    def with_bounds(self, name: str, lo: Expr | None, hi: Expr | None) -> "Facts":
        """Also lo <= name <= hi, beside whatever is known of `name`; None says nothing."""
        return self._with((name, "bounds", lo, hi), lambda: self._with_bounds(name, lo, hi))

    def _with(self, added: Hashable, make: Callable[[], "Facts"]) -> "Facts":
        found = self._larger.get(added)
        if found is None:
            found = make()
            _count_made()
            self._larger[added] = found
        return found

    def forget(self) -> None:
        """Forget the larger sets made of this one; they can be made again."""
        self._larger.clear()

    def _with_bounds(self, name: str, lo: Expr | None, hi: Expr | None) -> "Facts":
        this = to_linear(Var(name))
        forms: list[Linear] = []
        if lo is not None:
            forms.append(this - self._form(lo))
        if hi is not None:
            forms.append(self._form(hi) - this)
        if lo is not None and hi is not None:
            forms.append(self._form(hi) - self._form(lo))
        ranks = {name: len(self.known.ranks) + 1, **self.known.ranks}
        known = with_consequences(self.known.plus((), ranks), forms)
        return Facts(known, self.conditions, _smaller=self, _about=known.about)

    def assume(self, condition: Expr) -> "Facts":
        """Also `condition`, conjunctions taken apart."""
        return self._with(condition, lambda: self._assume(condition))

    def _assume(self, condition: Expr) -> "Facts":
        plain = conjuncts_of(canonical(condition))
        known = self.known
        for part in plain:
            known = with_consequences(known, _forms(part))
            if (multiple := multiple_of(part)) is not None:
                atom, n = multiple
                whole = single(atom) - single(Binary("floordiv", atom, Const(n, index)), n)
                known = with_consequences(known.with_multiple(atom, n), (whole, -whole))
        for part in plain:
            if _is_apart(part):
                known = with_consequences(known, _apart(part, known))
        conditions = frozenset(plain).union(conjuncts_of(condition))
        about = min(rank_of(c.free, known.ranks) for c in conditions)
        return Facts(known, self.conditions | conditions, _smaller=self, _about=about)

    def _bound(self, name: str, forms: Iterable[Linear]) -> "Facts":
        facts = self._forget(name)
        ranks = {**facts.known.ranks, name: len(facts.known.ranks) + 1}
        known = facts.known.plus((), ranks)
        known = with_consequences(known, forms)
        # What was known of another variable of that name is no longer known.
        smaller = self if facts is self else None
        return Facts(known, facts.conditions, _smaller=smaller, _about=known.about)

    def _form(self, e: Expr) -> Linear:
        """An index as a form; what divides without a rest is divided."""
        return to_linear(self.simplified(e) if self.known.multiples else canonical(e))

    def _forget(self, name: str) -> "Facts":
        """Without what was said of another variable of this name."""
        known = self.known.without(name)
        conditions = frozenset(c for c in self.conditions if name not in c.free)
        if known is self.known and len(conditions) == len(self.conditions):
            return self
        return Facts(known, conditions)

    def forms_of(self, condition: Expr) -> list[Linear]:
        """Forms that are >= 0 where `condition` holds."""
        parts = conjuncts_of(self.simplified(condition))
        forms = [form for part in parts for form in _forms(part)]
        apart = [form for part in parts if _is_apart(part) for form in _apart(part, self.known)]
        return consequences(self.known, forms + apart)

    def nonnegative(self, form: Linear) -> bool:
        """Whether a canonical form is proved to be >= 0."""
        return self.known.nonnegative(form)

    def holds(self, condition: Expr, depth: int = _NESTED) -> bool:
        """Whether a canonical condition is proved."""
        if condition in self.conditions:
            return True
        match condition:
            case Const():
                return bool(condition.value)
            case Binary(op="and") if depth:
                return all(self.holds(c, depth - 1) for c in (condition.a, condition.b))
            case Binary(op="or") if depth:
                return any(self.holds(c, depth - 1) for c in (condition.a, condition.b))
            case Unary(op="not") if depth:
                other = negated(condition.a)
                return other is not condition and self.holds(other, depth - 1)
            case Compare() if condition.a.dtype.is_integer:
                return self.known.proves(_lifted(condition))
            case _:
                return False

    def simplified(self, e: Expr) -> Expr:
        """`e` rewritten under these facts."""
        rank = rank_of(e.free, self.known.ranks)
        facts = self
        while facts._about > rank and facts._smaller is not None:
            facts = facts._smaller
        return Rewriter(facts.known, facts.holds, facts.rewritten)(e)


# How many sets are remembered: each holds what was proved, and the points that refute.
_MOST_MADE = 1 << 10
_made = 0


def _count_made() -> None:
    """Forget all sets when there are many: they grow from the empty one."""
    global _made
    _made += 1
    if _made > _MOST_MADE:
        _made = 0
        Facts.none.forget()


def _lifted(condition: Compare) -> Compare:
    """A comparison of integer data as one of indices."""
    if condition.a.dtype is index:
        return condition
    return Compare(condition.op, *(canonical(Cast(index, e)) for e in condition.children))


def _forms(condition: Expr) -> list[Linear]:
    """Forms that are >= 0 where a condition holds that is no conjunction."""
    if isinstance(condition, Compare) and condition.a.dtype.is_integer:
        return forms_of(_lifted(condition))
    return []


def _is_apart(condition: Expr) -> TypeGuard[Compare]:
    return isinstance(condition, Compare) and condition.op == "ne" and condition.a.dtype.is_integer


def _apart(condition: Compare, known: Known) -> list[Linear]:
    """a != b -> a < b where a <= b is known, and a > b where a >= b is."""
    (difference,) = _forms(Compare("le", condition.a, condition.b))
    sides = (difference, -difference)
    return [side.shifted(-1) for side in sides if known.nonnegative(side)]


Facts.none = Facts()


def prove(condition: Expr, facts: Facts = Facts.none) -> bool:
    """Whether `condition` always holds under `facts`, as far as can be told with bounded work."""
    plain = canonical(condition)
    return facts.holds(plain) or facts.holds(facts.simplified(plain))


def prove_le(a: Operand, b: Operand, facts: Facts = Facts.none) -> bool:
    """Whether a <= b always holds, for two integers."""
    return prove(_ordered("le", a, b), facts)


def prove_lt(a: Operand, b: Operand, facts: Facts = Facts.none) -> bool:
    """Whether a < b always holds, for two integers."""
    return prove(_ordered("lt", a, b), facts)


def _ordered(op: str, a: Operand, b: Operand) -> Expr:
    x, y = as_expr(a, index), as_expr(b, index)
    if x.dtype is not y.dtype:
        x, y = (e if e.dtype is index else Cast(index, e) for e in (x, y))
    return Compare(op, x, y)
