"""Contenders that most cases share: ours, torch as it is, and torch.compile."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.case import Call, Contender
from tensorlang import Pipeline, Schedule, Size, autoschedule

Made = tuple[Pipeline, Schedule]


def ours(
    make: Callable[[], Made],
    variant: str = "",
    *,
    view: Callable[[Sequence[Any]], Sequence[Any]] = tuple,
    result: Callable[[Any], Any] = lambda outputs: outputs,
    **params: Any,
) -> Contender:
    """A pipeline under a schedule, allocating its outputs; `view` and `result` reshape."""

    def prepare(inputs: Sequence[Any]) -> Call:
        pipeline, schedule = make()
        kernel = pipeline.compile(schedule, target="triton")
        arrays = tuple(view(inputs))
        return lambda: result(kernel(*arrays, **params))

    return Contender(f"tensorlang {variant}".strip(), prepare)


def by_formula(
    make: Callable[[], Made],
    *,
    view: Callable[[Sequence[Any]], Sequence[Any]] = tuple,
    result: Callable[[Any], Any] = lambda outputs: outputs,
    **params: Any,
) -> Contender:
    """The same pipeline as `autoschedule` would run it, told the sizes."""

    def prepare(inputs: Sequence[Any]) -> Call:
        pipeline, _ = make()
        arrays = tuple(view(inputs))
        shapes = zip(pipeline.algorithm.inputs, arrays, strict=True)
        extents = (
            (e, n) for record, a in shapes for e, n in zip(record.shape, a.shape, strict=True)
        )
        sizes = {e.name: int(n) for e, n in extents if isinstance(e, Size)}
        kernel = pipeline.compile(autoschedule(pipeline, "triton", sizes), target="triton")
        return lambda: result(kernel(*arrays, **params))

    return Contender("tensorlang auto", prepare)


def eager(function: Callable[..., Any], impl: str = "eager") -> Contender:
    """A torch function as it is."""
    return Contender(impl, lambda inputs: lambda: function(*inputs))


def compiled(function: Callable[..., Any], *, tuned: bool = False) -> tuple[Contender, ...]:
    """torch.compile of it in the default mode, and where `tuned` also with max-autotune."""
    made = [Contender("compile", lambda inputs: _compile(function, inputs, "default"))]
    if tuned:
        mode = "max-autotune-no-cudagraphs"
        prepare: Callable[[Sequence[Any]], Call] = lambda inputs: _compile(function, inputs, mode)  # noqa: E731
        made.append(Contender("max-autotune", prepare, alone=True))
    return tuple(made)


def by_hand(prepare: Callable[[Any], Call], variant: str = "") -> Contender:
    """A kernel of `peers/`."""
    return Contender(f"triton {variant}".strip(), prepare)


def copy_of(size: int) -> Contender:
    """A copy that reads and writes `size` bytes altogether: the roof of what moves as much."""

    def prepare(inputs: Sequence[Any]) -> Call:
        import torch

        source = torch.empty(size // 2, dtype=torch.int8, device=inputs[0].device).zero_()
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    return Contender("copy", prepare, checked=False)


def _compile(function: Callable[..., Any], inputs: Sequence[Any], mode: str) -> Call:
    import torch

    # torch.compile inlines nothing that has no Python code, such as torch.mm itself.
    def wrapped(*arrays: Any) -> Any:
        return function(*arrays)

    call = torch.compile(wrapped, mode=mode, dynamic=False)
    return lambda: call(*inputs)
