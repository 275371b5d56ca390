"""The one adaptor for torch, NumPy and DLPack arrays.

A call may be given arrays of any library; a backend takes those of one, its carrier (NumPy or
torch).  Everything here is a view: no element is copied, but where a docstring says so.  torch is
imported only when a torch tensor was passed or the carrier is torch.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tensorlang.errors import ShapeError, TargetError
from tensorlang.ir.types import DTYPES, DType, bf16, f8e4m3, f8e5m2

Array: TypeAlias = Any  # of whichever library
Numpy: TypeAlias = npt.NDArray[Any]
# Any, or a type checker takes what passes isinstance for an array of unknown dtype.
_NDARRAY: Any = np.ndarray
Carrier: TypeAlias = Literal["numpy", "torch"]
View: TypeAlias = Callable[[Array], Array]
# Makes an uninitialised array, and the view of it that the carrier takes.
Allocator: TypeAlias = Callable[[], tuple[Array, Array]]

# dtypes that NumPy does not know by itself: the package ml_dtypes names them so.
_ML_DTYPES = {"bfloat16": bf16, "float8_e4m3fn": f8e4m3, "float8_e5m2": f8e5m2}
_ML_NAMES = {dtype: name for name, dtype in _ML_DTYPES.items()}
_KINDS = {"signed": "i", "unsigned": "u", "float": "f", "index": "i", "bool": "b"}
_NUMPY = {
    d: np.dtype(np.bool_) if d.is_bool else np.dtype(f"{_KINDS[d.kind.value]}{d.bits // 8}")
    for d in (d.storage for d in DTYPES.values())
    if d not in _ML_NAMES
}
_FROM_NUMPY = {numpy: d for d, numpy in _NUMPY.items()}
_NAMES = {
    d: _ML_NAMES.get(d) or np.dtype(numpy).name
    for d, numpy in (_NUMPY | dict.fromkeys(_ML_NAMES, np.dtype(np.uint8))).items()
}

# The types that have been seen to be torch's, so that a call need not ask again.
_TENSOR_TYPES: set[type] = set()

# NPY_ARRAY_ALIGNED and NPY_ARRAY_WRITEABLE; the other flags say nothing that strides do not.
_FLAGS = 0x0100 | 0x0400


# --- dtypes --------------------------------------------------------------------------------------


def dtype_of_numpy(dtype: np.dtype[Any]) -> DType | None:
    """The DType of NumPy's (or ml_dtypes') `dtype`; None for complex, text, swapped bytes, ..."""
    if dtype.type.__module__.startswith("ml_dtypes"):
        return _ML_DTYPES.get(dtype.name)
    return _FROM_NUMPY.get(dtype)


def storage_dtype(dtype: DType) -> np.dtype[Any]:
    """How NumPy carries a DType to a backend: bf16 as uint16 bits, f8 as uint8 bits."""
    dtype = dtype.storage
    return np.dtype(f"u{dtype.bits // 8}") if dtype in _ML_NAMES else _NUMPY[dtype]


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """NumPy's dtype for a user's array; bf16 and f8 are those of ml_dtypes.

    Raises: TargetError: dtype-needs-package.
    """
    dtype = dtype.storage
    if dtype not in _ML_NAMES:
        return _NUMPY[dtype]
    try:
        import ml_dtypes
    except ImportError:
        raise TargetError(
            "dtype-needs-package",
            f"NumPy has no array of {dtype}",
            why=f"{dtype} arrays of NumPy are those of the package ml_dtypes, which is not here",
            fix="pip install ml_dtypes, or pass torch tensors",
        ) from None
    return np.dtype(getattr(ml_dtypes, _ML_NAMES[dtype]))


def in_numpy(dtype: DType) -> bool:
    """Whether NumPy itself has the dtype; otherwise ml_dtypes has."""
    return dtype.storage not in _ML_NAMES


def library_name(dtype: DType) -> str:
    """What NumPy, ml_dtypes and torch call a dtype: float16, bfloat16, ..."""
    return _NAMES[dtype.storage]


def dtype_of_torch(dtype: Any) -> DType | None:
    """The DType of a torch.dtype; None for complex, quantized, ..."""
    name = str(dtype).removeprefix("torch.")
    return next((d for d, torch_name in _NAMES.items() if torch_name == name), None)


def torch_dtype(dtype: DType) -> Any:
    """The torch.dtype of a DType."""
    return getattr(_torch(), _NAMES[dtype.storage])


def _torch() -> Any:
    import torch

    return torch


# --- what an array is ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """What binding an array needs to know of it.

    Args:
        kind: "numpy", "torch", or the package of another DLPack producer.
        device: "cpu", "cuda:0", ...
        dtype: None where tensorlang has no such dtype; `dtype_name` is the library's own name.
        itemsize, steps: bytes of an element, and from one index to the next, a dimension.
        is_bare: the memory holds the values as they are, and nothing follows their use: not so for
            a tensor that is negated or requires a gradient.
        is_negated: the memory holds the negatives of the values.
        problem: why no backend can use this layout; empty if one can.
    """

    kind: str
    device: str
    dtype: DType | None
    dtype_name: str
    shape: tuple[int, ...]
    itemsize: int
    steps: tuple[int, ...]
    writable: bool
    is_bare: bool = True
    is_negated: bool = False
    problem: str = ""


def kind_of(value: object) -> str | None:
    """The library of an array: "numpy", "torch", another DLPack producer's package; else None."""
    if isinstance(value, _NDARRAY):
        return "numpy"
    if is_tensor(value):
        return "torch"
    # NumPy's scalars are no arrays, though they have many of an array's methods.
    if hasattr(type(value), "__dlpack__") and not isinstance(value, np.generic):
        return type(value).__module__.split(".")[0]
    return None


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor, without importing torch to see."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def signature_of(value: Array) -> tuple[Any, ...] | None:
    """What may differ between two calls, but the data: the key under which binding is cached.

    None: neither a NumPy array nor a torch tensor.
    """
    if type(value) in _TENSOR_TYPES:
        try:
            strides = value.stride()
        except RuntimeError:  # a layout without strides, which info_of reports
            strides = ()
        flags = value.requires_grad, value.is_neg(), value.layout
        return value.dtype, value.shape, strides, value.device, flags
    if isinstance(value, _NDARRAY):
        return value.dtype, value.shape, value.strides, value.flags.num & _FLAGS
    if is_tensor(value):
        _TENSOR_TYPES.add(type(value))  # pyright: ignore[reportUnknownArgumentType]
        return signature_of(value)
    return None


