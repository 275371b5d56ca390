"""Canonical quotients and remainders of linear forms (floor division; by 0 they are 0).

Both write x as n*q + r, where r keeps what n does not divide, and both make the same r, so that
n*(x//n) + x%n finds its way back to x.
"""

from collections.abc import Callable, Iterator
from math import gcd

from tensorlang.ir.expr import Binary, Const, Expr, Var
from tensorlang.ir.inequality import Known
from tensorlang.ir.linear import (
    ZERO,
    Linear,
    constant,
    expanded,
    factors_of,
    product,
    single,
    to_expr,
    to_linear,
)

# How many names in a row may stand for the start of a tile.
_NAMES = 2
Division = Callable[[Linear, Linear, Known], Linear]


def floordiv(x: Linear, n: Linear, known: Known) -> Linear:
    """x // n."""
    if n.terms:
        # (g*x)//(g*n) -> x//n
        divisor = gcd(x.content(), x.constant, n.content(), n.constant)
        if divisor > 1:
            x, n = _divided(x, divisor), _divided(n, divisor)
            return floordiv(x, n, known)
        return _symbolic_floordiv(x, n, known)
    if n.constant <= 0:
        return floordiv(-x, -n, known) if n.constant else ZERO
    return _constant_floordiv(x, n.constant, known)


def mod(x: Linear, n: Linear, known: Known) -> Linear:
    """x % n."""
    if n.terms:
        # (g*x)%(g*n) -> g*(x%n)
        divisor = gcd(x.content(), x.constant, n.content(), n.constant)
        if divisor > 1:
            return mod(_divided(x, divisor), _divided(n, divisor), known) * divisor
        return _symbolic_mod(x, n, known)
    if n.constant <= 0:
        return -mod(-x, -n, known) if n.constant else ZERO
    return _constant_mod(x, n.constant, known)


