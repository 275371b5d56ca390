"""What the functions of vectors are written with."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.types import CType


class Writer:
    """The helpers that these functions are written with, for one vector type."""

    def __init__(self, c: Asking, t: CType) -> None:
        self.bits = t.bits
        self.f, self.i, self.u = c.type(t), c.type(t.mask), c.type(t.unsigned)
        self.fma, self.splat = c.helper("fma", t), c.helper("splat", t)
        self.select, self.all = c.helper("select", t), c.helper("all", t.mask)
        self.larger, self.smaller = c.helper("larger", t), c.helper("smaller", t)
        self.rint, self.abs = c.helper("rint", t), c.helper("abs", t)

    def polynomial(self, name: str, x: str, coefficients: Sequence[str]) -> str:
        """name = c0 + x*(c1 + x*(c2 + ...))"""
        lines = [f"{self.f} {name} = {self.splat}({coefficients[-1]});"]
        lines += [
            f"{name} = {self.fma}({name}, {x}, {self.splat}({c}));"
            for c in reversed(coefficients[:-1])
        ]
        return "\n".join(lines)

    def clamped(self, name: str, low: str, high: str) -> str:
        """name held in [low, high]; NaN stays, since no bound wins against it."""
        return f"""\
{name} = {self.larger}({self.splat}({low}), {name});
{name} = {self.smaller}({self.splat}({high}), {name});"""

    def signed(self, value: str) -> str:
        """A size with the sign of x."""
        return f"({self.f})(({self.i}){value} | (({self.i})x & INT{self.bits}_MIN))"

    def signed_by(self, value: str) -> str:
        """The value for x above 0, and its negative below."""
        return f"({self.f})(({self.i}){value} ^ (({self.i})x & INT{self.bits}_MIN))"

    def with_edges(self, value: str) -> str:
        """The value for numbers above 0; -inf at 0, NaN below, inf and NaN as they are."""
        return f"""\
{self.f} result = {value};
result = {self.select}(({self.i})(x < {self.splat}(INFINITY)), result, x);
result = {self.select}(({self.i})(x == {self.splat}(0)), {self.splat}(-INFINITY), result);
return {self.select}(({self.i})(x < {self.splat}(0)), {self.splat}(NAN), result);"""


# The body of a function of x, of vectors of one type.
Write: TypeAlias = Callable[[Asking, CType, Writer], str]