def device_of(value: Array) -> str:
    """The device on which an array of any kind lives: "cpu", "cuda:0", ..."""
    if isinstance(value, _NDARRAY):
        return "cpu"
    if is_tensor(value):
        return str(value.device)
    device_type, number = value.__dlpack_device__()
    # 3 is pinned memory of the host.
    names = {1: "cpu", 2: f"cuda:{number}", 3: "cpu"}
    return names.get(int(device_type), f"DLPack device {int(device_type)}:{number}")


def info_of(value: Array) -> ArrayInfo:
    """What binding needs to know of a NumPy array or torch tensor."""
    return _numpy_info(value) if isinstance(value, _NDARRAY) else _torch_info(value)


def _numpy_info(value: Numpy) -> ArrayInfo:
    dtype = dtype_of_numpy(value.dtype)
    stepping = [s for s, n in zip(value.strides, value.shape, strict=True) if n > 1]
    problem = ""
    if dtype is not None and any(s % value.itemsize for s in stepping):
        problem = f"its strides {value.strides} are not multiples of {value.itemsize} bytes"
    elif not value.flags.aligned:
        problem = f"its data does not start at a multiple of {value.itemsize} bytes"
    return ArrayInfo(
        kind="numpy",
        device="cpu",
        dtype=dtype,
        dtype_name=str(value.dtype),
        shape=value.shape,
        itemsize=value.itemsize,
        steps=value.strides,
        writable=bool(value.flags.writeable),
        problem=problem,
    )


def _torch_info(value: Any) -> ArrayInfo:
    strided = value.layout is _torch().strided
    problem = "" if strided else f"its layout is {value.layout}, not strided"
    if value.device.type == "meta":
        problem = "it is on the device 'meta' and has no data"
    return ArrayInfo(
        kind="torch",
        device=str(value.device),
        dtype=dtype_of_torch(value.dtype),
        dtype_name=str(value.dtype),
        shape=tuple(value.shape),
        itemsize=value.element_size(),
        steps=tuple(s * value.element_size() for s in value.stride()) if strided else (),
        writable=True,
        is_bare=not (value.requires_grad or value.is_neg()),
        is_negated=value.is_neg(),
        problem=problem,
    )


# --- views ---------------------------------------------------------------------------------------


def view_as(carrier: Carrier, info: ArrayInfo, dtype: DType) -> View | None:
    """How arrays like `info`, of a DType, become what a backend takes; None: they are so already.

    Copies: a torch tensor with the negative bit set, and, for torch, a NumPy array with negative
    strides, which torch does not have.
    """
    if carrier == "torch":
        if info.kind == "torch":
            return _bare_tensor if info.is_negated else None
        return _tensor_of_numpy(dtype, backwards=any(s < 0 for s in info.steps))
    bits = storage_dtype(dtype) if dtype in _ML_NAMES else None
    if info.kind == "torch":
        return _numpy_of_tensor(bits, info.is_bare)
    return None if bits is None else lambda array: array.view(bits)


def _bare_tensor(tensor: Any) -> Any:
    return tensor.detach().resolve_neg()


