"""Scalar types and the promotion of two of them.

`index` is the type of every Var, Size and RDom variable and of arithmetic between them and Python
ints.  Its arithmetic is exact: no index overflows.  Everywhere else it behaves as i64, and a value
of type index that is stored becomes i64.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

Scalar: TypeAlias = bool | int | float


class Kind(Enum):
    """What the bits of a dtype mean."""

    BOOL = "bool"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    FLOAT = "float"
    INDEX = "index"


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One scalar type: its name, what its bits mean, how many are stored.

    There is one object of each, so that a node's dtype costs nothing where nodes are looked up.
    """

    name: str
    kind: Kind
    bits: int
    # Floats only: explicit mantissa bits and the largest finite value.
    mantissa: int = 0
    largest: float = 0.0

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def is_integer(self) -> bool:
        """Signed, unsigned or index; bool is not an integer."""
        return self.kind in (Kind.SIGNED, Kind.UNSIGNED, Kind.INDEX)

    @property
    def is_signed(self) -> bool:
        return self.kind in (Kind.SIGNED, Kind.INDEX)

    @property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @property
    def lowest(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def highest(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def storage(self) -> "DType":
        """The type of a stored value: i64 for index, f32 for tf32, otherwise itself."""
        return {"index": i64, "tf32": f32}.get(self.name, self)

    def __call__(self, value: Any) -> Any:
        """f32(e): the expression or number `e` converted to this dtype."""
        return _make_cast(self, value)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _named, (self.name,)


def _named(name: str) -> DType:
    return DTYPES[name]


_make_cast: Callable[[DType, Any], Any]


def set_cast(make_cast: Callable[[DType, Any], Any]) -> None:
    """Give calling a dtype its meaning; expressions, which lie above this module, do so."""
    global _make_cast
    _make_cast = make_cast


bool_ = DType("bool", Kind.BOOL, 8)
i8, i16, i32, i64 = (DType(f"i{n}", Kind.SIGNED, n) for n in (8, 16, 32, 64))
u8, u16, u32, u64 = (DType(f"u{n}", Kind.UNSIGNED, n) for n in (8, 16, 32, 64))
f8e4m3 = DType("f8e4m3", Kind.FLOAT, 8, 3, 448.0)
f8e5m2 = DType("f8e5m2", Kind.FLOAT, 8, 2, 57344.0)
f16 = DType("f16", Kind.FLOAT, 16, 10, 65504.0)
bf16 = DType("bf16", Kind.FLOAT, 16, 7, float.fromhex("0x1.fep127"))
tf32 = DType("tf32", Kind.FLOAT, 32, 10, float.fromhex("0x1.ffcp127"))
f32 = DType("f32", Kind.FLOAT, 32, 23, float.fromhex("0x1.fffffep127"))
f64 = DType("f64", Kind.FLOAT, 64, 52, float.fromhex("0x1.fffffffffffffp1023"))
index = DType("index", Kind.INDEX, 64)

DTYPES: dict[str, DType] = {
    t.name: t
    for t in (
        *(bool_, i8, i16, i32, i64, u8, u16, u32, u64),
        *(f8e4m3, f8e5m2, f16, bf16, tf32, f32, f64, index),
    )
}


def promote(a: DType, b: DType) -> DType | None:
    """The type in which `a op b` is computed, as torch promotes; None when there is none.

    bool < integers < floats; of two floats the wider, of f16 with bf16 (and any two different
    8-bit or 16-bit floats) f32; u64 with a signed integer has none.
    """
    if a is b:
        return a
    if a.is_bool:
        return b
    if b.is_bool:
        return a
    if a.is_float and b.is_float:
        return _promote_floats(a, b)
    if a.is_float or b.is_float:
        return a if a.is_float else b
    return _promote_integers(a, b)


def _promote_floats(a: DType, b: DType) -> DType:
    wide, narrow = (a, b) if a.bits >= b.bits else (b, a)
    if wide is f64:
        return f64
    return wide if wide.bits > narrow.bits and wide is not tf32 else f32


def _promote_integers(a: DType, b: DType) -> DType | None:
    a, b = a.storage, b.storage
    if a.is_signed == b.is_signed:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned is u64:
        return None
    if signed.bits > unsigned.bits:
        return signed
    return {8: i16, 16: i32, 32: i64}[unsigned.bits]


def accumulator(dtype: DType) -> DType:
    """The type in which sum and prod accumulate terms of `dtype` unless told otherwise."""
    if dtype.is_float:
        return f64 if dtype is f64 else f32
    if dtype.is_bool or dtype.bits < 32:
        return u32 if dtype.kind is Kind.UNSIGNED else i32
    return dtype


def float_of(value: Scalar, dtype: DType) -> float:
    """The float of `dtype` nearest to a number, ties to even."""
    extra = value.bit_length() - 53 if isinstance(value, int) else 0
    if not isinstance(value, int) or extra <= 0 or dtype is f64:
        return round_float(float(value), dtype)
    # Rounding to the nearest double first could make a tie; a last bit that is set cannot be one.
    head = abs(value) >> extra
    inexact = abs(value) != head << extra
    return round_float(math.copysign((head | inexact) << extra, value), dtype)


def round_float(value: float, dtype: DType) -> float:
    """The float of `dtype` nearest to `value`, ties to even; f8 saturates, others go to inf."""
    if math.isnan(value):
        return math.nan  # one NaN, so that constants with and without a sign or payload are one
    if dtype is f64 or value == 0.0:
        return value
    if math.isinf(value):
        return math.copysign(dtype.largest, value) if dtype.bits == 8 else value
    smallest_exponent = math.frexp(dtype.largest)[1]
    # The exponent range is symmetric about 1 but for e4m3, which gives its top code to numbers.
    smallest_exponent = 2 - smallest_exponent + (dtype is f8e4m3)
    exponent = max(math.frexp(value)[1] - 1, smallest_exponent)
    quantum = math.ldexp(1.0, exponent - dtype.mantissa)
    rounded = round(value / quantum) * quantum
    if abs(rounded) > dtype.largest:
        return math.copysign(dtype.largest if dtype.bits == 8 else math.inf, value)
    return rounded or math.copysign(0.0, value)
