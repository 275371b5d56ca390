"""Of a component that is read only at the first index of a dimension, only that is written."""

import pytest
import torch

from tensorlang import Func, Input, Kernel, Pipeline, Schedule, Size, Var, f32

M, N = Size("M"), Size("N")
i, j = Var("i"), Var("j")


def sums(kept: str, read: str) -> Kernel:
    """out[i, j] = first + second of pairs in global memory."""
    x, y, f, out = Input("x", f32, [M]), Input("y", f32, [M, N]), Func("f"), Func("out")
    f[i, j] = ({"row": x[i], "both": x[i] + y[i, j]}[kept], y[i, j])
    first = {"first": f[i, 0][0], "own": f[i, j][0]}[read]
    out[i, j] = first + f[i, j][1]
    p = Pipeline("sums", inputs=[x, y], outputs={out: [M, N]})
    s = Schedule(p)
    for name in ("f", "out"):
        s[name].compute_root() if name == "f" else None
        s[name].split(i, "io", "ii", 4).gpu_blocks("io").vectorize("ii").vectorize(j)
    return p.compile(s, "triton")


@pytest.mark.parametrize(
    ("kept", "read", "is_narrow"),
    [("row", "first", True), ("row", "own", False), ("both", "first", False)],
)
def test_what_is_read_at_0_alone_is_written_there_alone(kept: str, read: str, is_narrow: bool):
    kernel = sums(kept, read)
    x, y = torch.randn(7), torch.randn(7, 5)
    first = x[:, None] + (y if kept == "both" else 0)
    wanted = (first[:, :1] if read == "first" else first) + y
    torch.testing.assert_close(kernel(x, y), wanted)
    [store] = [line for line in kernel.source.splitlines() if "f_c0_ptr +" in line][:1]
    assert ("None" not in store) == is_narrow
