"""Interpreted kernels touch their arrays and nothing else.

Triton's interpreter reads and writes at any address that it is given.  A fault of ours would change
what belongs to others in the process, and show itself long after; here it is an error at once.
"""

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tensorlang.backends.triton.libraries import interpreter
from tensorlang.errors import InternalError

# Where each of the interpreter's accesses has its pointers, and its mask if it has one.
_ACCESSES: dict[str, tuple[int, int | None]] = {
    "create_masked_load": (0, 1),
    "create_masked_store": (0, 2),
    "create_atomic_rmw": (1, 3),
    "create_atomic_cas": (0, None),
}


@contextmanager
def bounded(tensors: Iterable[Any]) -> Generator[None]:
    """While it holds, an access outside the memory of the tensors is an InternalError."""
    builder: Any = interpreter.interpreter_builder
    starts, ends = _memory_of(tensors)
    for name, places in _ACCESSES.items():
        access = getattr(builder, name)
        setattr(builder, name, partial(_checked, access, places, starts, ends))
    try:
        yield
    finally:
        for name in _ACCESSES:
            delattr(builder, name)


def _memory_of(tensors: Iterable[Any]) -> tuple[Any, Any]:
    """The first byte of each stretch of memory, in ascending order, and the first behind it."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    stretches = [(0, 0)]
    for start, end in sorted((s.data_ptr(), s.data_ptr() + s.nbytes()) for s in storages):
        last_start, last_end = stretches[-1]
        if start < last_end:
            stretches[-1] = last_start, max(end, last_end)
        else:
            stretches.append((start, end))
    pairs = np.array(stretches, dtype=np.uint64)
    return pairs[:, 0], pairs[:, 1]


def _checked(
    access: Callable[..., Any],
    places: tuple[int, int | None],
    starts: Any,
    ends: Any,
    *arguments: Any,
    **options: Any,
) -> Any:
    pointers = arguments[places[0]]
    addresses = pointers.data
    if places[1] is not None:
        mask = arguments[places[1]].data.astype(np.bool_)
        addresses = addresses[np.broadcast_to(mask, addresses.shape)]
    size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
    inside = addresses + np.uint64(size) <= ends[np.searchsorted(starts, addresses, "right") - 1]
    if not inside.all():
        wrong = addresses[~inside][0]
        raise InternalError(f"a kernel touches memory at {wrong:#x}, which is no array of it")
    return access(*arguments, **options)
