"""Rewriting expressions to their canonical form under what is known.

Operands come first, each distinct node once.  Index arithmetic becomes a sorted linear form over
atoms whose operands are canonical; everything else is folded, and rewritten by the rows of
`rules.py`.
"""

from collections.abc import Callable
from math import gcd

from tensorlang.ir.casts import simplify_cast
from tensorlang.ir.conditions import negated
from tensorlang.ir.constants import fold_constants
from tensorlang.ir.division import floordiv, mod
from tensorlang.ir.expr import Binary, Cast, Compare, Const, Expr, Promise
from tensorlang.ir.inequality import Known
from tensorlang.ir.linear import (
    Linear,
    addends,
    expanded,
    integer,
    is_sum,
    multiplied,
    single,
    to_expr,
    to_linear,
)
from tensorlang.ir.logic import simplify_logic
from tensorlang.ir.order import order_key
from tensorlang.ir.recombine import recombined
from tensorlang.ir.rules import apply_rows
from tensorlang.ir.types import bool_, index

Proves = Callable[[Expr], bool]

TRUE, FALSE = Const(True, bool_), Const(False, bool_)


class Rewriter:
    """Rewrites under `known`; `proves` decides a canonical comparison or a condition verbatim."""

    def __init__(self, known: Known, proves: Proves, memo: dict[Expr, Expr] | None = None) -> None:
        self.known = known
        self.proves = proves
        self.memo: dict[Expr, Expr] = {} if memo is None else memo
        self._addends: dict[Expr, dict[Expr, int]] = {}

    def __call__(self, root: Expr) -> Expr:
        """The canonical form of `root`."""
        stack = [root]
        while stack:
            e = stack[-1]
            if e in self.memo:
                stack.pop()
                continue
            missing = [operand for operand in self._operands(e) if operand not in self.memo]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            result = self._step(e)
            self.memo[e] = result
            self.memo.setdefault(result, result)
        return self.memo[root]

    def _operands(self, e: Expr) -> tuple[Expr, ...]:
        """What has to be canonical first: of a sum the addends, skipping the partial sums."""
        if not is_sum(e):
            return e.children
        if e not in self._addends:
            self._addends[e] = addends(e)
        return tuple(self._addends[e])

    def _step(self, e: Expr) -> Expr:
        if is_sum(e):
            return self._sum(e)
        operands = tuple(self.memo[child] for child in e.children)
        changed = any(a is not b for a, b in zip(operands, e.children, strict=True))
        e = fold_constants(e.rebuild(operands) if changed else e)
        match e:
            case Binary() if e.dtype is index:
                return self._index(e)
            case Compare() if e.a.dtype is index:
                return self._comparison(e)
            case Binary(op="and" | "or") if e.dtype.is_bool:
                return self._logic(e)
            case Promise():
                return self._promise(e)
            case Cast():
                return self._again(e, simplify_cast(e))
            case Compare():
                return self._decided(self._again(e, apply_rows(e)))
            case Const():
                return e
            case _ if not e.children:
                return e
            case _:
                return self._again(e, apply_rows(e))

    def _again(self, e: Expr, result: Expr) -> Expr:
        return e if result is e else self(result)

    def _sum(self, e: Expr) -> Expr:
        parts = self._addends.pop(e).items()
        return self.expr(Linear().plus_all(to_linear(self.memo[leaf]) * c for leaf, c in parts))

    def expr(self, form: Linear) -> Expr:
        """The expression of a form whose atoms are canonical."""
        return to_expr(self._settled(form))

    def _settled(self, form: Linear) -> Linear:
        """The form with its terms combined as far as they go."""
        form = recombined(_shorter(form), self.known)
        for atom in form.terms:
            if isinstance(atom, Binary) and atom.op in ("min", "max"):
                inside = self._moved_inside(form, atom)
                if inside is not None:
                    return self._settled(inside)
        return form

    def _moved_inside(self, form: Linear, extremum: Binary) -> Linear | None:
        """min(a, x + b) - x -> min(a - x, b): what cancels a term of one operand goes inside."""
        k = form.terms[extremum]
        operands = [to_linear(e) for e in extremum.children]
        moved = {
            atom: c // k
            for atom, c in form.terms.items()
            if c % k == 0 and any(operand.terms.get(atom) == -(c // k) for operand in operands)
        }
        if not moved:
            return None
        inside = Linear(0, moved)
        a, b = (self.expr(operand + inside) for operand in operands)
        result = to_linear(self._extremum(extremum.op, a, b))
        return form.without(extremum) - inside * k + result * k

    def _index(self, e: Binary) -> Expr:
        a, b = to_linear(e.a), to_linear(e.b)
        match e.op:
            case "mul":
                return self.expr(_product(a, b))
            case "floordiv":
                return self._again(e, self.expr(floordiv(a, b, self.known)))
            case "mod":
                return self._again(e, self.expr(mod(a, b, self.known)))
            case "min" | "max":
                return self._extremum(e.op, e.a, e.b)
            case _:
                return self._again(e, apply_rows(e))

    def _extremum(self, op: str, a: Expr, b: Expr) -> Expr:
        """min or max of two canonical expressions: decided, or with what they share taken out."""
        x, y = to_linear(a), to_linear(b)
        low, high = (a, b) if op == "min" else (b, a)
        if self.known.nonnegative(to_linear(high) - to_linear(low)):
            return a
        if self.known.nonnegative(to_linear(low) - to_linear(high)):
            return b
        shared = _shared(x, y)
        x, y = x - shared, y - shared
        first, second = self.expr(x), self.expr(y)
        if _operand_order(second) < _operand_order(first):
            first, second = second, first
        made = apply_rows(self._chain(op, first, second))
        return self.expr(to_linear(made) + shared)

    def _chain(self, op: str, first: Expr, second: Expr) -> Expr:
        """min(min(x, y), z) without the x or y that z makes idle, and without an idle z."""
        if isinstance(first, Binary) and first.op == op:
            x, y, z = (to_linear(e) for e in (first.a, first.b, second))
            sign = 1 if op == "min" else -1
            for kept, idle in ((first.b, x), (first.a, y)):
                if self.known.nonnegative((idle - z) * sign):
                    return self._extremum(op, kept, second)
        return Binary(op, first, second)

    def _comparison(self, e: Compare) -> Expr:
        """a < b by its difference: what is added on one side, what is subtracted on the other."""
        difference = self._settled(to_linear(e.b) - to_linear(e.a))
        if not difference.terms:
            d = difference.constant
            return _truth({"lt": d > 0, "le": d >= 0, "eq": d == 0, "ne": d != 0}[e.op])
        divisor = difference.content()
        if e.op in ("eq", "ne"):
            if difference.constant % divisor:
                return _truth(e.op == "ne")
            made = self._equation(e.op, _scaled(difference, divisor))
        else:
            made = self._inequality(difference.shifted(-1 if e.op == "lt" else 0))
        return self._decided(made)

    def _inequality(self, form: Linear) -> Expr:
        """form >= 0 as a comparison: i < M, 5 <= i, i <= j, i + 3 < N."""
        form = _scaled(form, form.content())
        for atom in form.terms:
            other = self._undecided_side(form, atom)
            if other is not None:
                other = self._settled(other)
                return self._inequality(other) if other.terms else _truth(other.constant >= 0)
        left = {a: -c for a, c in form.terms.items() if c < 0}
        right = {a: c for a, c in form.terms.items() if c > 0}
        c = form.constant
        if not left:
            return Compare("le", integer(-c), self.expr(Linear(0, right)))
        if c == 0:
            return Compare("le", self.expr(Linear(0, left)), self.expr(Linear(0, right)))
        less = c + 1
        return Compare(
            "lt",
            self.expr(Linear(max(-less, 0) if right else 0, left)),
            self.expr(Linear(max(less, 0) if right else less, right)),
        )

    def _undecided_side(self, form: Linear, atom: Expr) -> Linear | None:
        """x <= min(a, b) -> x <= a where x <= b is known; and the same for max(a, b) <= x."""
        coefficient = form.terms[atom]
        if not isinstance(atom, Binary) or atom.op != ("min" if coefficient > 0 else "max"):
            return None
        rest = form.without(atom)
        first, second = (rest.plus(to_linear(e), coefficient) for e in atom.children)
        if self.known.nonnegative(second):
            return first
        return second if self.known.nonnegative(first) else None

    def _equation(self, op: str, form: Linear) -> Expr:
        left = {a: c for a, c in form.terms.items() if c > 0}
        right = {a: -c for a, c in form.terms.items() if c < 0}
        c = form.constant
        if not left or (right and min(map(order_key, right)) < min(map(order_key, left))):
            left, right, c = right, left, -c
        if not right:
            return Compare(op, self.expr(Linear(0, left)), integer(-c))
        return Compare(op, self.expr(Linear(max(c, 0), left)), self.expr(Linear(max(-c, 0), right)))

    def _decided(self, condition: Expr) -> Expr:
        if isinstance(condition, Const):
            return condition
        if self.proves(condition):
            return TRUE
        return FALSE if self.proves(negated(condition)) else condition

    def _logic(self, e: Binary) -> Expr:
        result = apply_rows(e)
        return self._again(e, simplify_logic(e, self.known) if result is e else result)

    def _promise(self, e: Promise) -> Expr:
        a = to_linear(e.a) if e.dtype is index else None
        if a is None:
            return e
        inside = self.known.nonnegative(a - to_linear(e.lo))
        return e.a if inside and self.known.nonnegative(to_linear(e.hi) - a) else e


def _truth(value: bool) -> Expr:
    return TRUE if value else FALSE


def _scaled(form: Linear, divisor: int) -> Linear:
    return Linear(form.constant // divisor, {a: c // divisor for a, c in form.terms.items()})


def _product(a: Linear, b: Linear) -> Linear:
    """a*b with constants pulled out in front; sums stay factors: (i + 1)*n."""
    if not a.terms:
        return b * a.constant
    if not b.terms:
        return a * b.constant
    (first, x), (second, y) = _primitive(a), _primitive(b)
    return single(multiplied(x, y), first * second)


def _primitive(form: Linear) -> tuple[int, Expr]:
    """The constant that the form is a multiple of, and the rest."""
    if len(form.terms) == 1 and not form.constant:
        atom, coefficient = next(iter(form.terms.items()))
        return coefficient, atom
    scale = gcd(form.content(), form.constant)
    leading = min(form.terms, key=order_key)
    if form.terms[leading] < 0:
        scale = -scale
    return scale, to_expr(_scaled(form, scale))


def _shorter(form: Linear) -> Linear:
    """Multiply products of sums out where terms then cancel: (i + 1)*n - i*n -> n."""
    if len(form.terms) < 2:
        return form
    other = expanded(form)
    return other if other is not form and len(other.terms) < len(form.terms) else form


def _shared(x: Linear, y: Linear) -> Linear:
    """The terms that two forms have in common, and their constant when it is the same."""
    terms = {a: c for a, c in x.terms.items() if y.terms.get(a) == c}
    same = x.constant == y.constant
    return Linear(x.constant if same else 0, terms)


def _operand_order(e: Expr) -> tuple[int, tuple[str, bytes]]:
    """Of min and max: a min or max first, a constant last, as clamp writes them."""
    if isinstance(e, Const):
        return 2, order_key(e)
    return (0 if isinstance(e, Binary) and e.op in ("min", "max") else 1), order_key(e)