def _constant_floordiv(x: Linear, n: int, known: Known) -> Linear:
    # (n*q + r)//n -> q + r//n
    whole, rest = x.divided(n)
    if known.multiples:
        # (n*k + r)//n -> k + r//n   where c*y == n*k, since y is known to be a multiple
        for atom, of in _known_multiples(rest, n, known):
            quotient = Binary("floordiv", atom, Const(of, atom.dtype))
            whole = whole + single(quotient, rest.terms[atom] * of // n)
            rest = rest.without(atom)
        whole, rest = whole.shifted(rest.constant // n), rest.shifted(-(rest.constant // n) * n)
    if not rest.terms:
        return whole
    # (g*y + c)//(g*m) -> (y + c//g)//m
    divisor = gcd(n, rest.content())
    if divisor > 1:
        reduced = _divided(rest, divisor)
        return whole + _constant_floordiv(reduced, n // divisor, known)
    # (g*y + s)//(g*m) -> y//m   where 0 <= s < g
    for period in _periods(rest, n):
        large, small = rest.divided(period)
        if _in_period(small, period, known) == 0:
            return whole + _constant_floordiv(large, n // period, known)
    period = _in_period(rest, n, known)
    if period is not None:
        return whole.shifted(period)
    tile = _tile_of(rest, n, known)
    return whole + (_nested_floordiv(rest, n, known) if tile is None else tile)


def _nested_floordiv(rest: Linear, n: int, known: Known) -> Linear:
    """(y//a + c)//n -> (y + c*a)//(a*n), and (y%(n*m))//n -> (y//n)%m."""
    atom, coefficient = next(iter(rest.terms.items()))
    if len(rest.terms) == 1 and coefficient == 1 and isinstance(atom, Binary):
        inner = int(atom.b.value) if isinstance(atom.b, Const) else 0
        if atom.op == "floordiv" and inner > 0:
            y = to_linear(atom.a).shifted(rest.constant * inner)
            return _constant_floordiv(y, inner * n, known)
        if atom.op == "mod" and rest.constant == 0:
            others, left = to_linear(atom.b).divided(n)
            if left.key() == ZERO.key() and known.nonnegative(others):
                return mod(_constant_floordiv(to_linear(atom.a), n, known), others, known)
    return single(Binary("floordiv", to_expr(rest), Const(n, atom.dtype)))


def _constant_mod(x: Linear, n: int, known: Known) -> Linear:
    # (n*q + r)%n -> r%n
    rest = _unfolded(x.divided(n)[1], n)
    for atom, _ in _known_multiples(rest, n, known):
        rest = rest.without(atom)
    if not rest.terms:
        return constant(rest.constant % n)
    # (g*y + c)%(g*m) -> g*((y + c//g)%m) + c%g
    divisor = gcd(n, rest.content())
    if divisor > 1:
        inner = _constant_mod(_divided(rest, divisor), n // divisor, known)
        return (inner * divisor).shifted(rest.constant % divisor)
    # (g*y + s)%(g*m) -> g*(y%m) + s   where 0 <= s < g
    for period in _periods(rest, n):
        large, small = rest.divided(period)
        if _in_period(small, period, known) == 0:
            return _constant_mod(large, n // period, known) * period + small
    period = _in_period(rest, n, known)
    if period is not None:
        return rest.shifted(-period * n)
    tile = _tile_of(rest, n, known)
    if tile is not None:
        return rest - tile * n
    atom = next(iter(rest.terms))
    return single(Binary("mod", to_expr(rest), Const(n, atom.dtype)))


def _known_multiples(rest: Linear, n: int, known: Known) -> list[tuple[Expr, int]]:
    """The atoms whose terms n divides, and the number that each is known to be a multiple of."""
    found = ((atom, known.multiples.get(atom, 1), c) for atom, c in rest.terms.items())
    return [(atom, of) for atom, of, c in found if of > 1 and c * of % n == 0]


def _unfolded(rest: Linear, n: int) -> Linear:
    """c*(y%a) -> c*y, modulo n, where n divides c*a."""
    while True:
        for atom, coefficient in rest.terms.items():
            if isinstance(atom, Binary) and atom.op == "mod" and isinstance(atom.b, Const):
                if coefficient * int(atom.b.value) % n == 0:
                    y = to_linear(atom.a) * coefficient
                    rest = (rest.without(atom) + y).divided(n)[1]
                    break
        else:
            return rest


def _divided(x: Linear, divisor: int) -> Linear:
    """floor(x / divisor), of which the divisor divides all coefficients."""
    return Linear(x.constant // divisor, {a: c // divisor for a, c in x.terms.items()})


def _periods(rest: Linear, n: int) -> Iterator[int]:
    """Proper divisors of n that divide some but not all coefficients, largest first."""
    found = {gcd(coefficient, n) for coefficient in rest.terms.values()}
    return iter(sorted((p for p in found if 1 < p < n), reverse=True))


def _in_period(x: Linear, n: int, known: Known) -> int | None:
    """The k for which k*n <= x < (k + 1)*n is known."""
    lo, hi = known.range(x)
    for end in (lo, hi):
        if end is not None:
            k = end // n
            if _between(x, k * n, k * n + n - 1, lo, hi, known):
                return k
    if lo is None and hi is None and _between(x, 0, n - 1, lo, hi, known):
        return 0
    return None


def _tile_of(x: Linear, n: int, known: Known) -> Linear | None:
    """The q for which n*q <= x < n*(q + 1) is known, as of a name that runs over a tile of n."""
    for low in _lower_bounds(x, known, _NAMES):
        whole, rest = low.divided(n)
        if not rest.terms and known.nonnegative((whole * n - x).shifted(n - 1)):
            return whole
    return None


def _lower_bounds(x: Linear, known: Known, names: int) -> Iterator[Linear]:
    """Forms that a loop variable is known to start from, also where a Let gives them a name."""
    atom = next(iter(x.terms), None)
    if names == 0 or len(x.terms) != 1 or not isinstance(atom, Var) or x.terms[atom] != 1:
        return
    for form in known.forms.get(atom, ()):
        if form.terms[atom] == 1:
            # What is left of it is the bound, since the form is not negative.
            yield x - form
            yield from _lower_bounds(x - form, known, names - 1)


def _between(
    x: Linear, first: int, last: int, lo: int | None, hi: int | None, known: Known
) -> bool:
    if (lo is None or lo < first) and not known.nonnegative(x.shifted(-first)):
        return False
    return (hi is not None and hi <= last) or known.nonnegative((-x).shifted(last))


def _symbolic_floordiv(x: Linear, n: Linear, known: Known) -> Linear:
    if not x.terms and x.constant == 0:
        return ZERO
    whole, rest = _symbolic_split(x, n)
    nonzero = known.nonnegative(n.shifted(-1))
    if nonzero:
        # (n*q + r)//n -> q + k   where k*n <= r < (k + 1)*n
        for k in (0, -1):
            below = rest.plus(n, -k)
            if known.nonnegative(below) and known.nonnegative(n - below.shifted(1)):
                return whole.shifted(k)
    if not nonzero:
        whole, rest = ZERO, x
    divisor = to_expr(n)
    atom = next(iter(rest.terms), None)
    if isinstance(atom, Binary) and len(rest.terms) == 1 and rest.terms[atom] == 1:
        found = _symbolic_nested(atom, rest, n, known)
        if found is not None:
            return whole + found
    return whole + single(Binary("floordiv", to_expr(rest), divisor))


def _symbolic_nested(atom: Binary, rest: Linear, n: Linear, known: Known) -> Linear | None:
    """(y//a)//n -> y//(a*n) and (y%(n*m))//n -> (y//n)%m, for a, n, m >= 0."""
    if rest.constant != 0 or not known.nonnegative(n):
        return None
    if atom.op == "floordiv" and known.nonnegative(to_linear(atom.b)):
        return floordiv(to_linear(atom.a), _times(to_linear(atom.b), n), known)
    if atom.op == "mod":
        others = _quotient_of_factors(atom.b, n)
        if others is not None and known.nonnegative(others):
            return mod(floordiv(to_linear(atom.a), n, known), others, known)
    return None


def _symbolic_mod(x: Linear, n: Linear, known: Known) -> Linear:
    rest = _symbolic_split(x, n)[1]
    if not rest.terms and rest.constant == 0:
        return ZERO
    if known.nonnegative(rest) and known.nonnegative(n - rest.shifted(1)):
        return rest
    divisor = to_expr(n)
    atom = next(iter(rest.terms), None)
    if isinstance(atom, Binary) and len(rest.terms) == 1 and rest.terms[atom] == 1:
        # (y % (n*m)) % n -> y % n   where the modulus is not 0
        if atom.op == "mod" and rest.constant == 0:
            if atom.b is divisor:
                return single(atom)
            others = _quotient_of_factors(atom.b, n)
            if others is not None and known.nonnegative(others.shifted(-1)):
                return mod(to_linear(atom.a), n, known)
    return single(Binary("mod", to_expr(rest), divisor))


def _symbolic_split(x: Linear, n: Linear) -> tuple[Linear, Linear]:
    """(q, r) with x = n*q + r: the terms of which n's factors are factors, and the others."""
    whole, rest = ZERO, constant(x.constant)
    for atom, coefficient in x.terms.items():
        quotient = _quotient_of_factors(atom, n)
        if quotient is not None and coefficient % _content(n) == 0:
            whole = whole.plus(quotient, coefficient // _content(n))
        else:
            rest = rest + single(atom, coefficient)
    if n.constant and not rest.terms:
        return whole, rest
    return _multiples_of_sum(whole, rest, n)


def _multiples_of_sum(whole: Linear, rest: Linear, n: Linear) -> tuple[Linear, Linear]:
    """Take k*n out of `rest` where n is a sum whose terms all occur in it k times."""
    if len(n.terms) + bool(n.constant) < 2:
        return whole, rest
    atom, coefficient = next(iter(n.terms.items()))
    k, remainder = divmod(rest.terms.get(atom, 0), coefficient)
    if k == 0 or remainder:
        return whole, rest
    if any(rest.terms.get(a, 0) != c * k for a, c in n.terms.items()):
        return whole, rest
    return whole.shifted(k), rest.plus(n, -k)


def _content(n: Linear) -> int:
    return abs(next(iter(n.terms.values()))) if len(n.terms) == 1 and not n.constant else 1


def _quotient_of_factors(atom: Expr, n: Linear) -> Linear | None:
    """atom / n, up to n's coefficient, when n's factors are among the factors of `atom`."""
    if len(n.terms) == 1 and not n.constant:
        only, coefficient = next(iter(n.terms.items()))
        if coefficient < 0:
            return None
        wanted = factors_of(only)
    else:
        wanted = (to_expr(n),)
    left = list(factors_of(atom))
    for factor in wanted:
        at = next((k for k, other in enumerate(left) if other is factor), None)
        if at is None:
            return None
        left.pop(at)
    return to_linear(product(*left)) if left else constant(1)


def _times(a: Linear, b: Linear) -> Linear:
    return expanded(a).times(expanded(b))
