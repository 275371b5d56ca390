"""What is measured: a Case is one computation on given inputs; its Contenders all compute it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Mode = Literal["device", "graph", "host", "wall"]
"""Which time: of the device with a cold cache; of a call inside a CUDA graph; of a call from
Python, back to back; of the call itself, run once."""

Call = Callable[[], Any]
"""Runs once and returns its outputs: new arrays, or its own that it writes each time."""


@dataclass(frozen=True)
class Contender:
    """One implementation.

    Args:
        impl: its name; "tensorlang" is ours, "tensorlang <variant>" another schedule of ours.
        prepare: from the inputs to a call, compiling what must be compiled.
        alone: it tunes itself by measuring, or takes long: nothing else may run while it is
            prepared, and quick runs leave it out.
        checked: False for a copy, which computes something else.
    """

    impl: str
    prepare: Callable[[Sequence[Any]], Call]
    alone: bool = False
    checked: bool = True


@dataclass(frozen=True)
class Case:
    """One computation.

    Args:
        name: "matmul 4096x4096x4096 NN bf16": unique.
        inputs: makes the inputs at a Place.
        reference: the answer in f64 (one array or several), from the inputs.
        contenders: who computes it.
        modes: the times that are measured.
        tolerance: of the relative error, |x - reference| / |reference| over all elements.
        flops, bytes: of the work, for rates.
        quick: whether `--quick` runs it.
    """

    name: str
    inputs: Callable[["Place"], Sequence[Any]]
    reference: Callable[..., Any] | None
    contenders: tuple[Contender, ...]
    modes: tuple[Mode, ...] = ("device",)
    tolerance: float = 1e-2
    flops: float = 0
    bytes: float = 0
    quick: bool = False


@dataclass(frozen=True)
class Place:
    """Where cases run and how much of them.

    Args:
        device: "cuda", or "cpu" in a dry run.
        dry: tiny sizes in Triton's interpreter, times made up: does the harness work?
        tune: more schedules of ours than the one that counts.
        seed: of the random inputs.
    """

    device: str = "cuda"
    dry: bool = False
    tune: bool = False
    seed: int = 0

    def array(self, *shape: int, scale: float = 1.0) -> Any:
        """Normal numbers in NumPy, f32."""
        random = np.random.default_rng(self.seed + sum(shape))
        return random.standard_normal(shape, dtype=np.float32) * np.float32(scale)

    def pixels(self, *shape: int, dtype: Any, high: float) -> Any:
        """Numbers in [0, high) in NumPy: floats or integers."""
        random = np.random.default_rng(self.seed + sum(shape))
        return (random.random(shape, dtype=np.float32) * high).astype(dtype)

    @property
    def half(self) -> str:
        """The 16-bit float of the cases: Triton's interpreter multiplies bf16 as raw bits."""
        return "f16" if self.dry else "bf16"

    def randn(self, *shape: int, dtype: Any, scale: float = 1.0) -> Any:
        """Normal numbers: data of zeros lets a GPU clock higher, and hides wrong answers."""
        import torch

        generator = torch.Generator(device=self.device).manual_seed(self.seed + sum(shape))
        values = torch.randn(shape, generator=generator, device=self.device, dtype=torch.float32)
        return (values * scale).to(dtype)
