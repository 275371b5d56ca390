"""The whole message of everything that can be wrong with a call."""

import numpy as np
import pytest

from tensorlang.errors import TensorlangError
from tensorlang.ir.expr import Param, Size, as_expr
from tensorlang.ir.stmt import Assert, Block, Buffer, Dim, Program
from tensorlang.ir.types import bf16, bool_, f16, f32, i64, index, u8
from tensorlang.kernel import Kernel
from tensorlang.target import Target

M, N, K = Size("M"), Size("N"), Size("K")


class Never:
    """A backend that must not be reached."""

    source, notes = "", ()

    def run(self, sizes, params, inputs, outputs):
        raise AssertionError("a wrong call has run")


def buffer(name, dtype, *shape):
    dims = tuple(Dim(as_expr(0, index), as_expr(e, index)) for e in shape)
    return Buffer(name, (dtype,), dims)


def kernel(inputs, outputs, *, params=(), asserts=(), sizes=(), target="c", name="linear"):
    loops = Program(name, sizes, params, tuple(inputs), tuple(outputs), Block(asserts))
    return Kernel(loops, Never(), Target(target))


linear = kernel(
    [buffer("A", f32, M, K), buffer("B", f32, K, N)], [buffer("C", f32, M, N)], sizes=(M, N, K)
)
scaled = kernel(
    [buffer("A", f16, M)],
    [buffer("B", f16, M), buffer("most", i64)],
    params=(Param("scale", f32), Param("clip", bool_), Param("level", u8)),
    sizes=(M,),
    name="scaled",
)
halved = kernel([buffer("A", f32, 2 * M)], [buffer("B", f32, M - 3)], sizes=(M,), name="halved")
free = kernel([buffer("A", f32, M)], [buffer("B", f32, M, N)], sizes=(M, N), name="free")
blur = kernel(
    [buffer("A", f32, M)],
    [buffer("B", f32, M)],
    sizes=(M,),
    asserts=(
        Assert(
            as_expr(M) >= 3,
            "BoundsError",
            "input-too-small",
            "dimension 0 of Input 'A' is read from {0} to {1}",
            "it has {2} elements",
            "use repeat_edge(A)",
            (as_expr(0, index), as_expr(2, index), as_expr(M)),
        ),
    ),
    name="blur",
)

a, b = np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)
v = np.zeros(4, np.float16)
read_only = np.broadcast_to(np.float32(0), (2, 4))
shared = np.zeros((4, 4), np.float32)

CALLS = {
    "too-few-arrays": lambda: linear(a),
    "too-many-arrays": lambda: linear(a, b, b),
    "a-list": lambda: linear(a, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    "a-scalar": lambda: linear(a, 1.0),
    "none": lambda: linear(a, None),
    "wrong-dtype": lambda: linear(a, b.astype(np.float64)),
    "swapped-bytes": lambda: linear(a, b.astype(">f4")),
    "wrong-rank": lambda: linear(a, b[0]),
    "two-values-of-a-size": lambda: linear(a, np.zeros((5, 4), np.float32)),
    "a-size-given-and-solved": lambda: linear(a, b, sizes={"K": 4}),
    "a-size-that-is-no-number": lambda: linear(a, b, sizes={"K": 3.0}),
    "an-unknown-size": lambda: linear(a, b, sizes={"k": 3}),
    "a-size-that-is-not-whole": lambda: halved(np.zeros(7, np.float32)),
    "a-size-that-no-shape-tells": lambda: free(np.zeros(4, np.float32)),
    "a-negative-extent": lambda: halved(np.zeros(4, np.float32)),
    "unaligned": lambda: linear(a, np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)),
    "odd-strides": lambda: blur(np.zeros(3, np.dtype([("a", "u1"), ("b", "f4")]))["b"]),
    "a-failing-assert": lambda: blur(np.zeros(2, np.float32)),
    "out-of-another-shape": lambda: linear(a, b, out=np.zeros((4, 2), np.float32)),
    "out-of-another-dtype": lambda: linear(a, b, out=np.zeros((2, 4), np.float16)),
    "out-that-is-read-only": lambda: linear(a, b, out=read_only),
    "out-that-is-an-input": lambda: linear(shared, shared, out=shared),
    "out-that-overlaps-itself": lambda: linear(
        a,
        b,
        out=np.lib.stride_tricks.sliding_window_view(np.zeros(5, np.float32), 4, writeable=True),
    ),
    "too-few-outs": lambda: scaled(v, scale=1, clip=True, level=0, out=v),
    "a-missing-param": lambda: scaled(v, scale=1, clip=True),
    "an-unknown-param": lambda: scaled(v, scale=1, clip=True, level=0, scales=2),
    "an-input-by-name": lambda: linear(a, B=b),
    "a-size-by-name": lambda: linear(a, b, K=3),
    "a-param-of-another-type": lambda: scaled(v, scale=1, clip=1, level=0),
    "a-param-that-is-an-array": lambda: scaled(v, scale=np.ones(()), clip=True, level=0),
    "a-param-out-of-range": lambda: scaled(v, scale=1, clip=True, level=256),
    "a-param-that-overflows": lambda: scaled(v, scale=1e39, clip=True, level=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_message_of_a_wrong_call(name, golden):
    with pytest.raises(TensorlangError) as caught:
        CALLS[name]()
    golden(str(caught.value), name)


def test_the_messages_about_libraries_and_devices(golden):
    torch = pytest.importorskip("torch")
    on_gpu_alone = kernel([buffer("A", bf16, M)], [buffer("B", bf16, M)], sizes=(M,), name="gpu")
    calls = (
        lambda: linear(torch.zeros(2, 3), b),
        lambda: linear(torch.zeros(2, 3), torch.zeros(3, 4, device="meta")),
        lambda: linear(torch.zeros(2, 3, device="meta"), torch.zeros(3, 4, device="meta")),
        lambda: on_gpu_alone(torch.zeros(3, dtype=torch.float16)),
        lambda: on_gpu_alone(torch.zeros(3, dtype=torch.bfloat16).to_sparse()),
    )
    messages: list[str] = []
    for call in calls:
        with pytest.raises(TensorlangError) as caught:
            call()
        messages.append(str(caught.value))
    golden("\n\n".join(messages))
