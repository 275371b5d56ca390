"""Memory that may not be touched, before and behind the arrays of a call of C.

What reads or writes past an array ends the process there and then.  C that writes back what it has
read there gives the right numbers nearly always, and takes from another thread what it wrote since.
"""

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from numpy.lib.array_utils import byte_bounds

from tensorlang.backends.c.executable import CExecutable
from tensorlang.backends.executable import Run
from tensorlang.ir.types import Scalar

_PROTECT = ctypes.CDLL(None, use_errno=True).mprotect
_PROTECT.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PAGE = mmap.PAGESIZE


def walled(array: np.ndarray, *, behind: bool) -> np.ndarray:
    """A copy laid out in the same way; its memory ends at a wall, or else it begins behind one."""
    low, high = byte_bounds(array) if array.size else (0, 0)
    room = -(-max(high - low, 1) // _PAGE) * _PAGE
    memory = mmap.mmap(-1, room + _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert _PROTECT(start + room if behind else start, _PAGE, 0) == 0
    first = room - (high - low) if behind else _PAGE
    if array.size:
        first += array.__array_interface__["data"][0] - low
    made = np.ndarray(array.shape, array.dtype, memory, first, array.strides)
    made[...] = array
    return made


def put_walls(patch: pytest.MonkeyPatch) -> list[CExecutable]:
    """Until the patch is undone, what C computes it computes twice: with walls behind, and before.

    Outputs that are Inputs as well stay where they are.

    Returns: what has run between walls, once for each call.
    """
    shipped = CExecutable.prepare
    found: list[CExecutable] = []

    def prepare(self: CExecutable, sizes: Mapping[str, int], device: str = "cpu") -> Run:
        run = shipped(self, sizes, device)

        def between_walls(
            params: Mapping[str, Scalar],
            inputs: Sequence[np.ndarray],
            outputs: Sequence[np.ndarray],
        ) -> None:
            if any(np.shares_memory(a, b) for a, b in product(inputs, outputs)):
                run(params, inputs, outputs)
                return
            found.append(self)
            for behind in (True, False):
                read = [walled(a, behind=behind) for a in inputs]
                written = [walled(a, behind=behind) for a in outputs]
                run(params, read, written)
            for output, last in zip(outputs, written, strict=True):
                output[...] = last

        return between_walls

    patch.setattr(CExecutable, "prepare", prepare)
    return found
