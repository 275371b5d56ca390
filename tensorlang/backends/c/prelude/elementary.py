"""exp, log, sin, tanh, erf, pow ... of vectors of floats: no call of libm inside a vector loop."""

from collections.abc import Mapping

from tensorlang.backends.c.prelude.definition import Asking, Definition, Make, Table
from tensorlang.backends.c.prelude.double_powers import size_to_the_power as f64_power
from tensorlang.backends.c.prelude.powers import size_to_the_power as f32_power
from tensorlang.backends.c.prelude.vector_doubles import F64_FUNCTIONS
from tensorlang.backends.c.prelude.vector_functions import F32_FUNCTIONS
from tensorlang.backends.c.prelude.writer import Write, Writer
from tensorlang.backends.c.types import CType


def _by_element(writers: Mapping[str, Write], operands: str = "x") -> Make:
    """The function whose body is written for the element type of its vectors."""

    def make(c: Asking, t: CType) -> Definition:
        body = writers[t.element](c, t, Writer(c, t))
        return Definition(t, tuple((t, name) for name in operands), body)

    return make


def _sigmoid(c: Asking, t: CType, w: Writer) -> str:
    return f"""\
const {w.f} e = {c.helper("exp", t)}(-{w.abs}(x));
const {w.f} above = {w.select}(({w.i})(x < {w.splat}(0)), e, {w.splat}(1));
return above / (1 + e);"""


def _power(size_to_the: Write) -> Write:
    """The power of the size; then what zeros, infinities, signs and NaN make of it."""

    def write(c: Asking, t: CType, w: Writer) -> str:
        zero, one, infinity = (f"{w.splat}({value})" for value in ("0", "1", "INFINITY"))
        last = t.bits - 1
        return f"""\
const {w.f} size = {w.abs}(x), half = y * {w.splat}(0.5);
{size_to_the(c, t, w)}
const {w.i} extreme = ({w.i})(size == {zero}) | ({w.i})(size == {infinity});
const {w.i} shrinks = ({w.i})(y > {zero}) ^ ({w.i})(size > {one});
const {w.f} end = {w.select}(shrinks, {zero}, {infinity});
result = {w.select}(extreme, end, result);
const {w.i} whole = ({w.i})({w.rint}(y) == y), odd = whole & ({w.i})({w.rint}(half) != half);
const {w.u} sign = ({w.u})x >> {last} << {last} & ({w.u})odd;
result = ({w.f})(({w.u})result ^ sign);
result = {w.select}(({w.i})(x < {zero}) & ~whole & ~extreme, {w.splat}(NAN), result);
result = {w.select}(({w.i})(x != x) | ({w.i})(y != y), x + y, result);
const {w.i} unity = ({w.i})(size == {one}) & ({w.i})({w.abs}(y) == {infinity});
return {w.select}(({w.i})(x == {one}) | ({w.i})(y == {zero}) | unity, {one}, result);"""

    return write


_WRITERS: dict[str, dict[str, Write]] = {
    **{name: {"f32": F32_FUNCTIONS[name], "f64": F64_FUNCTIONS[name]} for name in F32_FUNCTIONS},
    "sigmoid": {"f32": _sigmoid, "f64": _sigmoid},
}
# The cheap forms are as good as the dear ones here.
_CHEAP = ("exp2", "tanh", "erf")

ELEMENTARY: Table = {
    **{name: _by_element(writers) for name, writers in _WRITERS.items()},
    **{f"approx.{name}": _by_element(_WRITERS[name]) for name in _CHEAP},
    "pow": _by_element({"f32": _power(f32_power), "f64": _power(f64_power)}, "xy"),
}
