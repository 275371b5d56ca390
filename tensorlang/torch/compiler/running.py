"""A compiled region as a function of tensors: what the graph that is run calls."""

from collections.abc import Callable, Sequence
from typing import Any

from tensorlang.kernel import Kernel
from tensorlang.torch.compiler.fallback import first_line, tell_fallback
from tensorlang.torch.compiler.settled import Settled
from tensorlang.torch.compiler.translation import Order, Placing, Translation
from tensorlang.torch.libraries import Tensor


class Fused:
    """The kernel of a region, and torch's own operators for when it fails.

    Nothing that a region computes is written over, so that torch may begin again.

    Args:
        translation: the order of the dimensions of what is passed and returned.
        is_static: whether every call brings tensors of the same layouts.
        plain: the same nodes, run by torch, from the same arguments.
    """

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        translation: Translation,
        plain: Callable[..., Any],
        *,
        is_static: bool = False,
    ) -> None:
        callable_in_graphs(self, name)
        self._name = name
        self.kernel, self.plain = kernel, plain
        self._sizes = translation.sizes
        self._given = len(translation.inputs)
        self._inputs = _moves(translation.inputs)
        placed = [p if p.ones or _is_moved(p.order) else None for p in translation.outputs]
        self._outputs = placed if any(placed) else []
        self._one = len(translation.outputs) == 1
        self.failure: str = ""
        self.translation = translation
        self.is_static = self._settles = is_static and not self._sizes
        self._settled: Settled | None = None

    def __call__(self, *arguments: Any) -> Any:
        """The results of the region, one or a tuple.  Sizes follow the tensors."""
        if self.failure:
            return self.plain(*arguments)
        try:
            return self._run(arguments)
        except Exception as error:  # noqa: BLE001  (whatever it is, torch can begin again)
            self.failure = first_line(error)
            tell_fallback(self._name, self.failure)
            return self.plain(*arguments)

    def _run(self, arguments: tuple[Any, ...]) -> Any:
        tensors = arguments[: self._given]
        if self._settled is not None:
            # Addresses do not depend on the order of dimensions.
            made = self._settled(tensors)
            if made is not None:
                return made[0] if self._one else made
        if self._inputs:
            tensors = _moved(tensors, self._inputs)
        if self._sizes:
            sizes = dict(zip(self._sizes, map(int, arguments[self._given :]), strict=True))
            made = self.kernel(*tensors, sizes=sizes)
        else:
            made = self.kernel(*tensors)
        results = (made,) if self._one else made
        if self._outputs:
            pairs = zip(results, self._outputs, strict=True)
            results = tuple([t if p is None else _placed(t, p) for t, p in pairs])
        if self._settles:
            self._settles = False
            self._settled = Settled.of(self.kernel, tensors, results)
        return results[0] if self._one else results


def callable_in_graphs(function: Any, name: str) -> None:
    """Let a function have the names under which torch, which writes graphs as Python, calls it."""
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tensorlang_regions"


class Plain:
    """A region that torch runs."""

    def __init__(self, name: str, plain: Callable[..., Any]) -> None:
        callable_in_graphs(self, name)
        self._plain = plain

    def __call__(self, *arguments: Any) -> Any:
        return self._plain(*arguments)


def _moves(orders: Sequence[Order]) -> tuple[Order | None, ...]:
    """How each tensor is permuted; empty where none is."""
    found = tuple(o if _is_moved(o) else None for o in orders)
    return found if any(found) else ()


def _is_moved(order: Order) -> bool:
    return list(order) != sorted(order)


def _placed(tensor: Tensor, placing: Placing) -> Tensor:
    if _is_moved(placing.order):
        tensor = tensor.permute(placing.order)
    for d in placing.ones:
        tensor = tensor.unsqueeze(d)
    return tensor


def _moved(tensors: Sequence[Tensor], orders: Sequence[Order | None]) -> tuple[Tensor, ...]:
    return tuple([t if o is None else t.permute(o) for t, o in zip(tensors, orders, strict=True)])
