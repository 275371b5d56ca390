"""A GPU that is none: CPU tensors stand for its own, and what is launched is only written down."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tensorlang.backends.triton import gpu, starting
from tensorlang.backends.triton.launch import Launcher
from tensorlang.backends.triton.signature import Key


class Compiled:
    """What Triton's compiled kernel looks like to a launch."""

    function, packed_metadata = 77, (4, 1, 0)

    def __init__(self, fake: "FakeGpu", name: str, launcher: Any) -> None:
        self._fake, self.name, self.run = fake, name, launcher

    def _init_handles(self) -> None:
        """Nothing is loaded."""

    def __getitem__(self, grid: tuple[int, int, int]) -> Any:
        """Triton's own launch, which takes tensors."""

        def runner(*arguments: Any) -> None:
            seen = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
            self._fake.cold.append((self.name, grid[0], tuple(seen)))

        return runner


class FakeGpu:
    """What was compiled and launched.

    Args:
        compiled: the kernel and key of every compilation.
        cold: kernel, programs and arguments of every launch by Triton's own path.
        warm: programs, stream and arguments of every other launch.
    """

    def __init__(self) -> None:
        self.compiled: list[tuple[str, Key]] = []
        self.cold: list[tuple[str, int, tuple[Any, ...]]] = []
        self.warm: list[tuple[int, int, tuple[Any, ...]]] = []
        self.device, self.is_capturing, self.scratch = 0, False, 0

    def compile(self, launcher: Launcher, key: Key) -> Compiled:
        self.compiled.append((launcher.text.name, key))
        run = SimpleNamespace(
            launch_cooperative_grid=False,
            launch_pdl=False,
            launch=self.launch,
            global_scratch_size=self.scratch,
            num_ctas=1,
        )
        return Compiled(self, launcher.text.name, run)

    def launch(self, programs: int, y: int, z: int, stream: int, *rest: Any) -> None:
        # The layout of Triton 3.6: 9 words before the arguments.
        assert (y, z) == (1, 1)
        assert (rest[3] is not None) == bool(self.scratch)
        self.warm.append((programs, stream, rest[9:]))


@pytest.fixture
def fake_gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    """CPU tensors count as those of GPU 0."""
    fake = FakeGpu()
    monkeypatch.setattr(gpu, "index_of", lambda device: 0)
    monkeypatch.setattr(gpu, "is_present", lambda: True)
    monkeypatch.setattr(gpu, "current_target", lambda: None)
    monkeypatch.setattr(gpu, "on", lambda device: nullcontext())
    monkeypatch.setattr(gpu, "current_device", lambda: fake.device)
    monkeypatch.setattr(gpu, "current_stream", lambda device: 5)
    monkeypatch.setattr(gpu, "is_capturing", lambda: fake.is_capturing)
    monkeypatch.setattr(gpu, "empty", lambda shape, dtype: torch.empty(shape, dtype=dtype))
    monkeypatch.setattr(Launcher, "compile", lambda self, key, target: fake.compile(self, key))
    monkeypatch.setattr(starting, "_version", lambda: (3, 6))
    monkeypatch.setattr(starting, "_needs_more", lambda run: False)
    return fake
