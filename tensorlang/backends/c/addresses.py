"""The address of a NumPy array's first element.

`array.__array_interface__` builds a dict on each use, which takes longer than a small kernel.
CPython's NumPy has kept the address right behind the object's header in every version so far; it is
read from there where a trial agrees.
"""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_HEADER = object.__basicsize__
_word_at = ctypes.c_size_t.from_address


def _asked(array: Any) -> int:
    return array.__array_interface__["data"][0]


def _read(array: Any) -> int:
    return _word_at(id(array) + _HEADER).value


def _choose() -> Callable[[Any], int]:
    if sys.implementation.name != "cpython":
        return _asked
    whole = np.zeros(5)
    samples = (whole, whole[2:], whole[::-1], np.broadcast_to(whole, (3, 5)))
    return _read if all(_read(a) == _asked(a) for a in samples) else _asked


address_of = _choose()
