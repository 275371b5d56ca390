"""Arrays of NumPy, torch and DLPack: what they are, and how a backend sees them."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from tensorlang import arrays
from tensorlang.errors import ShapeError, TargetError
from tensorlang.ir.types import (
    DTYPES,
    bf16,
    bool_,
    f8e4m3,
    f8e5m2,
    f16,
    f32,
    f64,
    i8,
    i64,
    index,
    tf32,
    u16,
    u64,
)

torch = pytest.importorskip("torch")

BITS = (bf16, f8e4m3, f8e5m2)
STORED = [d for d in DTYPES.values() if d.storage is d]


class Foreign:
    """An array of a library that only speaks DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def numpy_view(array, dtype):
    view = arrays.view_as("numpy", arrays.info_of(array), dtype)
    return array if view is None else view(array)


def torch_view(array, dtype):
    view = arrays.view_as("torch", arrays.info_of(array), dtype)
    return array if view is None else view(array)


# --- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_dtypes_map_to_numpy_and_back(dtype):
    assert arrays.dtype_of_numpy(arrays.numpy_dtype(dtype)) is dtype
    assert arrays.numpy_dtype(dtype).itemsize * 8 == dtype.bits
    assert arrays.numpy_dtype(dtype).name == arrays.library_name(dtype)


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_dtypes_map_to_torch_and_back(dtype):
    assert arrays.dtype_of_torch(arrays.torch_dtype(dtype)) is dtype
    assert arrays.torch_dtype(dtype).itemsize * 8 == dtype.bits


def test_dtypes_that_are_only_computed_have_a_storage():
    assert arrays.numpy_dtype(index) == np.int64
    assert arrays.numpy_dtype(tf32) == np.float32
    assert arrays.torch_dtype(tf32) is torch.float32
    assert arrays.storage_dtype(bf16) == np.uint16
    assert arrays.storage_dtype(f8e5m2) == np.uint8


@pytest.mark.parametrize("dtype", [np.complex64, ">f4", "U3", ml_dtypes.float8_e4m3b11fnuz])
def test_a_numpy_dtype_that_tensorlang_lacks_is_none(dtype):
    assert arrays.dtype_of_numpy(np.dtype(dtype)) is None


def test_every_spelling_of_an_integer_is_known():
    assert arrays.dtype_of_numpy(np.dtype(np.longlong)) is i64
    assert arrays.dtype_of_numpy(np.dtype(np.ulonglong)) is u64
    assert arrays.dtype_of_numpy(np.dtype(np.intc)) is DTYPES["i32"]


def test_a_torch_dtype_that_tensorlang_lacks_is_none():
    assert arrays.dtype_of_torch(torch.complex64) is None
    assert arrays.dtype_of_torch(torch.float8_e4m3fnuz) is None


def test_bf16_in_numpy_needs_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(TargetError) as caught:
        arrays.numpy_dtype(bf16)
    assert caught.value.code == "dtype-needs-package"
    assert "ml_dtypes" in caught.value.fix


# --- kinds ---------------------------------------------------------------------------------------


def test_arrays_are_told_from_other_values():
    assert arrays.kind_of(np.zeros(3)) == "numpy"
    assert arrays.kind_of(np.zeros(())) == "numpy"
    assert arrays.kind_of(torch.zeros(3)) == "torch"
    assert arrays.kind_of(torch.nn.Parameter(torch.zeros(3))) == "torch"
    assert arrays.kind_of(Foreign(np.zeros(3))) == Foreign.__module__.split(".")[0]
    for value in ([1.0], (1.0,), 1.0, None, "x", np.float32(1), np.float32):
        assert arrays.kind_of(value) is None


def test_devices_have_names():
    assert arrays.device_of(np.zeros(3)) == "cpu"
    assert arrays.device_of(torch.zeros(3)) == "cpu"
    assert arrays.device_of(torch.zeros(3, device="meta")) == "meta"
    assert arrays.device_of(Foreign(np.zeros(3))) == "cpu"


def test_a_cuda_array_of_another_library_tells_its_device():
    array = Foreign(np.zeros(3))
    array.__class__ = type("Cuda", (Foreign,), {"__dlpack_device__": lambda _: (2, 1)})
    assert arrays.device_of(array) == "cuda:1"


