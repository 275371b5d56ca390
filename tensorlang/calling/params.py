"""The Params and Sizes that a call gives by name."""

import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from tensorlang.calling.signature import Signature
from tensorlang.errors import ShapeError
from tensorlang.ir.expr import Param
from tensorlang.ir.types import Scalar, round_float

# Any, or a type checker takes what passes isinstance for a scalar of unknown type.
_NUMPY_SCALAR: Any = np.generic
_WHOLE: Any = (int, np.integer)


def bind_params(signature: Signature, given: Mapping[str, Any]) -> dict[str, Scalar]:
    """Every Param's value, rounded to its dtype.

    Raises: ShapeError: unknown-param, missing-param, param-dtype, param-out-of-range.
    """
    names = [p.name for p in signature.params]
    for name in given:
        if name not in names:
            raise _unknown_param(name, signature)
    missing = [p for p in signature.params if p.name not in given]
    if missing:
        raise ShapeError(
            "missing-param",
            f"'{signature.name}' needs a value for the Param '{missing[0].name}'",
            why=f"it is {missing[0].dtype} of {signature}",
            fix=f"pass {missing[0].name}=...",
        )
    return {p.name: _value(p, given[p.name], signature) for p in signature.params}


def _value(param: Param, value: Any, signature: Signature) -> Scalar:
    if isinstance(value, _NUMPY_SCALAR):
        value = value.item()
    dtype = param.dtype
    wanted = (bool,) if dtype.is_bool else (int, float) if dtype.is_float else (int,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and not dtype.is_bool):
        raise ShapeError(
            "param-dtype",
            f"{param.name}={value!r} is no value for the Param '{param.name}' of {dtype}",
            why=f"'{signature.name}' takes a Python {' or '.join(t.__name__ for t in wanted)} "
            f"(or a NumPy scalar) there, and {type(value).__name__} is not converted silently",
            fix=_conversion(wanted[-1], value),
        )
    if isinstance(value, bool):
        return value
    if dtype.is_float:
        return _rounded(param, value)
    if not dtype.lowest <= value <= dtype.highest:
        raise _out_of_range(param, value, f"{dtype} holds {dtype.lowest} to {dtype.highest}")
    return value


def _conversion(wanted: type, value: Any) -> str:
    if hasattr(value, "item"):
        return "pass the number: value.item()"
    return f"pass {wanted.__name__}(...)" if isinstance(value, (int, float)) else "pass a number"


def _rounded(param: Param, value: float) -> float:
    """The value nearest to `value`; a finite one must not become infinite."""
    dtype = param.dtype
    limit = f"{dtype} holds at most {dtype.largest:g} in magnitude"
    try:
        exact = float(value)
    except OverflowError:
        raise _out_of_range(param, value, limit) from None
    rounded = round_float(exact, dtype)
    # f8 has no infinity to round to and saturates.
    if math.isfinite(exact) and (math.isinf(rounded) or abs(exact) > 2 * dtype.largest):
        raise _out_of_range(param, value, limit)
    return rounded


def _out_of_range(param: Param, value: float, limit: str) -> ShapeError:
    return ShapeError(
        "param-out-of-range",
        f"{param.name}={value} does not fit the Param '{param.name}' of {param.dtype}",
        why=limit,
        fix="pass a smaller number, or define the Param with a wider dtype",
    )


def _unknown_param(name: str, signature: Signature) -> ShapeError:
    names = [p.name for p in signature.params]
    if name in {a.name for a in signature.inputs}:
        why, fix = f"'{name}' is an Input, and arrays are passed by position", "pass it unnamed"
    elif name in signature.sizes:
        why, fix = f"'{name}' is a Size", f'sizes={{"{name}": ...}}'
    else:
        why = f"its Params are {_listed(names)}" if names else "it has no Params"
        fix = _suggestion(name, names)
    return ShapeError(
        "unknown-param", f"'{signature.name}' has no Param '{name}'", why=why, fix=fix
    )


def bind_sizes(signature: Signature, given: Mapping[Any, Any]) -> dict[str, int]:
    """The Sizes that the call gives, by name or by Size.

    Raises: ShapeError: unknown-size, size-value.
    """
    bound: dict[str, int] = {}
    if not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(
            "size-value",
            f"sizes={given!r} of '{signature.name}' is no mapping",
            why="it gives Sizes by name",
            fix='sizes={"N": 16}',
        )
    for key, value in given.items():
        name = str(key)
        if name not in signature.sizes:
            sizes = signature.sizes
            raise ShapeError(
                "unknown-size",
                f"'{signature.name}' has no Size '{name}'",
                why=f"its Sizes are {_listed(sizes)}" if sizes else "it has no Sizes",
                fix=_suggestion(name, sizes),
            )
        if not isinstance(value, _WHOLE) or isinstance(value, bool) or value < 0:
            raise ShapeError(
                "size-value",
                f"{value!r} is no value for the Size '{name}' of '{signature.name}'",
                why="a Size is a whole number of elements, >= 0",
                fix=f'pass an int: sizes={{"{name}": 16}}',
            )
        bound[name] = int(value)
    return bound


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)


def _suggestion(name: str, names: Iterable[str]) -> str:
    by_lower = {n.lower(): n for n in names}
    close = get_close_matches(name.lower(), list(by_lower), n=1)
    return f"did you mean '{by_lower[close[0]]}'?" if close else f"leave '{name}' out"
