"""Kernel: what is checked, and what a backend is given."""

import ml_dtypes
import numpy as np
import pytest

from tensorlang import kernel as kernel_module
from tensorlang.errors import ShapeError, TargetError
from tensorlang.ir.expr import Param
from tensorlang.ir.stmt import Program
from tensorlang.ir.types import bf16, f32, f64, i32, i64
from tensorlang.kernel import Kernel
from tensorlang.target import Target
from tests.recording import K, M, N, Recorder, arange, buffer, code_of, kernel_of, product, program

# --- what a kernel shows -------------------------------------------------------------------------


def test_a_kernel_shows_what_it_is():
    kernel, _ = product()
    assert str(kernel.signature) == "p(A: f32[M, K], B: f32[K, N]) -> C: f32[M, N]"
    assert kernel.source == "the source"
    assert kernel.notes == ("a note",)
    assert kernel.target == Target("c")
    assert repr(kernel) == f"<Kernel {kernel.signature} on c>"
    assert isinstance(kernel.loop_ir, Program)


def test_ptx_and_cubin_need_an_architecture():
    with pytest.raises(TargetError) as caught:
        _ = product()[0].ptx
    assert caught.value.code == "no-architecture"


def test_ptx_and_cubin_are_those_of_every_kernel(monkeypatch):
    class Compiled:
        ptx, cubin = "ret;", b"code"

    monkeypatch.setattr(kernel_module, "compile_offline", lambda *_: {"p_0": Compiled()})
    kernel = Kernel(product()[0].loop_ir, Recorder(), Target("triton", arch="sm_90"))
    assert kernel.ptx == "// p_0\nret;"
    assert kernel.cubin == {"p_0": b"code"}


def test_a_signature_names_params_and_components():
    scale = Param("scale", f32)
    pair = program([buffer("A", f32, 2 * M)], [buffer("best", (f32, i64), M)], params=(scale,))
    assert str(kernel_of(pair)[0].signature) == (
        "p(A: f32[2*M]; scale: f32) -> best.0: f32[M], best.1: i64[M]"
    )


# --- arrays in, arrays out -----------------------------------------------------------------------


def test_sizes_are_solved_and_the_output_is_allocated():
    kernel, backend = product()
    a, b = arange(2, 3), arange(3, 4)
    c = kernel(a, b)
    np.testing.assert_array_equal(c, a @ b)
    sizes, params, inputs, _ = backend.last
    assert sizes == {"M": 2, "N": 4, "K": 3}
    assert params == {}
    assert inputs[0] is a
    assert inputs[1] is b


def test_strides_of_all_kinds_reach_the_backend_as_they_are():
    kernel, backend = product()
    a = arange(6, 4)[::-2, ::2]
    b = np.broadcast_to(np.float32(2), (2, 5))
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert backend.last[2][0].strides == a.strides
    assert backend.last[2][1].strides == (0, 0)


def test_the_same_array_may_be_two_inputs():
    kernel, _ = product()
    a = arange(3, 3)
    np.testing.assert_array_equal(kernel(a, a), a @ a)


def test_several_outputs_are_a_tuple_in_order():
    outputs = [buffer("S", f64, M), buffer("T", i32, M, M)]
    two = program([buffer("A", f32, M)], outputs, sizes=(M,))
    kernel, _ = kernel_of(two, lambda a: (a * 2, 7))
    s, t = kernel(arange(3))
    assert (s.dtype, t.dtype) == (np.float64, np.int32)
    np.testing.assert_array_equal(s, [0, 2, 4])
    assert t.shape == (3, 3)


def test_components_of_one_output_are_arrays_of_their_own():
    best = program([buffer("A", f32, M, N)], [buffer("best", (f32, i64), M)], sizes=(M, N))
    kernel, _ = kernel_of(best, lambda a: (a.max(1), a.argmax(1)))
    value, place = kernel(arange(2, 3))
    np.testing.assert_array_equal(value, [2, 5])
    np.testing.assert_array_equal(place, [2, 2])


