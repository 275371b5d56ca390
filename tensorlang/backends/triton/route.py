"""Which text of a kernel a call runs: the general one, or that for what its sizes make true."""

from collections.abc import Mapping, Sequence
from typing import Any

from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.launch import Launcher
from tensorlang.backends.triton.module import HEADER, Module
from tensorlang.backends.triton.variants import (
    Assumption,
    assumptions_of,
    holds,
    quotients,
    variant,
)
from tensorlang.target import Target


class Router:
    """One kernel of a program, in as many texts as calls have needed."""

    def __init__(self, launch: Launch, text: KernelText, module: Module, target: Target) -> None:
        self.launch, self.text, self.target = launch, text, target
        self.assumptions = assumptions_of(text)
        self.launchers: dict[frozenset[Assumption], Launcher] = {
            frozenset(): Launcher(text, module)
        }
        self._held: dict[tuple[Any, ...], frozenset[Assumption]] = {}

    @property
    def general(self) -> Launcher:
        """The launcher of the text that is right for all sizes."""
        return self.launchers[frozenset()]

    def __call__(
        self, programs: int, tensors: Sequence[Any], scalars: Sequence[Any], extents: Sequence[int]
    ) -> None:
        if programs <= 0:
            return
        key = (*scalars, *extents)
        held = self._held.get(key)
        if held is None:
            held = self._held[key] = self._assume(scalars, extents)
        if not held:
            self.general(programs, tensors, scalars, extents)
            return
        launcher = self.launchers.get(held)
        if launcher is None:
            text = variant(self.launch, self.target, held)
            module = Module(text.name, f"{HEADER}\n\n{text.text}")
            launcher = self.launchers[held] = Launcher(text, module)
        sizes = self._sizes(scalars)
        values = {**sizes, **quotients(held, sizes)}
        by_pointer = dict(zip((row[0] for row in self.text.pointers), tensors, strict=True))
        by_extent = dict(zip((row[1] for row in self.text.extents), extents, strict=True))
        launcher(
            programs,
            [by_pointer[name] for name, *_ in launcher.text.pointers],
            [values[name] for _, name, _ in launcher.text.scalars],
            [by_extent[name] for _, name, _ in launcher.text.extents],
        )

    def _sizes(self, scalars: Sequence[Any]) -> Mapping[str, Any]:
        return dict(zip((row[1] for row in self.text.scalars), scalars, strict=True))

    def _assume(self, scalars: Sequence[Any], extents: Sequence[int]) -> frozenset[Assumption]:
        sizes = self._sizes(scalars)
        exact = dict(zip((row[1] for row in self.text.extents), extents, strict=True))
        return frozenset(a for a in self.assumptions if holds(a, sizes, exact))
