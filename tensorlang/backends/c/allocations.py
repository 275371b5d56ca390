"""Buffers that a program allocates: on the stack where they are small, else from the heap."""

from functools import reduce
from math import prod

from tensorlang.backends.c.context import Scope, Unit
from tensorlang.backends.c.expressions import Expressions
from tensorlang.backends.c.rewriting import larger, quotient, times, total
from tensorlang.backends.c.storage import Storage, product_of
from tensorlang.backends.c.types import stored
from tensorlang.ir.expr import Const, Expr, Var
from tensorlang.ir.linear import integer
from tensorlang.ir.stmt import Buffer

# Larger buffers come from the heap: a thread may have as little as half a megabyte of stack.
_MOST_ON_STACK = 64 << 10


class Allocations:
    """Declares buffers, and lays them out row by row."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._code = unit.code

    def _scalar(self, e: Expr, scope: Scope) -> str:
        return Expressions(self._unit, scope).scalar(e)

    def laid_out(self, buffer: Buffer, scope: Scope) -> Storage:
        """Where its elements would be."""
        return self._laid_out(buffer, _extents(buffer), scope)

    def on_stack(self, buffer: Buffer, scope: Scope) -> None:
        """Declare arrays of constant length, one a component."""
        extents = _extents(buffer)
        storage = self._laid_out(buffer, extents, scope)
        count = max(1, _constant_count(extents) or 0)
        for pointer, dtype in zip(storage.pointers, buffer.dtypes, strict=True):
            element = stored(dtype).name
            self._code.line(f"{element} {pointer}[{count}] __attribute__((aligned(64)));")

    def on_heap(self, buffer: Buffer, scope: Scope, *, declare: bool) -> tuple[str, ...]:
        """Ask for room, and give the pointers, which are NULL where there is none."""
        extents = _extents(buffer)
        storage = self._laid_out(buffer, extents, scope)
        count = reduce(product_of, (larger(extent, integer(0)) for extent in extents), integer(1))
        size = self._scalar(count, scope)
        for pointer, dtype in zip(storage.pointers, buffer.dtypes, strict=True):
            element = stored(dtype)
            function = self._unit.prelude.helper("workspace", element)
            type_name = f"{element.name} *restrict " if declare else ""
            self._code.line(f"{type_name}{pointer} = {function}({size});")
        return storage.pointers

    def _laid_out(self, buffer: Buffer, extents: list[Expr], scope: Scope) -> Storage:
        """Row by row, the last dimension contiguous."""
        strides: list[Expr] = [integer(1)]
        for k in reversed(range(1, len(extents))):
            inner, extent = strides[0], extents[k]
            stride = product_of(
                inner, larger(extent, integer(0)) if _is_constant(extent) else extent
            )
            if not isinstance(stride, Const):
                name = f"{buffer.name}.stride{k - 1}"
                text = self._scalar(stride, scope)
                self._code.line(f"const int64_t {self._unit.names[name]} = {text};")
                stride = Var(name)
            strides.insert(0, stride)
        base = self._unit.names[buffer.name]
        several = len(buffer.dtypes) > 1
        storage = Storage(
            tuple(
                self._unit.names.fresh(f"{base}_{k}") if several else base
                for k in range(len(buffer.dtypes))
            ),
            buffer.dtypes,
            tuple(dim.min for dim in buffer.dims),
            (tuple(strides[: len(extents)]),) * len(buffer.dtypes),
            buffer.fold,
        )
        self._unit.storages[buffer.name] = storage
        return storage


def _extents(buffer: Buffer) -> list[Expr]:
    """Elements in each dimension; of a folded one those of its ring; padded where that is asked."""
    folds = buffer.fold or (0,) * len(buffer.dims)
    extents = [
        integer(fold) if fold else dim.extent for dim, fold in zip(buffer.dims, folds, strict=True)
    ]
    for hint, multiple in buffer.hints:
        if hint.startswith("align") and isinstance(multiple, int):
            k = int(hint.removeprefix("align"))
            extents[k] = times(
                quotient(total(extents[k], integer(multiple - 1)), multiple), multiple
            )
    return extents


def is_small(buffer: Buffer) -> bool:
    """Whether the buffer may lie on a thread's stack."""
    count = _constant_count(_extents(buffer))
    bits = max(stored(dtype).bits for dtype in buffer.dtypes)
    return count is not None and count * bits // 8 <= _MOST_ON_STACK


def _is_constant(e: Expr) -> bool:
    return isinstance(e, Const)


def _constant_count(extents: list[Expr]) -> int | None:
    """How many elements, where that is known."""
    sizes = [max(0, int(e.value)) for e in extents if isinstance(e, Const)]
    return prod(sizes) if len(sizes) == len(extents) else None
