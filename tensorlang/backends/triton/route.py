"""Which text of a kernel a call runs: the general one, or that for what its sizes make true."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorlang.backends.triton.admission import Admission
from tensorlang.backends.triton.build import Launch
from tensorlang.backends.triton.emit import KernelText
from tensorlang.backends.triton.launch import Launcher
from tensorlang.backends.triton.module import HEADER, Module
from tensorlang.backends.triton.variants import (
    Assumption,
    assumptions_of,
    holds,
    quotients,
    usually_held,
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

    def arguments(
        self, tensors: Sequence[Any], scalars: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The tensors and scalars of the text, of those that the host gives."""
        values = [scalars[k] if k >= 0 else number for k, number in self.scalars]
        return [tensors[k] for k in self.order], values


class Router:
    """One kernel of a program, in as many texts as calls have needed.

    `text` is the usual one; all have the same tensors, and no scalars that it has not.
    """

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
        self.usual = Launcher(text, module, params)
        self.launchers: dict[frozenset[Assumption], Launcher] = {
            usually_held(text.kernel): self.usual
        }
        self._sizes = [k for k, row in enumerate(text.scalars) if row[2].name == "index"]
        self.admission = Admission(text)
        self._routes: dict[tuple[Any, ...], Route] = {}

    def route(
        self,
        programs: int,
        tensors: Sequence[Any],
        scalars: Sequence[Any],
        extents: Sequence[int],
    ) -> Route:
        """Which text runs on such arguments of the usual one."""
        key = (programs, *[scalars[k] for k in self._sizes], *extents)
        key += self.admission.layout(tensors)
        route = self._routes.get(key)
        if route is None:
            if len(self._routes) > _REMEMBERED:
                self._routes.clear()
            route = self._routes[key] = self._route(programs, tensors, scalars, extents)
        return route

    def _route(
        self,
        programs: int,
        tensors: Sequence[Any],
        scalars: Sequence[Any],
        extents: Sequence[int],
    ) -> Route:
        sizes = {self.text.scalars[k][1]: scalars[k] for k in self._sizes}
        exact = dict(zip((row[1] for row in self.text.extents), extents, strict=True))
        held = frozenset(a for a in self.assumptions if holds(a, sizes, exact))
        places = {row[1]: (k, 0) for k, row in enumerate(self.text.scalars)}
        parts = quotients(held, sizes)
        places |= {name: (-1, number) for name, number in parts.items()}
        described = self.admission.described(tensors)
        while True:
            launcher = self._launcher(held | described, parts)
            route = self._through(launcher, places, exact)
            unfit = self.admission.too_small(described, route.launcher.text, tensors)
            if described and self._is_wide(route, programs, tensors, scalars):
                # The corner of a box is held in 32 bits.
                unfit = described
            if not unfit:
                return route
            described -= unfit

    def _is_wide(
        self, route: Route, programs: int, tensors: Sequence[Any], scalars: Sequence[Any]
    ) -> bool:
        """Whether indices need 64 bits."""
        chosen, values = route.arguments(tensors, scalars)
        return route.launcher.plan(programs, chosen, values, route.extents).key.wide

    def _launcher(self, held: frozenset[Assumption], parts: Collection[str] = ()) -> Launcher:
        """The launcher of the text for calls in which `held` is true; `parts` are its quotients."""
        if held not in self.launchers:
            text = variant(self.launch, self.target, held)
            module = Module(text.name, f"{HEADER}\n\n{text.text}")
            self.launchers[held] = Launcher(text, module, self.params, parts)
        return self.launchers[held]

    def _through(
        self, launcher: Launcher, places: Mapping[str, tuple[int, int]], exact: Mapping[str, int]
    ) -> Route:
        """How the arguments of the host become those of a launcher."""
        if not {row[1] for row in launcher.text.scalars} <= places.keys():
            # A host's name that the general text has no use for, so that the host does not give it.
            launcher = self._launcher(frozenset())
        arrays = [memory.pointer(component) for _, memory, component in self.text.pointers]
        return Route(
            launcher,
            tuple(arrays.index(m.pointer(c)) for _, m, c in launcher.text.pointers),
            tuple(places[row[1]] for row in launcher.text.scalars),
            tuple(exact[row[1]] for row in launcher.text.extents),
        )
