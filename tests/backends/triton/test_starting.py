"""A kernel is started just as Triton starts it, but for what does not change a launch."""

from types import SimpleNamespace
from typing import Any

import pytest

from tensorlang.backends.triton import gpu
from tensorlang.backends.triton.libraries import triton
from tensorlang.backends.triton.starting import is_watched, start_of

_ARGUMENTS = (64, 128, 1, "constexpr")


class CudaLauncher:
    """Triton's launcher, but for what its C function does."""

    def __init__(self, scratch: int = 0) -> None:
        self.called: list[tuple[Any, ...]] = []
        self.launch = lambda *words: self.called.append(words)
        self.launch_cooperative_grid, self.launch_pdl, self.num_ctas = False, True, 1
        self.global_scratch_size, self.global_scratch_align = scratch, 1
        self.profile_scratch_size, self.profile_scratch_align = 0, 1
        self.gsan_enabled = False
        self.arg_annotations, self.kernel_signature = ["a"], b"s"

    def __call__(self, *words: Any) -> None:
        launcher = pytest.importorskip("triton.backends.nvidia.driver").CudaLauncher
        launcher.__call__(self, *words)


def started(run: Any, scratch: Any = None) -> None:
    compiled = SimpleNamespace(run=run, function=77, packed_metadata=(4, 1, 0))
    start = start_of(compiled)
    words = _ARGUMENTS if start.is_flat else (_ARGUMENTS,)
    start.call(3, 1, 1, 5, *start.before, scratch, *start.after, *words)


@pytest.mark.parametrize("scratch", [0, 16])
def test_the_c_launcher_is_given_what_triton_gives_it(
    scratch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = SimpleNamespace(allocate_default_profile_scratch=None)
    monkeypatch.setattr(triton.runtime.driver, "_active", active)
    asked: list[tuple[int, int, int | None]] = []
    monkeypatch.setattr(gpu, "_scratch", lambda *request: asked.append(request) or 4096)
    ours, theirs = CudaLauncher(scratch), CudaLauncher(scratch)
    started(ours, 4096 if scratch else None)
    with gpu.scratch():
        theirs(3, 1, 1, 5, 77, (4, 1, 0), None, None, None, *_ARGUMENTS)
    assert ours.called == theirs.called
    compiled = SimpleNamespace(run=ours, function=77, packed_metadata=(4, 1, 0))
    assert asked == ([(3 * start_of(compiled).scratch, 1, 5)] if scratch else [])


@pytest.mark.parametrize("version", ["3.4.1", "4.0.0"])
def test_an_unknown_triton_is_started_its_own_way(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton, "__version__", version)
    seen: list[tuple[Any, ...]] = []
    started(lambda *words: seen.append(words))
    assert seen == [(3, 1, 1, 5, 77, (4, 1, 0), None, None, None, *_ARGUMENTS)]


def test_a_profiler_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_watched()
    hooks = triton.knobs.runtime
    monkeypatch.setattr(hooks, "launch_enter_hook", SimpleNamespace(calls=[print]))
    assert is_watched()
    monkeypatch.setattr(hooks, "launch_enter_hook", None)
    assert is_watched()