@pytest.mark.parametrize("shapes", [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0))])
def test_zero_sizes_work_and_an_empty_output_runs_nothing(shapes):
    kernel, backend = product()
    a, b = (np.ones(shape, np.float32) for shape in shapes)
    np.testing.assert_array_equal(kernel(a, b), a @ b)
    assert len(backend.runs) == ((a @ b).size > 0)


def test_an_array_of_rank_zero_is_an_array():
    kernel, _ = kernel_of(
        program([buffer("s", f32)], [buffer("t", f32)], sizes=()), lambda s: (s + 1,)
    )
    result = kernel(np.array(2, np.float32))
    assert result.shape == ()
    assert result == 3


def test_without_inputs_outputs_are_numpy_arrays_of_the_sizes_given():
    kernel, _ = kernel_of(program([], [buffer("C", f32, M, N)], sizes=(M, N)), lambda: (5,))
    assert kernel(sizes={M: 2, "N": 3}).tolist() == [[5, 5, 5], [5, 5, 5]]


def test_bf16_reaches_the_backend_as_bits_and_comes_back_as_bf16():
    double = program([buffer("A", bf16, M)], [buffer("B", bf16, M)], sizes=(M,))
    kernel, backend = kernel_of(double, lambda bits: (bits + (1 << 7),))
    result = kernel(np.array([1.0, 3.0], ml_dtypes.bfloat16))
    assert result.dtype == ml_dtypes.bfloat16
    assert result.tolist() == [2.0, 6.0]
    assert backend.last[2][0].dtype == np.uint16


# --- remembered calls ----------------------------------------------------------------------------


def test_a_second_call_of_the_same_signature_does_not_check_again(monkeypatch):
    kernel, _ = product()
    first = kernel(arange(2, 3), arange(3, 4))
    monkeypatch.setattr(kernel_module, "make_plan", lambda *_: pytest.fail("checked again"))
    second = kernel(arange(2, 3) + 1, arange(3, 4))
    assert second is not first
    np.testing.assert_array_equal(second, (arange(2, 3) + 1) @ arange(3, 4))


def test_a_good_call_does_not_excuse_a_bad_one():
    kernel, _ = product()
    kernel(arange(2, 3), arange(3, 4))
    with pytest.raises(ShapeError):
        kernel(arange(2, 3), arange(4, 3))
    with pytest.raises(ShapeError):
        kernel(arange(2, 3), arange(3, 4, dtype=np.float64))


def test_plans_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(kernel_module, "_MOST_PLANS", 4)
    kernel, _ = product()
    for m in range(10):
        assert kernel(arange(m, 3), arange(3, 4)).shape == (m, 4)
    assert len(kernel._plans) <= 4


# --- out= ----------------------------------------------------------------------------------------


def test_out_is_written_and_returned():
    kernel, backend = product()
    a, b, c = arange(2, 3), arange(3, 4), np.empty((2, 4), np.float32)
    assert kernel(a, b, out=c) is c
    assert kernel(a, b, out=c) is c
    np.testing.assert_array_equal(c, a @ b)
    assert backend.last[3][0] is c


def test_out_may_have_any_strides():
    kernel, _ = product()
    whole = np.full((4, 16), -1, np.float32)
    c = whole[::-2, ::4]
    kernel(arange(2, 3), arange(3, 4), out=c)
    np.testing.assert_array_equal(c, arange(2, 3) @ arange(3, 4))
    assert (whole == -1).sum() == whole.size - c.size


def test_out_takes_a_tuple_for_several_outputs():
    two = program([buffer("A", f32, M)], [buffer("S", f32, M), buffer("T", f32, M)], sizes=(M,))
    kernel, _ = kernel_of(two, lambda a: (a, a + 1))
    outs = (np.empty(3, np.float32), np.empty(3, np.float32))
    assert kernel(arange(3), out=outs) is outs
    np.testing.assert_array_equal(outs[1], [1, 2, 3])


def test_an_out_that_shares_memory_is_refused():
    kernel, backend = product()
    a = arange(3, 3)
    both = np.empty((2, 3, 3), np.float32)
    both[0] = a
    assert code_of(kernel, both[0], a, out=both[0]) == "out-overlaps"
    assert code_of(kernel, a, both[0], out=both.reshape(6, 3)[2:5]) == "out-overlaps"
    assert backend.runs == []
    kernel(both[0], a, out=both[1])
    np.testing.assert_array_equal(both[1], a @ a)


