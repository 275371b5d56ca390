"""A loop cut into strips: pieces of constant length, the longest first, then what is left.

for j in [m, +E)   ->   for j.block in [0, E//8): strip(m + j.block*8, 8); ... strip(.., 1)
                   or   ...;  at most once: strip(m + E//8*8, 8, of which those below m + E run)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tensorlang.backends.c.corners import Range
from tensorlang.backends.c.rewriting import larger, less, quotient, times, total
from tensorlang.ir.expr import Compare, Const, Expr, Var
from tensorlang.ir.facts import Facts, prove_le
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import For, If, LoopKind, Stmt, block


@dataclass(frozen=True, slots=True)
class Strip:
    """Iterations first, ..., first + width - 1, of which only those below `end` run."""

    first: Expr
    width: int
    end: Expr | None = None

    @property
    def range(self) -> Range:
        """First and last iteration."""
        end = total(self.first, integer(self.width)) if self.end is None else self.end
        return self.first, total(end, integer(-1))

    def masked(self, var: str, body: Stmt) -> Stmt:
        """The body of the loop over `var`, in the iterations that run."""
        return body if self.end is None else If(Compare("lt", Var(var), self.end), body)

    def parts(self, width: int) -> "list[Strip]":
        """The strip in pieces of at most `width`."""
        step = min(width, self.width)
        starts = range(0, self.width, step)
        return [Strip(total(self.first, integer(k)), step) for k in starts]


def in_strips(
    loop: For, widths: Sequence[int], body: Callable[[Strip], Stmt], *, masked: bool = False
) -> Stmt:
    """The loop in strips of the given widths, each taking what the wider ones leave.

    Args:
        loop: its extent is not negative.
        widths: descending; 1 is added at the end.  Constant extents also use the powers of two
            below the last, so that a remainder is not run one by one.
        masked: whether what is left is a last strip that runs in part, rather than one by one.
    """
    wanted = sorted({w for w in widths if w > 1}, reverse=True)
    if isinstance(loop.extent, Const):
        smallest = wanted[-1] if wanted else 1
        wanted += [1 << k for k in reversed(range(1, smallest.bit_length() - 1))]
    pieces: list[Stmt] = []
    start, left = loop.min, loop.extent
    for width in (*wanted, 1):
        if width == 1 and masked and wanted and not isinstance(left, Const):
            pieces.append(_in_part(loop, start, left, wanted[-1], body))
            break
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


def _in_part(loop: For, start: Expr, left: Expr, width: int, body: Callable[[Strip], Stmt]) -> Stmt:
    """The strip that what is left begins; none where nothing is."""
    end = total(loop.min, loop.extent)
    count = quotient(total(left, integer(width - 1)), width)
    return _repeated(loop, start, count, width, lambda s: body(Strip(s.first, width, end)))


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