def _numpy_of_tensor(bits: np.dtype[Any] | None, is_bare: bool) -> View:
    if bits is not None:
        torch_bits = getattr(_torch(), bits.name)
        return lambda tensor: _bare_tensor(tensor).view(torch_bits).numpy()
    if is_bare:
        return lambda tensor: tensor.numpy()
    return lambda tensor: _bare_tensor(tensor).numpy()


def _tensor_of_numpy(dtype: DType, backwards: bool) -> View:
    bits, torch_type, from_numpy = storage_dtype(dtype), torch_dtype(dtype), _torch().from_numpy

    def view(array: Numpy) -> Any:
        array = array.view(bits)
        if backwards:
            array = np.ascontiguousarray(array)
        return from_numpy(np.asarray(_Writable(array))).view(torch_type)

    return view


class _Writable:
    """The memory of an array, said to be writable: torch warns of read-only Inputs otherwise."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, array: Numpy) -> None:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__, self._owner = interface, array


# --- outputs -------------------------------------------------------------------------------------


def allocator(
    carrier: Carrier, kind: str, device: str, dtype: DType, shape: tuple[int, ...]
) -> Allocator:
    """What makes the arrays of an output.

    Args: kind: "numpy" or "torch"; device: where a tensor is to live.
    """
    if kind == "torch":
        return _tensor_allocator(carrier, device, dtype, shape)
    numpy, bits = numpy_dtype(dtype), storage_dtype(dtype)
    if carrier == "torch":
        view = _tensor_of_numpy(dtype, backwards=False)

        def shared() -> tuple[Array, Array]:
            array = np.empty(shape, numpy)
            return array, view(array)

        return shared
    if numpy == bits:

        def plain() -> tuple[Array, Array]:
            array = np.empty(shape, numpy)
            return array, array

        return plain

    def viewed() -> tuple[Array, Array]:
        array = np.empty(shape, bits)
        return array.view(numpy), array

    return viewed


def _tensor_allocator(
    carrier: Carrier, device: str, dtype: DType, shape: tuple[int, ...]
) -> Allocator:
    torch_type = torch_dtype(dtype)
    if carrier == "torch" and device.startswith("cuda"):
        return _gpu_allocator(device, torch_type, shape)
    if carrier == "torch":
        empty, place = _torch().empty, _torch().device(device)

        def on_device() -> tuple[Array, Array]:
            tensor = empty(shape, dtype=torch_type, device=place)
            return tensor, tensor

        return on_device
    from_numpy, bits = _torch().from_numpy, storage_dtype(dtype)

    # NumPy allocates in a quarter of the time.
    def on_cpu() -> tuple[Array, Array]:
        array = np.empty(shape, bits)
        return from_numpy(array).view(torch_type), array

    return on_cpu


def _gpu_allocator(device: str, torch_type: Any, shape: tuple[int, ...]) -> Allocator:
    """Like `torch.empty`, without its dispatcher while the device is the current one."""
    torch = _torch()
    place = torch.device(device)
    index = place.index
    strides = torch.empty(shape, device="meta").stride()
    empty, current = torch.empty, torch._C._cuda_getDevice
    here = torch._C._dynamo.guards._empty_strided_cuda

    def on_gpu() -> tuple[Array, Array]:
        if current() == index:
            tensor = here(shape, strides, torch_type)
        else:
            tensor = empty(shape, dtype=torch_type, device=place)
        return tensor, tensor

    return on_gpu


def default_device(carrier: Carrier) -> str:
    """Where outputs go when no array was passed: the GPU for torch where there is one."""
    return "cuda:0" if carrier == "torch" and _torch().cuda.is_available() else "cpu"


# --- other libraries, by DLPack ------------------------------------------------------------------


def borrow(value: Array, dtypes: set[DType], carrier: Carrier) -> Array:
    """A DLPack producer's array as one of NumPy, or of torch where NumPy lacks a dtype.

    Args: dtypes: all that the call has, so that every array goes to the same library.
    Raises: ShapeError: dlpack-refused.
    """
    to_torch = carrier == "torch" or not dtypes.isdisjoint(_ML_NAMES)
    take: Callable[[Array], Array] = _torch().from_dlpack if to_torch else np.from_dlpack
    try:
        return take(value)
    except (BufferError, RuntimeError, TypeError) as error:
        raise ShapeError(
            "dlpack-refused",
            f"{'torch' if to_torch else 'NumPy'} cannot take a {type(value).__name__} by DLPack",
            why=str(error),
            fix="pass an array of NumPy or torch",
        ) from error


def give_back(result: Array, like: Array) -> Array:
    """A NumPy array or tensor as one of the library of `like`; itself if that takes no DLPack."""
    namespace: Any = getattr(like, "__array_namespace__", None)
    if namespace is not None:
        return namespace().from_dlpack(result)
    package = type(like).__module__
    while package:
        take = getattr(sys.modules.get(package), "from_dlpack", None)
        if take is not None:
            return take(result)
        package = package.rpartition(".")[0]
    return result