def test_looking_at_numpy_arrays_does_not_import_torch():
    code = (
        "import sys, numpy as np; from tensorlang import arrays; a = np.zeros(3, np.float32);"
        "arrays.signature_of(a); arrays.kind_of([1]);"
        "arrays.view_as('numpy', arrays.info_of(a), arrays.dtype_of_numpy(a.dtype));"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_a_signature_changes_with_all_but_the_data(make):
    first = arrays.signature_of(make((2, 3)))
    assert arrays.signature_of(make((2, 3)) + 1) == first
    assert arrays.signature_of(make((3, 2))) != first
    assert arrays.signature_of(make((3, 2)).T) != first
    assert arrays.signature_of(make((2, 3)) > 0) != first
    assert hash(first) == hash(arrays.signature_of(make((2, 3))))


def test_a_signature_knows_gradients_and_read_only():
    assert arrays.signature_of(torch.zeros(3, requires_grad=True)) != arrays.signature_of(
        torch.zeros(3)
    )
    assert arrays.signature_of(np.broadcast_to(np.zeros(1), 3)) != arrays.signature_of(np.zeros(3))
    assert arrays.signature_of([1.0]) is None
    assert arrays.signature_of(Foreign(np.zeros(3))) is None


# --- views ---------------------------------------------------------------------------------------


def strided_tensors():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    return {
        "whole": base,
        "transposed": base.T,
        "every second": base[:, ::2],
        "expanded": base[:, :1].expand(4, 5),
        "empty": base[:0],
        "point": base[1, 2],
    }


@pytest.mark.parametrize("name", strided_tensors())
def test_a_tensor_is_seen_by_numpy_without_a_copy(name):
    tensor = strided_tensors()[name]
    seen = numpy_view(tensor, f32)
    np.testing.assert_array_equal(seen, np.array(tensor.tolist(), np.float32).reshape(seen.shape))
    if tensor.numel():
        assert seen.strides == tuple(4 * s for s in tensor.stride())
        assert seen.__array_interface__["data"][0] == tensor.data_ptr()


@pytest.mark.parametrize("dtype", BITS, ids=str)
def test_narrow_floats_are_seen_as_bits(dtype):
    values = torch.tensor([[0.0, 1.0, -2.5], [448.0, 0.125, 3.0]])
    tensor = values.to(arrays.torch_dtype(dtype)).T
    array = values.numpy().astype(arrays.numpy_dtype(dtype)).T
    bits = numpy_view(tensor, dtype)
    assert bits.dtype == arrays.storage_dtype(dtype)
    assert bits.strides == array.strides
    np.testing.assert_array_equal(bits, numpy_view(array, dtype))
    assert numpy_view(array, dtype).base is not None


def test_a_tensor_that_requires_a_gradient_is_detached_for_numpy():
    tensor = torch.ones(3, requires_grad=True)
    np.testing.assert_array_equal(numpy_view(tensor, f32), np.ones(3))
    # Kernels on torch tensors take addresses, which a gradient does not change.
    assert torch_view(tensor, f32) is tensor
    assert torch_view(tensor, f32).data_ptr() == tensor.data_ptr()


def test_a_negated_view_shows_its_values():
    tensor = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert tensor.is_neg()
    assert numpy_view(tensor, f32).tolist() == [-2.0, 4.0]
    assert torch_view(tensor, f32).tolist() == [-2.0, 4.0]
    assert not torch_view(tensor, f32).is_neg()


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_a_numpy_array_is_seen_by_torch_without_a_copy(dtype):
    values = np.array([[0, 1, 1], [1, 0, 1]], np.float32)
    array = values.astype(arrays.numpy_dtype(dtype))[:, ::2]
    tensor = torch_view(array, dtype)
    assert tensor.dtype is arrays.torch_dtype(dtype)
    assert tensor.data_ptr() == array.__array_interface__["data"][0]
    assert tensor.stride() == (3, 2)
    assert tensor.to(torch.float32).tolist() == values[:, ::2].tolist()


def test_a_read_only_numpy_array_is_seen_by_torch_without_a_warning():
    array = np.broadcast_to(np.arange(3, dtype=np.int8), (2, 3))
    assert torch_view(array, i8).tolist() == [[0, 1, 2], [0, 1, 2]]


def test_negative_strides_are_copied_for_torch_alone():
    array = np.arange(6, dtype=np.float64)[::-1]
    assert numpy_view(array, f64) is array
    assert torch_view(array, f64).tolist() == [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]


def test_the_view_for_torch_keeps_the_array_alive():
    tensor = torch_view(np.full(1000, 7.0), f64)
    np.full(1000, 8.0)
    assert tensor.eq(7).all()


def test_layouts_that_no_backend_reads_are_named():
    packed = np.zeros(3, np.dtype([("a", "u1"), ("b", "f4")]))["b"]
    assert "strides (5,)" in arrays.info_of(packed).problem
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    assert "does not start at" in arrays.info_of(unaligned).problem
    assert "torch.sparse_coo" in arrays.info_of(torch.zeros(3, 3).to_sparse()).problem
    assert "meta" in arrays.info_of(torch.zeros(3, device="meta")).problem
    assert arrays.info_of(np.zeros((1, 3), np.uint16)[:, ::-1]).problem == ""


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_a_sparse_tensor_has_a_signature():
    for tensor in (torch.zeros(3, 3).to_sparse(), torch.zeros(3, 3).to_sparse_csr()):
        assert arrays.signature_of(tensor) is not None
        assert arrays.info_of(tensor).problem


# --- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", STORED, ids=str)
@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("carrier", ["numpy", "torch"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 4), ()], ids=str)
def test_outputs_are_of_the_kind_asked_and_share_memory_with_their_view(
    carrier, kind, dtype, shape
):
    result, view = arrays.allocator(carrier, kind, "cpu", dtype, shape)()
    assert arrays.kind_of(result) == kind
    assert arrays.kind_of(view) == carrier
    info = arrays.info_of(result)
    assert (info.dtype, info.shape) == (dtype, shape)
    if carrier == "numpy":
        assert view.dtype == arrays.storage_dtype(dtype)
        view[...] = 1
        as_stored = numpy_view(result, dtype)
    else:
        assert view.dtype is arrays.torch_dtype(dtype)
        view.fill_(1)
        as_stored = torch_view(result, dtype)
    assert (as_stored == 1).all()


