"""Which updates are scans: each point combines the one before it with a term of its own.

    f[x, k] = f[x, k - 1] op e                              e free of f
    f[x, k] = select(k <= first, e, f[x, k - 1] op e)       the first point begins anew

Where `op` is proven associative, the points of a loop over k may be computed at once: point k is
what stands before the loop, combined with the terms up to k combined in any grouping.
See: Blelloch, Prefix Sums and Their Applications.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tensorlang.ir.associativity import Operator, associative_operator
from tensorlang.ir.expr import Compare, Expr, Select, Var
from tensorlang.ir.linear import Linear, expanded, integer, to_linear
from tensorlang.ir.tuple_operators import TupleOperator, tuple_operator
from tensorlang.ir.walk import loads_of, substitute


@dataclass(frozen=True, slots=True, eq=False)
class Scan:
    """An update that is a scan along one variable.

    Args:
        operator: what combines; of a tuple, a proven operator of tuples.
        terms: what each point adds, one a component.
        before: the indices of the point before.
        begins: the condition under which a point is the first and needs none before it, if any.
        steps: how far the index moves with the variable, 1 or -1.
    """

    operator: Operator | TupleOperator
    terms: tuple[Expr, ...]
    before: tuple[Expr, ...]
    begins: Compare | None
    steps: int


def scan_of(
    func: str,
    indices: Sequence[Expr],
    values: Sequence[Expr],
    variable: str,
    known: Mapping[str, Expr] | None = None,
) -> Scan | None:
    """The scan along `variable` that an update is; None where it is not proven to be one.

    Args: known: what names stand for that depend on the variable.
    """
    befores = dict.fromkeys(load.indices for load in loads_of(*values) if load.buffer == func)
    if len(befores) != 1:
        return None
    (before,) = befores
    steps = _steps(before, indices, variable, known or {})
    stepped, begins = _stepped(values)
    if not steps or (begins is not None and not _is_first(begins, variable, known or {})):
        return None
    found = associative_operator(func, before, stepped) or tuple_operator(func, before, stepped)
    if found is None or found[0] in ("argmin", "argmax"):
        return None
    operator, terms = found
    if begins is not None:
        firsts = [v.a for v in values if isinstance(v, Select)]
        if any(first is not term for first, term in zip(firsts, terms, strict=True)):
            return None
    return Scan(operator, terms, before, begins, steps)


def scan_along(
    func: str, indices: Sequence[Expr], values: Sequence[Expr], variable: str, first: Expr
) -> Scan | None:
    """The scan that an update is, whose domain begins at `first`: where it begins anew, there."""
    scan = scan_of(func, indices, values, variable)
    if scan is None or scan.begins is None:
        return scan
    begins = scan.begins
    is_start = begins.op == "le" and begins.a is Var(variable) and begins.b is first
    return scan if is_start else None


def _stepped(values: Sequence[Expr]) -> tuple[tuple[Expr, ...], Compare | None]:
    """The values where a point is not the first, and the condition under which it is."""
    conditions = {v.condition if isinstance(v, Select) else None for v in values}
    if len(conditions) != 1:
        return tuple(values), None
    (begins,) = conditions
    if not isinstance(begins, Compare):
        return tuple(values), None
    return tuple(v.b for v in values if isinstance(v, Select)), begins


def _steps(
    before: Sequence[Expr], indices: Sequence[Expr], variable: str, known: Mapping[str, Expr]
) -> int:
    """1 or -1 where `before` is `indices` one iteration earlier, and one of them moves; else 0."""
    steps = 0
    back = {variable: Var(variable) - integer(1)}
    for old, new in zip(before, indices, strict=True):
        if old.reads or new.reads:
            return 0
        whole = substitute(new, known)
        if _form(substitute(old, known) - substitute(whole, back)) != (0, {}):
            return 0
        moved = _form(whole - substitute(whole, back))
        if moved[1] or abs(moved[0]) > 1 or (moved[0] and steps):
            return 0
        steps = steps or moved[0]
    return steps


def _is_first(begins: Compare, variable: str, known: Mapping[str, Expr]) -> bool:
    """Whether the condition holds up to some iteration, and never after: k <= first."""
    if begins.op not in ("le", "lt"):
        return False
    form = expanded(to_linear(substitute(begins.a, known)) - to_linear(substitute(begins.b, known)))
    return form.terms.get(Var(variable), 0) > 0 and _is_plain(form, variable)


def _is_plain(form: Linear, variable: str) -> bool:
    """Whether the variable stands in no atom of the form but itself."""
    return all(atom is Var(variable) or variable not in atom.free for atom in form.terms)


def _form(e: Expr) -> tuple[int, dict[Expr, int]]:
    form = expanded(to_linear(e))
    return form.constant, dict(form.terms)
