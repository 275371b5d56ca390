"""Arrays as descriptors are made of them: address, shape and strides, that of unit stride last."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from tensorlang.backends.triton.tiles import Box


class Address(int):
    """Where an array begins; Triton asks tensors for it."""

    def data_ptr(self) -> int:
        return self


@dataclass(frozen=True, slots=True)
class TensorMap:
    """What Triton makes a descriptor of.  See: its tools.tensor_descriptor.TensorDescriptor."""

    base: Address
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: str = "zero"
    round_f32_to_tf32: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """Shape and strides (in elements) in a box's order of dimensions."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @staticmethod
    def of(tensor: Any, box: Box) -> "Layout":
        shape, strides = tensor.shape, tensor.stride()
        return Layout(tuple([shape[d] for d in box.dims]), tuple([strides[d] for d in box.dims]))

    def at(self, address: int) -> TensorMap:
        """The array of this layout at an address."""
        return TensorMap(Address(address), self.shape, self.strides)


# By position among the tensors of a launch.
Layouts: TypeAlias = tuple[tuple[int, Layout], ...]
