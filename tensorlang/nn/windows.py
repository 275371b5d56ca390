"""Windows over spatial dimensions: what convolution and pooling share.

A window starts at o*stride - before for output o, and takes every dilation-th point.  Arrays are
(batch, channels..., spatial...), or with the channels last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tensorlang.ir.expr import Expr, Operand, Size, Var, as_expr
from tensorlang.ir.functions import minimum

Ints = tuple[int, ...]
Extents = Sequence[Operand]


@dataclass(frozen=True, slots=True)
class Windows:
    """How windows lie, one number of each a spatial dimension.

    Args:
        extent: the points of a window.
        before, after: how many zeros are put around the array.
        ceil_mode: whether a last window may run over the end.
    """

    extent: Ints
    stride: Ints
    dilation: Ints
    before: Ints
    after: Ints
    ceil_mode: bool = False

    @property
    def rank(self) -> int:
        return len(self.extent)

    def counts(self, shape: Extents) -> list[Operand]:
        """How many windows an array of this spatial shape has.

        In ceil_mode a window that would start after the array is left out, as torch does.
        """
        found: list[Operand] = []
        for d, n in enumerate(shape):
            reach = self.dilation[d] * (self.extent[d] - 1) + 1
            free = n + (self.before[d] + self.after[d] - reach)
            s = self.stride[d]
            if self.ceil_mode:
                last = (n + (self.before[d] - 1)) // s
                found.append(minimum(as_expr((free + (s - 1)) // s), as_expr(last)) + 1)
            else:
                found.append(free // s + 1)
        return found

    def points(self, outputs: Extents, inside: Extents) -> list[Operand]:
        """The place in the array of point `inside` of the windows at `outputs`."""
        terms = zip(outputs, self.stride, inside, self.dilation, self.before, strict=True)
        return [o * s + r * t - p for o, s, r, t, p in terms]


def spatial(rank: int, letter: str) -> list[Var]:
    """letter0, letter1, ..., one for each spatial dimension."""
    return [Var(f"{letter}{d}") for d in range(rank)]


def spatial_sizes(rank: int, letter: str = "H") -> list[Size]:
    """The extents of the spatial dimensions."""
    return [Size(f"{letter}{d}") for d in range(rank)]


def arranged(
    batch: Operand, channels: Extents, space: Extents, channels_last: bool
) -> tuple[Operand, ...]:
    """Indices or extents in the order of the array."""
    return (batch, *space, *channels) if channels_last else (batch, *channels, *space)


def within(place: Extents, shape: Extents) -> Expr:
    """Whether a place lies in an array of this shape."""
    tests = [(as_expr(p) >= 0) & (as_expr(p) < n) for p, n in zip(place, shape, strict=True)]
    inside = tests[0]
    for test in tests[1:]:
        inside = inside & test
    return inside
