"""What schedules say of hardware is in the text of the kernel, or in how it is compiled."""

import pytest
import torch

from tensorlang import Func, Input, Pipeline, Schedule, Size, Target, Var, f32
from tensorlang.kernel import Kernel

N = Size("N")
i, io, ii = Var("i"), Var("io"), Var("ii")


def doubled(policy: str, registers: int = 0, target: str | Target = "triton") -> Kernel:
    """y = 2 x in blocks of 1,024."""
    x, y = Input("x", f32, [N]), Func("y")
    y[i] = x[i] * 2
    pipeline = Pipeline("doubled", inputs=[x], outputs={y: [N]})
    s = Schedule(pipeline)
    s[y].split(i, io, ii, 1024).gpu_blocks(io).vectorize(ii)
    s[x].cache(policy)
    s[y].cache(policy)
    if registers:
        s[y].gpu_registers(registers)
    return pipeline.compile(s, target=target)


@pytest.mark.parametrize(
    ("policy", "loading", "storing"),
    [
        ("evict_first", 'eviction_policy="evict_first"', 'eviction_policy="evict_first"'),
        ("evict_last", 'eviction_policy="evict_last"', 'eviction_policy="evict_last"'),
        ("streaming", 'eviction_policy="evict_first"', 'cache_modifier=".cs"'),
    ],
)
def test_a_cache_policy_is_said_of_loads_and_stores(
    policy: str, loading: str, storing: str
) -> None:
    kernel = doubled(policy)
    before, after = kernel.source.split("tl.store")
    assert loading in before
    assert storing in after
    assert kernel.notes == ()
    x = torch.randn(1500)
    assert torch.equal(kernel(x), 2 * x)


def test_a_cache_policy_reaches_the_instructions() -> None:
    target = Target("triton", arch="sm_90")
    [first] = doubled("evict_first", target=target).binaries.values()
    assert "L1::evict_first" in first.ptx
    [streaming] = doubled("streaming", target=target).binaries.values()
    assert "st.global.cs" in streaming.ptx


def test_a_limit_of_registers_is_the_compilers() -> None:
    target = Target("triton", arch="sm_90")
    [free] = doubled("evict_first", target=target).binaries.values()
    [limited] = doubled("evict_first", 24, target).binaries.values()
    assert ".maxnreg 24" in limited.ptx
    assert ".maxnreg" not in free.ptx


def test_a_dependent_launch_waits_for_the_kernel_before() -> None:
    def kernel(arch: str) -> Kernel:
        x, y = Input("x", f32, [N]), Func("y")
        y[i] = x[i] * 2
        pipeline = Pipeline("doubled", inputs=[x], outputs={y: [N]})
        s = Schedule(pipeline)
        s[y].split(i, io, ii, 1024).gpu_blocks(io).vectorize(ii).gpu_dependent_launch()
        return pipeline.compile(s, target=Target("triton", arch=arch) if arch else "triton")

    [early] = kernel("sm_90").binaries.values()
    assert early.ptx.index("griddepcontrol.wait") < early.ptx.index("ld.global")
    assert "griddepcontrol.launch_dependents" in early.ptx
    plain = kernel("sm_80")
    assert "griddepcontrol" not in plain.ptx
    assert plain.notes == (
        "'doubled_y' is launched after the kernel before it: it can be earlier on sm_90",
    )
    x = torch.randn(1500)
    assert torch.equal(kernel("")(x), 2 * x)
    assert kernel("").notes == ()
