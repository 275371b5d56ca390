"""Gradients compared with finite differences and with torch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tensorlang import Pipeline, Target
from tensorlang.autodiff import gradients
from tensorlang.ir.expr import Size

STEP = 1e-6


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def sizes_for(pipeline: Pipeline, sizes: Mapping[str, int]) -> dict[str, int]:
    """The Sizes that are no extent of an Input, which a call may be given."""
    algorithm = pipeline.algorithm
    solved = {n.name for a in algorithm.inputs for n in a.shape if isinstance(n, Size)}
    asked = [s.name for s in algorithm.sizes if s.name not in solved]
    return {name: sizes[name] for name in asked if name in sizes}


def with_known(
    pipeline: Pipeline, arrays: Sequence[Any], sizes: Mapping[str, int]
) -> dict[str, int]:
    """The Sizes given, and those that are an extent of an Input."""
    known = dict(sizes)
    for record, array in zip(pipeline.algorithm.inputs, arrays, strict=True):
        for extent, n in zip(record.shape, array.shape, strict=True):
            if isinstance(extent, Size):
                known[extent.name] = n
    return known


def gradient_of(
    pipeline: Pipeline,
    arrays: Sequence[Any],
    sizes: Mapping[str, int] | None = None,
    *,
    target: str | Target = "interpreter",
    params: Mapping[str, float] | None = None,
    seed: int = 0,
    **options: Any,
) -> tuple[tuple[Any, ...], list[Any]]:
    """The gradients, and the random incoming gradients that they are for."""
    made = gradients(pipeline, **options)
    sizes = with_known(pipeline, arrays, sizes or {})
    rng = np.random.default_rng(seed)
    values = as_tuple(run(pipeline, arrays, sizes, params or {}, "reference"))
    incoming = [
        rng.standard_normal(np.shape(y)).astype(np.asarray(y).dtype)
        for y in values
        if np.asarray(y).dtype.kind == "f"
    ]
    given = dict(zip((a.name for a in pipeline.algorithm.inputs), arrays, strict=True))
    bars = [a.name for a in made.algorithm.inputs if a.name not in given]
    given |= dict(zip(bars, incoming, strict=True))
    inputs = [given[a.name] for a in made.algorithm.inputs]
    return as_tuple(run(made, inputs, sizes, params or {}, target)), incoming


def run(
    pipeline: Pipeline,
    arrays: Sequence[Any],
    sizes: Mapping[str, int],
    params: Mapping[str, float],
    target: str | Target,
) -> Any:
    known = {p.name for p in pipeline.algorithm.params}
    kernel = pipeline.compile(target=target)
    chosen = {k: v for k, v in params.items() if k in known}
    return kernel(*arrays, sizes=sizes_for(pipeline, sizes), **chosen)


def check_differences(
    pipeline: Pipeline,
    arrays: Sequence[Any],
    sizes: Mapping[str, int] | None = None,
    *,
    tolerance: float = 1e-5,
    **options: Any,
) -> None:
    """The gradients of an f64 pipeline are (y(x + h) - y(x - h)) / 2h, element by element."""
    params = options.get("params") or {}
    found, incoming = gradient_of(pipeline, arrays, sizes, **options)
    kernel = pipeline.compile(target="reference")
    rest = sizes_for(pipeline, with_known(pipeline, arrays, sizes or {}))

    def loss(changed: Sequence[Any], at: Mapping[str, float]) -> float:
        values = as_tuple(kernel(*changed, sizes=rest, **at))
        floats = [y for y in values if np.asarray(y).dtype.kind == "f"]
        return float(sum(np.sum(y * bar) for y, bar in zip(floats, incoming, strict=True)))

    names = [
        n.removeprefix("grad_") for n, _ in gradients(pipeline, **_named(options)).algorithm.outputs
    ]
    places = {a.name: k for k, a in enumerate(pipeline.algorithm.inputs)}
    for name, gradient in zip(names, found, strict=True):
        expected = np.zeros(np.shape(gradient))
        if name in places:
            original = arrays[places[name]]
            assert np.shape(gradient) == original.shape
            for point in np.ndindex(original.shape):
                sides = []
                for h in (STEP, -STEP):
                    moved = original.copy()
                    moved[point] += h
                    changed = [*arrays]
                    changed[places[name]] = moved
                    sides.append(loss(changed, params))
                expected[point] = (sides[0] - sides[1]) / (2 * STEP)
        else:
            up, down = (loss(arrays, {**params, name: params[name] + h}) for h in (STEP, -STEP))
            expected = np.asarray((up - down) / (2 * STEP))
        np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance, err_msg=name)


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in options.items() if k in ("wrt", "grad_outputs", "dtypes")}


def check_torch(
    pipeline: Pipeline,
    function: Callable[..., Any],
    arrays: Sequence[Any],
    sizes: Mapping[str, int] | None = None,
    *,
    tolerance: float = 1e-5,
    **options: Any,
) -> None:
    """The gradients are those of torch.autograd, for the same incoming gradient."""
    import torch

    found, incoming = gradient_of(pipeline, arrays, sizes, **options)
    tensors = [torch.from_numpy(a.copy()) for a in arrays]
    floats = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    value = function(*tensors)
    expected = torch.autograd.grad(value, floats, torch.from_numpy(incoming[0]))
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=tolerance, atol=tolerance)
