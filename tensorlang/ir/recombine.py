"""Quotients and remainders of one division in a sum, put back together.

For q = n*(x//n), r = x%n and n >= 1:   q + r -> x,   x - q -> r,   x - r -> q,   each k times; the
first also with a common factor:         f*q + f*r -> f*x
"""

from tensorlang.ir.division import floordiv, mod
from tensorlang.ir.expr import Binary, Expr
from tensorlang.ir.inequality import Known
from tensorlang.ir.linear import Linear, expanded, factors_of, product, to_expr, to_linear


def recombined(form: Linear, known: Known) -> Linear:
    """The form where no quotient meets its remainder, and neither meets what was divided."""
    done: set[Expr] = set()
    while True:
        fresh = [e for e in form.terms if isinstance(e, Binary) and e not in done]
        done.update(fresh)
        for atom in fresh:
            if atom not in form.terms:
                continue
            if atom.op == "mod":
                form = _with_quotient(form, atom, known)
            elif atom.op in ("floordiv", "mul"):
                form = _scaled(_as_remainder(form, atom, known), atom, known)
        if not fresh:
            return form


def _with_quotient(form: Linear, remainder: Binary, known: Known) -> Linear:
    """q + r -> x and x - r -> q."""
    n, x = to_linear(remainder.b), to_linear(remainder.a)
    if not _is_positive(n, known):
        return form
    k = form.terms[remainder]
    whole = expanded(n).times(floordiv(x, n, known)) * k
    rest = form.without(remainder)
    if _contains(rest, whole):
        return rest - whole + x * k
    return rest + x * k - whole if _contains(rest, x * -k) else form


def _scaled(form: Linear, atom: Binary, known: Known) -> Linear:
    """f*q + f*r -> f*x, where `atom` is f*r."""
    remainder, others = _factor_of(atom, "mod")
    if remainder is None or others is None or atom not in form.terms:
        return form
    n, x = to_linear(remainder.b), to_linear(remainder.a)
    if not _is_positive(n, known):
        return form
    k = form.terms[atom]
    whole = expanded(expanded(n).times(floordiv(x, n, known)))
    whole = expanded(to_linear(to_expr(whole) * others)) * k
    rest = form.without(atom)
    return (
        rest - whole + expanded(to_linear(to_expr(x) * others)) * k
        if _contains(rest, whole)
        else form
    )


def _as_remainder(form: Linear, atom: Binary, known: Known) -> Linear:
    """x - q -> r."""
    quotient, others = _factor_of(atom, "floordiv")
    if quotient is None:
        return form
    n, x = to_linear(quotient.b), to_linear(quotient.a)
    if n.terms:
        k, left = -form.terms[atom], 0
        fits = others is quotient.b
    else:
        k, left = divmod(-form.terms[atom], n.constant)
        fits = others is None
    if left or not fits or not _is_positive(n, known) or not _contains(form, x * k):
        return form
    return form.without(atom) - x * k + mod(x, n, known) * k


def _is_positive(n: Linear, known: Known) -> bool:
    return known.nonnegative(n.shifted(-1))


def _contains(form: Linear, part: Linear) -> bool:
    """Whether the terms of `part`, of which there are some, all stand in `form`."""
    return bool(part.terms) and all(form.terms.get(a) == c for a, c in part.terms.items())


def _factor_of(atom: Binary, op: str) -> tuple[Binary | None, Expr | None]:
    """The quotient or remainder among the factors of `atom`, and the product of the others."""
    factors = factors_of(atom)
    for k, f in enumerate(factors):
        if isinstance(f, Binary) and f.op == op:
            others = factors[:k] + factors[k + 1 :]
            return f, product(*others) if others else None
    return None, None
