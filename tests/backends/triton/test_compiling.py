"""What calls will need is compiled before they come, side by side, and waits on disk."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import tensorlang as tl
from tensorlang import Func, Input, Pipeline, Schedule, Size, Target, Var
from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.launch import Launcher
from tensorlang.errors import ShapeError
from tensorlang.kernel import Kernel
from tests.backends.triton.fake_gpu import FakeGpu, fake_gpu

__all__ = ["fake_gpu"]

M, N, i, j = Size("M"), Size("N"), Var("i"), Var("j")


def two_kernels(target: Target | str = "triton") -> Kernel:
    """t = 2*a, c = t + b along the columns."""
    a, b, t, c = Input("a", tl.f32, [M, N]), Input("b", tl.f32, [N]), Func("t"), Func("c")
    t[i, j] = a[i, j] * 2.0
    c[i, j] = t[i, j] + b[j]
    pipeline = Pipeline("two", inputs=[a, b], outputs={c: [M, N]})
    s = Schedule(pipeline)
    s[t].compute_root()
    for func in (t, c):
        s[func].split(j, "jo", "ji", 64).gpu_blocks(i, "jo").vectorize("ji")
    return pipeline.compile(s, target=target)


def test_a_warm_kernel_compiles_nothing_when_it_is_called(fake_gpu: FakeGpu) -> None:
    import torch

    kernel = two_kernels()
    assert kernel.warmup([(3, 128), (128,)]) == 2
    assert kernel.warmup([(3, 128), (128,)], [(3, 256), (256,)]) == 0
    fake_gpu.is_capturing = True
    kernel(torch.zeros(3, 128), torch.zeros(128))
    assert len(fake_gpu.compiled) == 2


def test_every_alignment_of_sizes_is_a_kernel(fake_gpu: FakeGpu) -> None:
    kernel = two_kernels()
    assert kernel.warmup([(3, 128), (128,)], [(3, 100), (100,)], [(3, 101), (101,)]) == 6
    # Of sizes that fill their tiles no mask is left that divisors could make wider.
    assert kernel.warmup(*[[(3, n), (n,)] for n in (64, 256, 512, 1024)]) == 0


def test_a_call_that_would_be_refused_is_not_warmed_up(fake_gpu: FakeGpu) -> None:
    kernel = two_kernels()
    for code, shapes in {
        "argument-count": [(3, 128)],
        "wrong-rank": [(3, 128), (128, 1)],
        "size-conflict": [(3, 128), (127,)],
    }.items():
        with pytest.raises(ShapeError, match=code):
            kernel.warmup(shapes)
    with pytest.raises(ShapeError, match="unknown-param"):
        kernel.warmup([(3, 128), (128,)], params={"s": 1})


def test_kernels_are_compiled_side_by_side(
    fake_gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    together = threading.Barrier(2, timeout=30)

    def compile_(launcher: Launcher, key: Any, target: Any) -> Any:
        together.wait()
        return fake_gpu.compile(launcher, key)

    monkeypatch.setattr(Launcher, "compile", compile_)
    assert two_kernels().warmup([(3, 128), (128,)], workers=2) == 2
    # The first call of a pipeline of several kernels does so too.
    monkeypatch.setattr("tensorlang.backends.triton.compiling.available_cores", lambda: 2)
    two_kernels()(torch.zeros(3, 128), torch.zeros(128))
    assert len(fake_gpu.compiled) == 4


def test_a_bar_shows_how_far_it_is(fake_gpu: FakeGpu, capsys: pytest.CaptureFixture[str]) -> None:
    two_kernels().warmup([(3, 128), (128,)], progress=True)
    bar = "[" + "#" * 30 + "]"
    assert capsys.readouterr().err.endswith(f"\r{bar} 2/2 kernels compiled\n")
    two_kernels().warmup([(3, 128), (128,)], progress=False)
    assert capsys.readouterr().err == ""


def test_other_targets_have_nothing_to_compile() -> None:
    assert two_kernels("interpreter").warmup([(3, 128), (128,)]) == 0
    assert two_kernels("triton").warmup([(3, 128), (128,)]) in (0, 2)


_WARMUP = """
from tensorlang import Target
from tests.backends.triton.test_compiling import two_kernels
print(two_kernels(Target("triton", arch="sm_90")).warmup([(3, 128), (128,)]))
"""


def test_what_one_process_compiles_another_finds_on_disk(tmp_path: Path) -> None:
    """Triton keys its cache by the content of a kernel, so ours has to be the same text."""
    if gpu.is_present():
        pytest.skip("there a warm-up compiles for the GPU that is present")
    seen: list[set[Path]] = []
    for seed in ("1", "2"):
        environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _WARMUP], env=environment, capture_output=True, text=True
        )
        assert done.stdout == "2\n", done.stderr
        seen.append(set(tmp_path.rglob("*.cubin")))
    assert len(seen[0]) == 2
    assert seen[0] == seen[1]
