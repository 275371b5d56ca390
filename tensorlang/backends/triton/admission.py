"""Which arrays of a call a descriptor may reach: decided from shapes, strides and addresses."""

from collections.abc import Hashable, Sequence
from typing import Any

from tensorlang.backends.triton.descriptors import ALIGNMENT, fits, wanted
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.variants import Described


class Admission:
    """For one kernel: the arrays for which its schedule asks for descriptors."""

    def __init__(self, text: KernelText) -> None:
        places = [(memory, component) for _, memory, component in text.pointers]
        # Position among the tensors, and bits of an element, by pointer.
        self.arrays = {
            memory.pointer(component): (
                places.index((memory, component)),
                memory.dtypes[component].bits,
            )
            for memory, component in wanted(text.kernel)
        }
        # What calls so far have reached by pointers, and why.
        self.notes: dict[str, None] = {}

    def layout(self, tensors: Sequence[Any]) -> tuple[Hashable, ...]:
        """What decides, of the tensors of a call; nothing where no descriptor is asked for."""
        if not self.arrays:
            return ()
        return tuple([(t.stride(), t.data_ptr() % ALIGNMENT) for t in tensors])

    def described(self, tensors: Sequence[Any]) -> frozenset[Described]:
        """The arrays whose addresses and strides a descriptor takes."""
        found: set[Described] = set()
        for pointer, (position, bits) in self.arrays.items():
            t = tensors[position]
            shape, strides = tuple(t.shape), t.stride()
            units = [dim for dim in range(len(shape)) if fits(shape, strides, dim, bits)]
            if units and t.data_ptr() % ALIGNMENT == 0:
                found.add(Described(pointer, units[-1]))
            else:
                self._note(
                    pointer,
                    f"one stride has to be 1, the others, here of {strides}, and the address "
                    f"multiples of {ALIGNMENT} bytes",
                )
        return frozenset(found)

    def too_small(
        self, described: frozenset[Described], text: KernelText, tensors: Sequence[Any]
    ) -> frozenset[Described]:
        """Those of `described` that are smaller than their boxes in a text."""
        small: set[str] = set()
        for box in text.kernel.boxes:
            pointer = box.memory.pointer(box.component)
            shape = tensors[self.arrays[pointer][0]].shape
            if any(shape[dim] < extent for dim, extent in zip(box.dims, box.shape, strict=True)):
                small.add(pointer)
                self._note(pointer, f"its shape {tuple(shape)} is less than a box of {box.shape}")
        return frozenset(a for a in described if a.pointer in small)

    def _note(self, pointer: str, why: str) -> None:
        self.notes[f"a call reached '{pointer}' by pointers, not through a descriptor: {why}"] = (
            None
        )
