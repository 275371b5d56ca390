"""Nodes: frozen, slotted, and interned, so that two equal ones are one object."""

import struct
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar, dataclass_transform
from weakref import WeakValueDictionary

from tensorlang.errors import DefinitionError
from tensorlang.ir.conversion import convert

_C = TypeVar("_C", bound=type)
_interned: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


class Interning(type):
    """Makes equal nodes one object."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        if named or len(args) < len(cls.__dict__["parts"]):
            args = _positional(cls, args, named)
        if cls.__dict__.get("by_bits"):
            # As the dtype holds it, so that 0.1 and the f32 nearest to it make one constant.
            value, dtype = args
            args = (convert(value, dtype), dtype)
            key = (cls, *map(_key, args))
        else:
            key = (cls, *args)
        try:
            found = _interned.get(key)
        except TypeError:
            raise not_an_operand(next((a for a in args if not a.__hash__), args)) from None
        if found is None:
            found = _interned.setdefault(key, super().__call__(*args))
        return found


def _positional(cls: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    rest = zip(cls.parts[len(args) :], cls.defaults[len(args) :], strict=True)
    return (*args, *[named.get(name, default) for name, default in rest])


def _key(value: Any) -> Any:
    # 1, 1.0 and True are equal to Python, NaN is not equal to itself, and 0.0 == -0.0.
    if isinstance(value, float):
        return struct.pack("<d", value)
    return (type(value), value)


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: _C) -> _C:
    """A frozen, slotted dataclass whose equality is identity."""
    decorate: Callable[[Any], Any] = dataclass(frozen=True, slots=True, eq=False, repr=False)
    made = decorate(cls)
    given = [f for f in fields(made) if f.init]
    made.parts, made.defaults = tuple(f.name for f in given), tuple(f.default for f in given)
    return made


def not_an_operand(value: object) -> DefinitionError:
    """The error for what is of no use in an expression."""
    kind = type(value).__name__
    return DefinitionError(
        "not-an-expression",
        f"a value of type {kind} cannot stand in an expression",
        why="expressions are built from Vars, Sizes, Params, indexed Funcs and Inputs, and numbers",
        fix="index a Func or an Input as f[i, j]; give arrays as Inputs, and numbers as Params",
    )
