"""A region on a GPU once it has been called: results allocated as torch wants them, then launched.

The graph that was compiled is entered with tensors of one layout, so that a region of static shapes
sees the same layouts at every call.  What was checked by the first call is not looked at again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

from tensorlang.ir.types import Scalar
from tensorlang.kernel import Kernel
from tensorlang.torch.libraries import Tensor, torch

_address_of: Callable[[Tensor], int] = torch.Tensor.data_ptr
_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)
Layout = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]


@runtime_checkable
class ByAddress(Protocol):
    """What can compute again from addresses alone; False where it cannot now."""

    def again(self, pointers: tuple[int, ...], params: Mapping[str, Scalar]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Settled:
    """The calls to come of a kernel.

    Args:
        run: what launches it.
        device: the index of the GPU.
        layouts: shape, strides and dtype of each result.
    """

    run: ByAddress
    device: int
    layouts: tuple[Layout, ...]

    @staticmethod
    def of(
        kernel: Kernel, tensors: Sequence[Tensor], results: Sequence[Tensor]
    ) -> "Settled | None":
        """For tensors like these of a call, and what torch had of it; None off the GPU."""
        if not all(t.is_cuda for t in (*tensors, *results)):
            return None
        plan = kernel.plan_of(*tensors)
        # Results with gaps would be written as if they had none.
        is_dense = all(_is_dense(t) for t in results)
        if plan.views or not is_dense or not isinstance(plan.run, ByAddress):
            return None
        layouts = tuple((tuple(t.shape), t.stride(), t.dtype) for t in results)
        return Settled(plan.run, cast("int", results[0].device.index), layouts)

    def __call__(self, tensors: Sequence[Tensor]) -> list[Tensor] | None:
        """The results; None where the call has to go the long way."""
        if _current_device() != self.device:
            return None
        make: Any = torch._C._dynamo.guards._empty_strided_cuda
        made = [make(*layout) for layout in self.layouts]
        pointers = (*map(_address_of, tensors), *map(_address_of, made))
        return made if self.run.again(pointers, {}) else None


def _is_dense(tensor: Tensor) -> bool:
    """Whether its elements fill its memory."""
    return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