def test_two_outputs_are_two_arrays():
    allocate = arrays.allocator("numpy", "numpy", "cpu", u16, (4,))
    assert not np.shares_memory(allocate()[0], allocate()[0])


def test_outputs_without_inputs_are_on_the_cpu_for_numpy():
    assert arrays.default_device("numpy") == "cpu"


# --- DLPack --------------------------------------------------------------------------------------


def test_an_array_is_borrowed_by_numpy_without_a_copy():
    array = np.arange(3, dtype=np.float32)
    borrowed = arrays.borrow(Foreign(array), {f32}, "numpy")
    assert np.shares_memory(array, borrowed)


def test_an_array_is_borrowed_by_torch_where_numpy_lacks_a_dtype():
    tensor = torch.ones(3, dtype=torch.bfloat16)
    for carrier in ("numpy", "torch"):
        borrowed = arrays.borrow(Foreign(tensor), {bf16, f32}, carrier)
        assert borrowed.data_ptr() == tensor.data_ptr()
    assert arrays.kind_of(arrays.borrow(Foreign(np.zeros(3)), {f64}, "torch")) == "torch"


def test_a_dtype_that_dlpack_lacks_is_a_shape_error():
    with pytest.raises(ShapeError) as caught:
        arrays.borrow(Foreign(torch.ones(3, dtype=torch.bfloat16)), {f16}, "numpy")
    assert caught.value.code == "dlpack-refused"


def test_a_result_goes_back_through_the_namespace_of_its_library():
    class Namespace:
        @staticmethod
        def from_dlpack(array):
            return Foreign(array)

    class Standard(Foreign):
        def __array_namespace__(self):
            return Namespace

    array = np.arange(3.0)
    assert arrays.give_back(array, Standard(array)).array is array


def test_a_result_goes_back_through_the_package_of_its_library(monkeypatch):
    class Other(Foreign):
        pass

    Other.__module__ = "package_with_dlpack.core"
    module = type(sys)("package_with_dlpack")
    module.from_dlpack = Other
    monkeypatch.setitem(sys.modules, "package_with_dlpack", module)
    array = np.arange(3.0)
    assert isinstance(arrays.give_back(array, Other(array)), Other)


def test_a_result_for_a_library_without_from_dlpack_stays_numpy():
    array = np.arange(3.0)
    assert arrays.give_back(array, Foreign(array)) is array


def test_bool_is_bool():
    assert arrays.info_of(np.zeros(2, bool)).dtype is bool_
    assert arrays.info_of(torch.zeros(2, dtype=torch.bool)).dtype is bool_
