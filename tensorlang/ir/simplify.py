"""Simplifying expressions: the same value, in canonical form, under what is known."""

from tensorlang.ir.expr import Expr
from tensorlang.ir.facts import Facts


def simplify(e: Expr, facts: Facts = Facts.none) -> Expr:
    """An expression with the value of `e` wherever `facts` hold; `e` itself when it is canonical.

    Index arithmetic becomes a linear form in a fixed order, comparisons and min/max that are
    decided disappear, constants are folded exactly, and floats change only where every bit stays.
    """
    return facts.simplified(e)
