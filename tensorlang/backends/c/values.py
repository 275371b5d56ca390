"""A C expression with its type, and how tightly it binds."""

from dataclasses import dataclass, replace

from tensorlang.backends.c.prelude import Prelude
from tensorlang.backends.c.types import CType
from tensorlang.errors import InternalError
from tensorlang.ir.expr import Const
from tensorlang.ir.types import Kind, f32, f64, round_float

# How tightly C binds: a name or call; a cast or sign; * and /; + and -; anything else.
ATOM, UNARY, PRODUCT, SUM, LOOSE = 9, 8, 7, 6, 0


@dataclass(frozen=True, slots=True)
class Value:
    """A C expression; `is_bool`: a scalar bool, or a vector that is a mask.

    `unrounded`: what the text rounds to a narrower float, for a store that rounds itself.
    """

    text: str
    type: CType
    binds: int = ATOM
    is_bool: bool = False
    unrounded: str = ""

    def within(self, binds: int) -> str:
        """The text, in parentheses if it binds less tightly than `binds`."""
        return self.text if self.binds >= binds else f"({self.text})"


def address(pointer: str, offset: Value) -> str:
    """pointer + offset"""
    return pointer if offset.text == "0" else f"{pointer} + {offset.within(SUM)}"


def widened(value: Value, lanes: int, prelude: Prelude) -> Value:
    """A scalar in every lane; a vector is itself."""
    if value.type.lanes == lanes:
        return value
    if value.type.lanes != 1:
        raise InternalError(f"a vector of {value.type.lanes} lanes stands where {lanes} are needed")
    if value.is_bool:
        mask = CType("i8", lanes)
        return Value(
            f"{prelude.helper('splat', mask)}(-(int8_t){value.within(UNARY)})", mask, is_bool=True
        )
    wide = value.type.of(lanes)
    return Value(f"{prelude.helper('splat', wide)}({value.text})", wide)


def as_mask(value: Value, bits: int, prelude: Prelude) -> Value:
    """A mask with lanes of `bits`."""
    wanted = CType(f"i{bits}", value.type.lanes)
    if value.type == wanted:
        return value
    return replace(converted(value, wanted, prelude), is_bool=True)


def converted(value: Value, wanted: CType, prelude: Prelude) -> Value:
    """C's own conversion of numbers: exact, wrapping or to nearest."""
    if value.type == wanted:
        return value
    if wanted.lanes == 1:
        return Value(f"({wanted.name}){value.within(UNARY)}", wanted, UNARY)
    prelude.type(wanted)
    return Value(f"__builtin_convertvector({value.text}, {wanted.tag})", wanted)


def constant(e: Const, type_: CType) -> Value:
    """A literal."""
    value = e.value
    if e.dtype.is_bool:
        return Value("true" if value else "false", type_, is_bool=True)
    if e.dtype.is_float:
        text = _float(float(value), e)
        return Value(text, type_, UNARY if text.startswith("-") else ATOM)
    return _integer(int(value), e, type_)


def _integer(value: int, e: Const, type_: CType) -> Value:
    if value == e.dtype.lowest and e.dtype.is_signed:
        return Value(f"INT{e.dtype.bits}_MIN", type_)
    binds = UNARY if value < 0 else ATOM
    if e.dtype.kind is Kind.INDEX and abs(value) < 1 << 31:
        return Value(str(value), type_, binds)
    if e.dtype.bits == 64:
        macro = "INT64_C" if e.dtype.is_signed else "UINT64_C"
        text = f"{macro}({abs(value)})"
        return Value(f"-{text}" if value < 0 else text, type_, binds)
    return Value(
        f"{value}{'u' if e.dtype.bits == 32 and not e.dtype.is_signed else ''}", type_, binds
    )


def _float(value: float, e: Const) -> str:
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    # f16 and the like are carried as f32, of which every one of their values is one.
    wide = e.dtype is f64
    near = value
    for digits in range(1, 17):
        near = float(f"{value:.{digits}g}")
        if (near if wide else round_float(near, f32)) == value:
            break
    else:
        near = value
    return repr(near) if wide else f"{near!r}f"