def test_an_out_that_only_lies_between_is_accepted():
    kernel, _ = product()
    both = np.empty((3, 6), np.float32)
    both[:, ::2] = arange(3, 3)
    kernel(both[:, ::2], arange(3, 3), out=both[:, 1::2])
    np.testing.assert_array_equal(both[:, 1::2], arange(3, 3) @ arange(3, 3))


def test_two_outs_that_share_memory_are_refused():
    two = program([buffer("A", f32, M)], [buffer("S", f32, M), buffer("T", f32, M)], sizes=(M,))
    kernel, _ = kernel_of(two)
    c = np.empty(4, np.float32)
    assert code_of(kernel, arange(3), out=(c[:3], c[1:])) == "out-overlaps"


def test_an_out_that_overlaps_itself_is_refused():
    kernel, _ = product()
    a, b = arange(2, 3), arange(3, 4)
    window = np.lib.stride_tricks.sliding_window_view(np.zeros(5, np.float32), 4, writeable=True)
    assert code_of(kernel, a, b, out=window) == "out-not-writable"
    column = np.lib.stride_tricks.as_strided(np.zeros(2, np.float32), (2, 4), (4, 0))
    assert code_of(kernel, a, b, out=column) == "out-not-writable"


def test_an_out_that_does_not_fit_is_refused():
    kernel, backend = product()
    a, b = arange(2, 3), arange(3, 4)
    read_only = np.zeros((2, 4), np.float32)
    read_only.flags.writeable = False
    assert code_of(kernel, a, b, out=read_only) == "out-not-writable"
    assert code_of(kernel, a, b, out=np.zeros((4, 2), np.float32)) == "out-shape"
    assert code_of(kernel, a, b, out=np.zeros((2, 4))) == "wrong-dtype"
    assert code_of(kernel, a, b, out=np.zeros(8, np.float32)) == "wrong-rank"
    assert code_of(kernel, a, b, out=(read_only, read_only)) == "out-count"
    assert code_of(kernel, a, b, out=[[0.0] * 4] * 2) == "out-count"
    assert code_of(kernel, a, b, out=3.0) == "not-an-array"
    assert backend.runs == []


# --- torch ---------------------------------------------------------------------------------------


def test_torch_tensors_give_torch_tensors():
    torch = pytest.importorskip("torch")
    kernel, backend = product()
    a, b = torch.arange(6.0).reshape(2, 3), torch.arange(12.0).reshape(3, 4).requires_grad_()
    c = kernel(a, b)
    assert isinstance(c, torch.Tensor)
    assert torch.equal(c, (a @ b).detach())
    assert isinstance(backend.last[2][0], np.ndarray)
    out = torch.empty(4, 2).T
    assert kernel(a, b, out=out) is out
    assert torch.equal(out, c)
    # The second call takes the short way.
    assert torch.equal(kernel(a, b), c)


def test_bf16_tensors_go_through_c():
    torch = pytest.importorskip("torch")
    double = program([buffer("A", bf16, M)], [buffer("B", bf16, M)], sizes=(M,))
    kernel, _ = kernel_of(double, lambda bits: (bits + (1 << 7),))
    result = kernel(torch.tensor([1.0, 3.0], dtype=torch.bfloat16))
    assert result.dtype is torch.bfloat16
    assert result.tolist() == [2.0, 6.0]


def test_a_tensor_that_requires_a_gradient_is_no_out():
    torch = pytest.importorskip("torch")
    kernel, _ = product()
    out = torch.empty(2, 4, requires_grad=True)
    assert code_of(kernel, torch.ones(2, 3), torch.ones(3, 4), out=out) == "out-not-writable"


def test_mixed_libraries_and_devices_are_refused():
    torch = pytest.importorskip("torch")
    kernel, _ = product()
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    assert code_of(kernel, a, b.numpy()) == "mixed-kinds"
    assert code_of(kernel, a, b, out=np.empty((2, 4), np.float32)) == "mixed-kinds"
    assert code_of(kernel, a, b.to("meta")) == "mixed-devices"
    assert code_of(kernel, a.to("meta"), b.to("meta")) == "wrong-device"


