"""What values are in C: an element type and a number of lanes.

A value is *carried* as one element and *stored* as another where C has no such type: f16, bf16,
tf32 and the f8s are carried as floats that are values of that dtype; bools are carried as `bool` in
scalar code and as masks (integers, all bits or none) in vector code, and stored as bytes.
"""

from dataclasses import dataclass

from tensorlang.ir.types import DType

SCALARS = {
    "bool": "bool",
    "i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t",
    "u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t",
    "f32": "float", "f64": "double",
}  # fmt: skip
_CARRIED = {
    "index": "i64",
    "tf32": "f32",
    "f16": "f32",
    "bf16": "f32",
    "f8e4m3": "f32",
    "f8e5m2": "f32",
}
_STORED = {
    "index": "i64", "tf32": "f32", "f16": "u16", "bf16": "u16", "f8e4m3": "u8", "f8e5m2": "u8",
    "bool": "u8",
}  # fmt: skip
# Carried as an f32 that is rounded after every inexact operation.
ROUNDED = ("f16", "bf16", "tf32", "f8e4m3", "f8e5m2")


@dataclass(frozen=True, slots=True)
class CType:
    """`lanes` elements; one lane is a scalar."""

    element: str
    lanes: int = 1

    @property
    def name(self) -> str:
        """As declarations name it: float, f32x8."""
        return SCALARS[self.element] if self.lanes == 1 else self.tag

    @property
    def tag(self) -> str:
        """As the names of helpers end: f32, f32x8."""
        return self.element if self.lanes == 1 else f"{self.element}x{self.lanes}"

    @property
    def bits(self) -> int:
        """Of one lane."""
        return 8 if self.element == "bool" else int(self.element[1:])

    @property
    def bytes(self) -> int:
        """Of all lanes."""
        return self.bits // 8 * self.lanes

    @property
    def is_float(self) -> bool:
        return self.element in ("f32", "f64")

    @property
    def is_signed(self) -> bool:
        return self.element[0] == "i"

    @property
    def mask(self) -> "CType":
        """What a comparison of two such vectors gives."""
        return CType(f"i{self.bits}", self.lanes)

    @property
    def unsigned(self) -> "CType":
        """The unsigned integers of that width."""
        return CType(f"u{self.bits}", self.lanes)

    @property
    def scalar(self) -> "CType":
        """One of its lanes."""
        return CType(self.element)

    def of(self, lanes: int) -> "CType":
        """That many of its elements."""
        return CType(self.element, lanes)


def carried(dtype: DType, lanes: int = 1) -> CType:
    """How a value of `dtype` is carried (a bool in vector code is a mask instead)."""
    return CType(_CARRIED.get(dtype.name, dtype.name), lanes)


def stored(dtype: DType, lanes: int = 1) -> CType:
    """How an array holds a value of `dtype`."""
    return CType(_STORED.get(dtype.name, dtype.name), lanes)


def is_rounded(dtype: DType) -> bool:
    """Whether inexact results are rounded again after they are computed in f32."""
    return dtype.name in ROUNDED
