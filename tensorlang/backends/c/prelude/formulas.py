"""exp, log, tanh, erf of vectors: formulas that f32 and f64 share, with the numbers of either."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensorlang.backends.c.prelude.definition import Asking
from tensorlang.backends.c.prelude.writer import Write, Writer
from tensorlang.backends.c.types import CType


@dataclass(frozen=True, slots=True)
class Formulas:
    """The numbers of one element type, as literals of C.

    Args:
        suffix: of its literals.
        mantissa: its explicit bits.
        to_count: 1.5 * 2^mantissa and twice the largest exponent.  What is below 2^(mantissa - 2)
            in size and added to it has no bits behind the point; the lowest are an integer.
        of_count: the bits of 1.5 * 2^mantissa.
        log2: log(2) in two parts, of which the first is short.
        per_log2: 1/log(2), and what that leaves out.
        exp_range, exp2_range: beyond, the results are 0 and infinity.
        exp, exp2, tanh, erf, log_erfc: polynomials, the lowest coefficient first.
        erf_end: from where on erf is 1.
        reduced_log: writes count, f and tail: x = 2^count * (1 + f), tail = log(1 + f) - f.
    """

    suffix: str
    mantissa: int
    to_count: str
    of_count: str
    log2: tuple[str, str]
    per_log2: tuple[str, str]
    exp_range: tuple[str, str]
    exp2_range: tuple[str, str]
    exp: Sequence[str]
    exp2: Sequence[str]
    tanh: Sequence[str]
    erf: Sequence[str]
    log_erfc: Sequence[str]
    erf_end: str
    reduced_log: Callable[[Writer], str]

    def functions(self) -> dict[str, Write]:
        """What is written by them."""
        return {
            "exp": self._exp,
            "exp2": self._exp2,
            "log": self._log,
            "log2": self._log2,
            "tanh": self._tanh,
            "erf": self._erf,
        }

    def _counted(self, w: Writer, x: str, factor: str) -> str:
        """count = the integer nearest to x*factor; biased = count + twice the largest exponent."""
        return f"""\
const {w.f} shifted = {w.fma}({x}, {w.splat}({factor}), {w.splat}({self.to_count}));
const {w.u} biased = ({w.u})shifted - {self.of_count};
const {w.f} count = shifted - {self.to_count};"""

    def _scaled(self, w: Writer, value: str) -> str:
        """value * 2^count in two steps, so that subnormal results are rounded once."""
        bits = self.mantissa
        return f"""\
const {w.u} half = biased >> 1;
return {value} * ({w.f})(half << {bits}) * ({w.f})((biased - half) << {bits});"""

    def _exp(self, c: Asking, t: CType, w: Writer) -> str:
        """2^n * exp(r), x = n*log(2) + r."""
        high, low = self.log2
        return f"""\
{w.clamped("x", *self.exp_range)}
{self._counted(w, "x", self.per_log2[0])}
{w.f} r = {w.fma}(count, {w.splat}(-{high}), x);
r = {w.fma}(count, {w.splat}(-{low}), r);
{w.polynomial("p", "r", self.exp)}
p = {w.fma}(r * r, p, r) + 1.0{self.suffix};
{self._scaled(w, "p")}"""

    def _exp2(self, c: Asking, t: CType, w: Writer) -> str:
        one = f"1.0{self.suffix}"
        return f"""\
{w.clamped("x", *self.exp2_range)}
{self._counted(w, "x", one)}
const {w.f} r = x - count;
{w.polynomial("p", "r", self.exp2)}
p = {w.fma}(p, r, {w.splat}({one}));
{self._scaled(w, "p")}"""

    def _log(self, c: Asking, t: CType, w: Writer) -> str:
        high, low = self.log2
        value = f"f + {w.fma}(count, {w.splat}({low}), tail)"
        value = f"{w.fma}(count, {w.splat}({high}), {value})"
        return f"{self.reduced_log(w)}\n{w.with_edges(value)}"

    def _log2(self, c: Asking, t: CType, w: Writer) -> str:
        # 1/log(2) in two parts, and f apart from the smaller tail.
        high, low = self.per_log2
        return f"""\
{self.reduced_log(w)}
{w.f} low = {w.fma}(tail, {w.splat}({low}), f * {low});
low = {w.fma}(tail, {w.splat}({high}), low);
{w.with_edges(f"{w.fma}(f, {w.splat}({high}), low) + count")}"""

    def _tanh(self, c: Asking, t: CType, w: Writer) -> str:
        """x + x^3*P(x^2) near 0, else 1 - 2/(exp(2|x|) + 1)."""
        exp, end = c.helper("exp", t), self.suffix
        return f"""\
const {w.f} size = {w.abs}(x), z = x * x;
{w.polynomial("p", "z", self.tanh)}
const {w.f} near = {w.fma}(p * z, size, size);
const {w.f} far = 1.0{end} - 2.0{end} / ({exp}(size + size) + 1.0{end});
const {w.f} result = {w.select}(({w.i})(size < {w.splat}(0.625{end})), near, far);
return {w.signed("result")};"""

    def _erf(self, c: Asking, t: CType, w: Writer) -> str:
        """x + x*P(x^2) below 1, else 1 - exp(Q(|x|)) with Q = log(erfc)."""
        exp, one = c.helper("exp", t), f"1.0{self.suffix}"
        return f"""\
const {w.f} size = {w.abs}(x), z = x * x;
{w.polynomial("p", "z", self.erf)}
{w.f} at = size;
{w.clamped("at", one, self.erf_end)}
const {w.f} s = at - {one};
{w.polynomial("q", "s", self.log_erfc)}
const {w.f} far = {one} - {exp}(q);
const {w.f} near = {w.fma}(p, x, x);
return {w.select}(({w.i})(size < {w.splat}({one})), near, {w.signed("far")});"""
