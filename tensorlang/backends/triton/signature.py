"""What a compiled kernel may assume of its arguments, and what it is called with.

Two calls share a compiled kernel when their `Key`s are equal: alignment of pointers, which strides
are 1, what is divisible by 16, 8 or 4, the extents of symbolic lanes, and whether indices need 64
bits.  Divisibility decides how wide loads are, also that of the sizes in masks.
Sizes themselves are no part of it.
"""

from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton.dialect import SIGNATURE_DTYPES
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.libraries import tl
from tensorlang.ir.types import DType

# The divisors that make a difference: 16 bytes are the widest load.
_DIVISORS = (16, 8, 4)


@dataclass(frozen=True, slots=True)
class Key:
    """One specialisation of a kernel.

    Args:
        divisors: for each pointer, scalar and stride, the largest of 16, 8, 4 and 1 dividing it.
        unit: for each stride, whether it is 1.
        extents: of symbolic lanes, powers of two.
        wide: whether indices are held in 64 bits.
    """

    divisors: tuple[int, ...]
    unit: tuple[bool, ...]
    extents: tuple[int, ...]
    wide: bool


def usual(text: KernelText, extent: int) -> Key:
    """What calls mostly bring: aligned pointers, multiples of 16, last strides of 1."""
    unit = tuple(dim == memory.rank - 1 for _, memory, _, dim in text.strides)
    scalars = tuple(16 if dtype.name == "index" else 1 for _, _, dtype in text.scalars)
    strides = tuple(1 if one else 16 for one in unit)
    pointers = tuple(1 if row[0] in text.boxes else 16 for row in text.pointers)
    divisors = pointers + scalars + strides
    return Key(divisors, unit, (extent,) * len(text.extents), wide=False)


def signature(text: KernelText, key: Key) -> dict[str, str]:
    """The Triton type of every parameter; "constexpr" for those that the key fixes."""
    integer = "i64" if key.wide else "i32"
    made: dict[str, str] = {}
    for name, memory, component in text.pointers:
        dtype, box = SIGNATURE_DTYPES[memory.dtypes[component].name], text.boxes.get(name)
        made[name] = f"*{dtype}" if box is None else f"tensordesc<{dtype}{list(box.shape)}>"
    for name, _, dtype in text.scalars:
        made[name] = integer if dtype.name == "index" else scalar_type(dtype)
    for (name, *_), unit in zip(text.strides, key.unit, strict=True):
        made[name] = "constexpr" if unit else integer
    for name, *_ in text.extents:
        made[name] = "constexpr"
    made["INDEX"] = "constexpr"
    return made


def scalar_type(dtype: DType) -> str:
    """Narrow floats are passed as f32, which holds them."""
    narrow = dtype.is_float and dtype.bits < 64
    return "fp32" if narrow else SIGNATURE_DTYPES[dtype.name]


def constants(text: KernelText, key: Key) -> dict[str, Any]:
    """The values of the parameters that the key fixes."""
    made: dict[str, Any] = {
        name: 1 for (name, *_), unit in zip(text.strides, key.unit, strict=True) if unit
    }
    made |= {name: e for (name, *_), e in zip(text.extents, key.extents, strict=True)}
    made["INDEX"] = tl.int64 if key.wide else tl.int32
    return made


def hints(key: Key) -> dict[tuple[int, ...], list[list[Any]]]:
    """Divisors, by the position of the parameter."""
    return {
        (position,): [["tt.divisibility", divisor]]
        for position, divisor in enumerate(key.divisors)
        if divisor > 1
    }


def divisor_of(value: Any) -> int:
    """The largest of 16, 8, 4 and 1 that divides an argument; 1 for what is no int."""
    if type(value) is not int:
        return 1
    return next((d for d in _DIVISORS if value % d == 0), 1)
