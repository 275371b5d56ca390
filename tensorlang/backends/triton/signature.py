"""What a compiled kernel may assume of its arguments, and what it is called with.

Two calls share a compiled kernel when their `Key`s are equal: alignment of pointers, which strides
are 1, what is divisible by 16, the extents of symbolic lanes, and whether indices need 64 bits.
Sizes themselves are no part of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton.dialect import SIGNATURE_DTYPES
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.libraries import tl
from tensorlang.ir.types import DType

_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Key:
    """One specialisation of a kernel.

    Args:
        divisible: for each pointer, scalar and stride, whether it is a multiple of 16.
        unit: for each stride, whether it is 1.
        extents: of symbolic lanes, powers of two.
        wide: whether indices are held in 64 bits.
    """

    divisible: tuple[bool, ...]
    unit: tuple[bool, ...]
    extents: tuple[int, ...]
    wide: bool


def usual(text: KernelText, extent: int) -> Key:
    """What calls mostly bring: aligned pointers, multiples of 16, last strides of 1."""
    unit = tuple(dim == memory.rank - 1 for _, memory, _, dim in text.strides)
    scalars = tuple(dtype.name == "index" for _, _, dtype in text.scalars)
    divisible = (True,) * len(text.pointers) + scalars + tuple(not u for u in unit)
    return Key(divisible, unit, (extent,) * len(text.extents), wide=False)


def signature(text: KernelText, key: Key) -> dict[str, str]:
    """The Triton type of every parameter; "constexpr" for those that the key fixes."""
    integer = "i64" if key.wide else "i32"
    made = {
        name: "*" + SIGNATURE_DTYPES[memory.dtypes[component].name]
        for name, memory, component in text.pointers
    }
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


def hints(text: KernelText, key: Key) -> dict[tuple[int, ...], list[list[Any]]]:
    """Divisibility by 16, by the position of the parameter."""
    flags = [*key.divisible]
    return {
        (position,): [["tt.divisibility", _ALIGNMENT]]
        for position, flag in enumerate(flags)
        if flag
    }


def divisible(
    pointers: Sequence[int], scalars: Sequence[Any], strides: Sequence[int]
) -> tuple[bool, ...]:
    """Which arguments are multiples of 16; a stride of 1 is fixed and needs no hint."""
    return (
        *(p % _ALIGNMENT == 0 for p in pointers),
        *(type(s) is int and s % _ALIGNMENT == 0 for s in scalars),
        *(s % _ALIGNMENT == 0 for s in strides),
    )


def named(text: KernelText, values: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters."""
    return [values[name] for name in text.parameters]
