"""The reverse sweep over the expressions of one definition.

Each node comes after all that use it, so its adjoint is complete when it is handed on.  An adjoint
is kept as conditions and a value: select(c1, select(c2, value, 0), 0).  What is computed from it
stays inside the conditions, because a derivative, like the value, is defined on the chosen side
only: of select(i > 0, A[i - 1]*B[i - 1], 0), B[i - 1] exists only where i > 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tensorlang.autodiff.derivatives import shares_of
from tensorlang.ir.expr import Const, Expr, Load, Param, Select, Unary
from tensorlang.ir.simplify import simplify
from tensorlang.ir.types import bool_
from tensorlang.ir.walk import postorder

TRUE, FALSE = Const(True, bool_), Const(False, bool_)


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """`value` where all the conditions hold, tested in order; else 0."""

    guards: tuple[Expr, ...]
    value: Expr


def whole(part: Guarded) -> Expr:
    """The adjoint as one expression, defined everywhere."""
    result, zero = part.value, Const(0.0, part.value.dtype)
    for guard in reversed(part.guards):
        result = Select(guard, result, zero)
    return result


def all_of(guards: Iterable[Expr]) -> Expr:
    """Whether all hold; each is looked at only where those before it hold."""
    result: Expr = TRUE
    for guard in reversed(tuple(guards)):
        if result is TRUE:
            result = guard
        elif result.reads:
            result = Select(guard, result, FALSE)
        else:
            result = guard & result
    return result


def _either(a: Guarded, b: Guarded) -> Guarded:
    """The sum of two adjoints of one node."""
    shared = 0
    for x, y in zip(a.guards, b.guards, strict=False):
        if x is not y:
            break
        shared += 1
    common, left, right = a.guards[:shared], a.guards[shared:], b.guards[shared:]
    if a.value is b.value and _are_opposite(left, right):
        return Guarded(common, a.value)
    total = whole(Guarded(left, a.value)) + whole(Guarded(right, b.value))
    if left and right:
        return Guarded((*common, all_of(left) | all_of(right)), total)
    return Guarded(common, total)


def _are_opposite(left: tuple[Expr, ...], right: tuple[Expr, ...]) -> bool:
    """Whether one of two single conditions holds exactly where the other does not."""
    if len(left) != 1 or len(right) != 1:
        return False
    return simplify(Unary("not", left[0])) is simplify(right[0])


def adjoints_of(
    roots: Iterable[tuple[Expr, Guarded]], wanted: frozenset[str]
) -> dict[Load | Param, Guarded]:
    """The adjoints of the loads of `wanted` buffers and of the `wanted` Params, in order of use.

    Args:
        roots: expressions, each with its own adjoint.
        wanted: names; whatever does not lead to one of them is left out.
    """
    pairs = list(roots)
    bars: dict[Expr, Guarded] = {}
    for root, bar in pairs:
        bars[root] = _either(bars[root], bar) if root in bars else bar
    found: dict[Load | Param, Guarded] = {}
    for e in reversed(list(postorder(*(root for root, _ in pairs)))):
        bar = bars.pop(e, None)
        if bar is None or not _leads_to(e, wanted):
            continue
        if isinstance(e, (Load, Param)):
            found[e] = bar
            continue
        for share in shares_of(e, bar.value):
            if not _leads_to(share.operand, wanted):
                continue
            part = Guarded(bar.guards + share.guards, share.value)
            known = bars.get(share.operand)
            bars[share.operand] = part if known is None else _either(known, part)
    return dict(reversed(found.items()))


def _leads_to(e: Expr, wanted: frozenset[str]) -> bool:
    return e.dtype.is_float and not (wanted.isdisjoint(e.reads) and wanted.isdisjoint(e.free))
