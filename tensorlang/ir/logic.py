"""Conjunctions and disjunctions without the parts that the others make idle.

(i < M) & (i < M + 1)  ->  i < M          (x < N) & (N <= x)  ->  false
"""

from collections.abc import Sequence
from functools import reduce

from tensorlang.ir.conditions import forms_of, negated
from tensorlang.ir.expr import Binary, Compare, Const, Expr
from tensorlang.ir.inequality import Known
from tensorlang.ir.types import bool_

# How many parts of a long conjunction a further part is compared with.
_COMPARED = 8


def simplify_logic(e: Binary, known: Known) -> Expr:
    """`and` or `or` of two canonical conditions; `e` itself when every part counts."""
    is_and = e.op == "and"
    rest, left = _parts(e.a, e.op, _COMPARED)
    deeper, right = _parts(e.b, e.op, _COMPARED)
    if deeper is not None:
        return e
    kept, excluded = _less(right, left, known, is_and)
    needed, excluding = _less(left, kept, known, is_and)
    if excluded or excluding:
        return Const(not is_and, bool_)
    if len(kept) == len(right) and len(needed) == len(left):
        return e
    parts = ([] if rest is None else [rest]) + needed + kept
    return reduce(lambda a, b: Binary(e.op, a, b), parts)


def _parts(e: Expr, op: str, most: int) -> tuple[Expr | None, list[Expr]]:
    """The last parts of a chain of `op`, and what is left before them."""
    parts: list[Expr] = []
    while isinstance(e, Binary) and e.op == op and len(parts) < most:
        parts.append(e.b)
        e = e.a
    if len(parts) < most:
        return None, [e, *parts[::-1]]
    return e, parts[::-1]


def _less(
    parts: Sequence[Expr], others: Sequence[Expr], known: Known, is_and: bool
) -> tuple[list[Expr], bool]:
    """Those of `parts` that `others` do not imply, and whether one of them excludes the others.

    For `or` all is negated: a | b is not (not a & not b).
    """
    kept: list[Expr] = []
    assumed = [other if is_and else negated(other) for other in others]
    for part in parts:
        claim = part if is_and else negated(part)
        if any(claim is other for other in assumed):
            continue
        opposite = negated(claim)
        if any(opposite is other for other in assumed):
            return kept, True
        about = [other for other in assumed if not other.free.isdisjoint(claim.free)]
        there = known.plus(form for other in about for form in forms_of(other))
        if about and isinstance(claim, Compare) and there.proves(claim):
            continue
        if about and isinstance(opposite, Compare) and there.proves(opposite):
            return kept, True
        kept.append(part)
    return kept, False
