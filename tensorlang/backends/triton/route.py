"""Which text of a kernel a call runs: the general one, or that for what its sizes make true."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
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

# Routes kept of one kernel: a size that grows with each call must not fill memory.
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Route:
    """For certain sizes: a text, and how its arguments come from the host's.

    Args:
        order: positions of its tensors.
        scalars: position of each scalar, or -1 and the number itself.
    """

    launcher: Launcher
    order: tuple[int, ...]
    scalars: tuple[tuple[int, int], ...]
    extents: tuple[int, ...]


class Router:
    """One kernel of a program, in as many texts as calls have needed."""

    def __init__(
        self,
        launch: Launch,
        text: KernelText,
        module: Module,
        target: Target,
        params: Collection[str],
    ) -> None:
        self.launch, self.text, self.target, self.params = launch, text, target, params
        self.assumptions = assumptions_of(text)
        self.launchers: dict[frozenset[Assumption], Launcher] = {
            frozenset(): Launcher(text, module, self.params)
        }
        self._sizes = [k for k, row in enumerate(text.scalars) if row[2].name == "index"]
        self._routes: dict[tuple[Any, ...], Route] = {}

    @property
    def general(self) -> Launcher:
        """The launcher of the text that is right for all sizes."""
        return self.launchers[frozenset()]

    def route(self, scalars: Sequence[Any], extents: Sequence[int]) -> Route:
        """Which text runs on such arguments of the general one."""
        key = (*[scalars[k] for k in self._sizes], *extents)
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) > _REMEMBERED:
                self._routes.clear()
            route = self._routes[key] = self._route(scalars, extents)
        return route

    def _route(self, scalars: Sequence[Any], extents: Sequence[int]) -> Route:
        sizes = {self.text.scalars[k][1]: scalars[k] for k in self._sizes}
        exact = dict(zip((row[1] for row in self.text.extents), extents, strict=True))
        held = frozenset(a for a in self.assumptions if holds(a, sizes, exact))
        if held not in self.launchers:
            text = variant(self.launch, self.target, held)
            module = Module(text.name, f"{HEADER}\n\n{text.text}")
            self.launchers[held] = Launcher(text, module, self.params)
        places = {row[1]: (k, 0) for k, row in enumerate(self.text.scalars)}
        places |= {name: (-1, number) for name, number in quotients(held, sizes).items()}
        launcher = self.launchers[held]
        if not {row[1] for row in launcher.text.scalars} <= places.keys():
            # A host's name that the general text has no use for, so that the host does not give it.
            launcher = self.general
        pointers = [row[0] for row in self.text.pointers]
        return Route(
            launcher,
            tuple(pointers.index(row[0]) for row in launcher.text.pointers),
            tuple(places[row[1]] for row in launcher.text.scalars),
            tuple(exact[row[1]] for row in launcher.text.extents),
        )