def test_triton_is_given_tensors_and_gives_what_it_was_given():
    torch = pytest.importorskip("torch")
    inputs = [buffer("A", f32, M, K), buffer("B", f32, K, N)]
    kernel, backend = kernel_of(
        program(inputs, [buffer("C", f32, M, N)]), lambda a, b: (a @ b,), target="triton"
    )
    a, b = arange(2, 3), np.broadcast_to(np.float32(2), (3, 4))
    c = kernel(a, b)
    np.testing.assert_array_equal(c, a @ b)
    assert all(isinstance(t, torch.Tensor) for t in (*backend.last[2], *backend.last[3]))
    reversed_out = np.empty((2, 4), np.float32)[::-1]
    assert code_of(kernel, a, b, out=reversed_out) == "out-not-writable"
    np.testing.assert_array_equal(kernel(a[::-1], b), a[::-1] @ b)


# --- DLPack --------------------------------------------------------------------------------------


class Foreign:
    """An array of a library with the array API's namespace."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __array_namespace__(self):
        return type("namespace", (), {"from_dlpack": staticmethod(Foreign)})


def test_dlpack_arrays_give_arrays_of_their_library():
    kernel, _ = product()
    a, b = arange(2, 3), arange(3, 4)
    c = kernel(Foreign(a), Foreign(b))
    assert isinstance(c, Foreign)
    np.testing.assert_array_equal(c.array, a @ b)
    out = Foreign(np.zeros((2, 4), np.float32))
    assert kernel(Foreign(a), Foreign(b), out=out) is out
    np.testing.assert_array_equal(out.array, a @ b)


def test_several_outputs_go_back_to_their_library():
    two = program([buffer("A", f32, M)], [buffer("S", f32, M), buffer("T", f32, M)], sizes=(M,))
    kernel, _ = kernel_of(two, lambda a: (a, a + 1))
    s, t = kernel(Foreign(arange(3)))
    assert isinstance(s, Foreign)
    np.testing.assert_array_equal(t.array, [1, 2, 3])


def test_dlpack_arrays_are_not_mixed_with_others():
    kernel, _ = product()
    assert code_of(kernel, arange(2, 3), Foreign(arange(3, 4))) == "mixed-kinds"
    assert code_of(kernel, Foreign(arange(2, 3)), [[1.0]]) == "not-an-array"
    assert code_of(kernel, Foreign(arange(2, 3))) == "argument-count"
    assert code_of(kernel, Foreign(arange(2, 3)), Foreign(arange(2, 4))) == "size-conflict"


def test_a_dlpack_array_on_a_gpu_is_refused_by_c():
    class OnGpu(Foreign):
        def __dlpack_device__(self):
            return (2, 0)

    kernel, _ = product()
    assert code_of(kernel, OnGpu(arange(2, 3)), OnGpu(arange(3, 4))) == "wrong-device"


# --- on a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_tensors_of_a_gpu_stay_there():
    import torch

    inputs = [buffer("A", f32, M, K), buffer("B", f32, K, N)]
    kernel, backend = kernel_of(
        program(inputs, [buffer("C", f32, M, N)]), lambda a, b: ((a @ b).detach(),), target="triton"
    )
    a, b = torch.randn(2, 3, device="cuda"), torch.randn(3, 4, device="cuda", requires_grad=True)
    c = kernel(a, b)
    assert c.device == a.device
    assert torch.equal(c, (a @ b).detach())
    assert backend.last[2][0] is a
    out = torch.empty(4, 2, device="cuda").T
    assert kernel(a, b, out=out) is out
    assert torch.equal(out, c)
    assert code_of(kernel, a, b.cpu()) == "mixed-devices"
    assert code_of(kernel, a, b, out=torch.empty(2, 4)) == "mixed-devices"
    square = torch.ones(3, 3, device="cuda")
    assert code_of(kernel, square, square, out=square) == "out-overlaps"
    assert code_of(product()[0], a, b) == "wrong-device"
