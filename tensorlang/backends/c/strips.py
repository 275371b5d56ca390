"""A loop cut into strips: pieces of constant length, the longest first, then what is left.

for j in [m, +E)   ->   for j.block in [0, E//8): strip(m + j.block*8, 8); ... strip(.., 1)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tensorlang.backends.c.corners import Range
from tensorlang.backends.c.rewriting import larger, less, quotient, times, total
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import For, LoopKind, Stmt, block


@dataclass(frozen=True, slots=True)
class Strip:
    """Iterations first, ..., first + width - 1."""

    first: Expr
    width: int

    @property
    def range(self) -> Range:
        """First and last iteration."""
        return self.first, total(self.first, integer(self.width - 1))

    def parts(self, width: int) -> "list[Strip]":
        """The strip in pieces of at most `width`."""
        step = min(width, self.width)
        starts = range(0, self.width, step)
        return [Strip(total(self.first, integer(k)), step) for k in starts]


def in_strips(loop: For, widths: Sequence[int], body: Callable[[Strip], Stmt]) -> Stmt:
    """The loop in strips of the given widths, each taking what the wider ones leave.

    Args:
        loop: its extent is not negative.
        widths: descending; 1 is added at the end.  Constant extents also use the powers of two
            below the last, so that a remainder is not run one by one.
    """
    wanted = sorted({w for w in widths if w > 1}, reverse=True)
    if isinstance(loop.extent, Const):
        smallest = wanted[-1] if wanted else 1
        wanted += [1 << k for k in reversed(range(1, smallest.bit_length() - 1))]
    pieces: list[Stmt] = []
    start, left = loop.min, loop.extent
    for width in (*wanted, 1):
        count = quotient(left, width)
        if not (isinstance(count, Const) and int(count.value) <= 0):
            pieces.append(_repeated(loop, start, count, width, body))
        done = times(count, width)
        start, left = total(start, done), less(left, done)
        if isinstance(left, Const) and int(left.value) <= 0:
            break
    return block(*pieces)


def never_negative(loop: For, facts: Facts) -> For:
    """The loop with an extent that is at least 0: of a negative one, strips would run a part."""
    if prove_le(0, loop.extent, facts):
        return loop
    return replace(loop, extent=larger(loop.extent, integer(0)))


def _repeated(
    loop: For, start: Expr, count: Expr, width: int, body: Callable[[Strip], Stmt]
) -> Stmt:
    if isinstance(count, Const) and int(count.value) == 1:
        return body(Strip(start, width))
    if width == 1:
        inside = body(Strip(Var(loop.var), 1))
        return replace(loop, min=start, extent=count, kind=LoopKind.SERIAL, body=inside)
    name = f"{loop.var}_{width}"
    inside = body(Strip(total(start, times(Var(name), width)), width))
    return replace(loop, var=name, min=integer(0), extent=count, kind=LoopKind.SERIAL, body=inside)
